"""`rag promote`: lets a configuration serve, if its gates allow it."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rag_resources.cli.output import JsonOption, note, say, working, write_json
from rag_resources.cli.reader import told_number
from rag_resources.cli.session import application
from rag_resources.core.messages import Message

if TYPE_CHECKING:
    from rag_resources.serving.promotion import PromotionOutcome


def promote(
    config: Annotated[
        str | None, typer.Argument(metavar="CONFIGURACIÓN", help=Message.HELP_PROMOTE_CONFIG)
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Promote a candidate, by default the best one."""
    from rag_resources.core.configuration import Role

    with application() as app, working(Message.PROMOTE_WORKING):
        configurations = app.configurations.switched_on(app.settings.makes_vectors_for)
        if config is not None:
            named = app.configurations.named(config)  # An unknown name is bad input.
            if named.role is Role.CANDIDATE:
                configurations.named(config)  # So is one whose model is switched off.
            else:
                configurations = app.configurations  # That it is a reference comes first.
            if same := configurations.notice_of_same(named):
                note(same)
        else:
            off = [
                name
                for name, item in configurations.switched_off.items()
                if item.role is Role.CANDIDATE
            ]
            if off:
                note(Message.RESULTS_SWITCHED_OFF.format(names=", ".join(off)))
            if told := app.serving.model_warning():
                note(told)
        outcome = app.serving.promote(configurations, name=config, run_id=None)
    if as_json:
        write_json(_as_json(outcome))
    else:
        _show(outcome)


def _show(outcome: "PromotionOutcome") -> None:
    from rag_resources.evaluation.summary import evidence_in_words

    for name in outcome.evaluated_again:
        note(Message.PROMOTE_EVALUATED_AGAIN.format(name=name))
    for name, reason in outcome.refused.items():
        note(Message.PROMOTE_REFUSED.format(name=name, reason=reason))
    evaluation = outcome.evaluation
    template = Message.PROMOTE_UNCHANGED if outcome.served_already else Message.PROMOTE_CHANGED
    say(
        template.format(
            name=evaluation.configuration,
            hit_rate=told_number(evaluation.hit_rate_at_10, 3),
            mrr=told_number(evaluation.mrr, 3),
            p95=told_number(evaluation.latency_p95_ms, 0),
            evaluation_id=evaluation.evaluation_id,
        )
    )
    say(Message.PROMOTE_EVIDENCE.format(evidence=evidence_in_words(outcome.evidence)))


def _as_json(outcome: "PromotionOutcome") -> dict[str, Any]:
    evaluation = outcome.evaluation
    return {
        "configuration": evaluation.configuration,
        "configHash": evaluation.config_hash,
        "model": evaluation.model,
        "changed": outcome.changed,
        "evaluationId": str(evaluation.evaluation_id),
        "hitRateAt10": evaluation.hit_rate_at_10,
        "servedHitRate": evaluation.served_hit_rate,
        "mrr": evaluation.mrr,
        "latencyP95Ms": evaluation.latency_p95_ms,
        "evidence": outcome.evidence.state.value,
        "evaluatedAgain": list(outcome.evaluated_again),
        "refused": dict(outcome.refused),
    }
