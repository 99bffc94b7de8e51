"""`rag promote` and `rag rollback`: decide which configuration serves."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rag_resources.cli.output import (
    JsonOption,
    clean,
    conclude,
    note,
    picked,
    say,
    told_number,
    warn,
    working,
    write_json,
)
from rag_resources.cli.session import application
from rag_resources.core.errors import InvalidParameterError
from rag_resources.languages.messages import _

if TYPE_CHECKING:
    from rag_resources.serving.promotion import PromotionOutcome


def promote(
    config: Annotated[
        str | None,
        typer.Argument(
            metavar="CONFIGURACIÓN",
            help=_("The one that should serve; without it the best of those that pass."),
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Promote a candidate, by default the best one."""
    from rag_resources.core.configuration import Role

    with application() as app, working(_("Checking the evaluations…")):
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
                note(
                    _(
                        "Neither evaluated nor promoted, because their model is not in "
                        "EMBEDDING_MODELS: {names}."
                    ).format(names=", ".join(off))
                )
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
        note(_("Evaluated before deciding: {name}.").format(name=name))
    for name, reason in outcome.refused.items():
        note(_("{name} will not do: {reason}.").format(name=name, reason=reason))
    evaluation = outcome.evaluation
    say(
        _(
            "{name} serves: Hit_Rate@10 {hit_rate}, MRR {mrr}, p95 {p95} ms (evaluation "
            "{evaluation_id}, {evidence})."
        ).format(
            name=evaluation.configuration,
            hit_rate=told_number(evaluation.hit_rate_at_10, 3),
            mrr=told_number(evaluation.mrr, 3),
            p95=told_number(evaluation.latency_p95_ms, 0),
            evaluation_id=evaluation.evaluation_id,
            evidence=evidence_in_words(outcome.evidence),
        )
    )


def _as_json(outcome: "PromotionOutcome") -> dict[str, Any]:
    evaluation = ("configuration", "config_hash", "model", "evaluation_id", "hit_rate_at_10")
    return {
        **picked(outcome.evaluation, *evaluation, "served_hit_rate", "mrr", "latency_p95_ms"),
        **picked(outcome, "changed", "evaluated_again", "refused"),
        "evidence": outcome.evidence.state,
    }


def rollback(
    config: Annotated[
        str | None,
        typer.Argument(
            metavar="CONFIGURACIÓN",
            help=_(
                "The one to withdraw; without it the one that serves now. If it no longer serves, "
                "nothing changes."
            ),
        ),
    ] = None,
    reason: Annotated[
        str, typer.Option("--reason", metavar="MOTIVO", help=_("Why; it is stored."))
    ] = "",
    as_json: JsonOption = False,
) -> None:
    """Withdraw a configuration, by default the one that serves."""
    from rag_resources.core.configuration import usable_retrieval

    given = clean(reason).strip()
    if not given:
        raise InvalidParameterError(_("Nothing was changed: the reason is missing."))
    with application() as app:
        before = app.serving.promotion()
        name = config or (before.configuration if before else "")
        # Without a name, it is what serves at this moment, even if that is an earlier version.
        config_hash = before.config_hash if before and not config else None
        outcome = app.serving.withdraw(name, reason=given, run_id=None, config_hash=config_hash)
        settings = app.settings
    serving = outcome.serving
    serves = usable_retrieval(serving.config, origin=serving.configuration)
    if notice := settings.warning_about(serving.configuration, serves):
        warn(notice)
    conclude(
        outcome.in_words,
        {
            "configuration": serving.configuration,
            "configHash": serving.config_hash,
            "model": serving.model,
            "changed": outcome.changed,
            "withdrawn": name if outcome.changed else None,
        },
        as_json=as_json,
    )
