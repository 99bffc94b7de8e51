"""`rag compare`: compares two evaluations, question by question."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rag_resources.cli.output import JsonOption, console, note, say, table, write_json
from rag_resources.cli.session import application
from rag_resources.languages.messages import _, joined

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from rich.console import RenderableType

    from rag_resources.core.attribution import Attribution, Flip
    from rag_resources.core.comparison import Comparison, NonInferiority
    from rag_resources.core.evaluation import StoredEvaluation
    from rag_resources.core.evidence import Evidence
    from rag_resources.core.tables import ReportTable
    from rag_resources.evaluation.comparison import EvaluationComparison

SHOWN_FLIPS = 20


def compare(
    before: Annotated[
        str,
        typer.Argument(
            metavar="ANTES",
            help=_(
                "The first: a configuration (its last evaluation) or the beginning of an "
                "evaluation's identifier."
            ),
        ),
    ],
    after: Annotated[
        str,
        typer.Argument(metavar="DESPUÉS", help=_("The second, which is judged against the first.")),
    ],
    why: Annotated[
        bool,
        typer.Option(
            "--why",
            help=_(
                "Asks the lost questions again under the former configuration, and says how many "
                "the configuration lost and how many the data."
            ),
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Compare the second evaluation with the first."""
    with application() as opened:
        found, judged = opened.evaluations.compare(before, after)
        evidence = opened.evaluations.evidence([found.before, found.after])
        causes = opened.evaluations.attribute(found) if why else None
    if as_json:
        told = {"causes": _causes(causes) if causes else None}
        write_json(_as_json(found, judged, evidence) | told)
        return
    _show(found, judged, evidence)
    if causes:
        from rag_resources.evaluation.comparison_tables import attribution_in_words

        say(attribution_in_words(causes))


def _show(
    found: "EvaluationComparison",
    judged: "Mapping[str, NonInferiority]",
    evidence: "Mapping[UUID, Evidence]",
) -> None:
    from rag_resources.evaluation.comparison_tables import (
        changes_table,
        metrics_table,
    )
    from rag_resources.evaluation.summary import evidence_in_words, inferiority_in_words

    comparison, screen = found.comparison, console()
    title = _("{before} → {after} (common questions: {queries})").format(
        before=_titled(found.before),
        after=_titled(found.after),
        queries=comparison.queries,
    )
    screen.print(_table(metrics_table(comparison, title=title)))
    if found.answers:
        title = _("Answers (questions answered in both: {queries})").format(
            queries=found.answers.queries
        )
        screen.print(_table(metrics_table(found.answers, title=title)))
    for item in (found.before, found.after):
        state = evidence[item.evaluation_id]
        if not state.is_current:
            said = evidence_in_words(state)
            note(
                _("{evaluation}: evaluation {evidence}.").format(
                    evaluation=_titled(item), evidence=said
                )
            )
    say(
        _(
            "Difference with 95 % BCa bootstrap interval; p of exact McNemar (Hit_Rate@10 and "
            "first citation) and of paired randomisation (the others, such as MRR and nDCG@10), "
            "Holm-corrected. The verdict is that of p: with few questions the interval may "
            "exclude 0 without evidence."
        )
    )
    verdict = joined(" ", (inferiority_in_words(item, metric) for metric, item in judged.items()))
    say(
        _(
            "For the gate, which tests each rate alone and only for a fall (one-sided, at 5 %), "
            "and so may see a loss that the table leaves without evidence: {verdict}"
        ).format(verdict=verdict)
    )
    if found.left_out:
        note(
            _(
                "Questions that are not in both evaluations, or have other relevant notes, do not "
                "count: {count}."
            ).format(count=found.left_out)
        )
    changes = changes_table(found)
    if changes.rows:
        screen.print(_table(changes))
    else:
        say(_("Configuration, model, questions and index are the same."))
    _show_questions(found)


def _show_questions(found: "EvaluationComparison") -> None:
    """Name the questions lost and gained."""
    from rag_resources.core.comparison import HITS
    from rag_resources.core.metrics import SERVED
    from rag_resources.evaluation.comparison_tables import flips_table

    flips = flips_table(found, shown=SHOWN_FLIPS)
    for metric, template in (
        (HITS, _("Among the first ten, questions lost: {lost}; gained: {gained}.")),
        (SERVED, _("Among what a user gets (@final), lost: {lost}; gained: {gained}.")),
    ):
        hits = found.hits(metric)
        say(template.format(lost=hits.lost, gained=hits.gained))
    if flips.rows:
        console().print(_table(flips))
    if len(flips.rows) < len(found.flips):
        say(_("{shown} are shown; all with --json.").format(shown=len(flips.rows)))


def _causes(causes: "Attribution") -> dict[str, Any]:
    return {
        "lost": causes.lost,
        "byConfiguration": sorted(map(str, causes.by_configuration)),
        "byData": sorted(map(str, causes.by_data)),
        "obstacle": causes.obstacle,
    }


def _table(item: "ReportTable") -> "RenderableType":
    return table(item.columns, item.rows, title=item.title, prose=item.is_prose)


def _titled(evaluation: "StoredEvaluation") -> str:
    """Name an evaluation with its time, which distinguishes two of one configuration."""
    return _("{configuration}, {created_at:%Y-%m-%d %H:%M} UTC").format(
        configuration=evaluation.configuration, created_at=evaluation.created_at
    )


def _as_json(
    found: "EvaluationComparison",
    judged: "Mapping[str, NonInferiority]",
    evidence: "Mapping[UUID, Evidence]",
) -> dict[str, Any]:
    from rag_resources.core.comparison import HITS
    from rag_resources.core.metrics import SERVED

    comparison = found.comparison
    return {
        "before": _evaluation(found.before, evidence),
        "after": _evaluation(found.after, evidence),
        "queries": comparison.queries,
        "leftOut": found.left_out,
        "metrics": _metrics_json(comparison),
        "answers": {
            "queries": found.answers.queries,
            "metrics": _metrics_json(found.answers),
        }
        if found.answers
        else None,
        "nonInferiority": _inferiority(judged[HITS]),
        "servedNonInferiority": _inferiority(judged[SERVED]),
        "changes": [
            {"field": item.field, "before": item.before, "after": item.after}
            for item in found.changes
        ],
        "flips": [_moved(found, flip) for flip in found.flips],
    }


def _inferiority(judged: "NonInferiority") -> dict[str, Any]:
    return {
        "state": judged.state.value,
        "interval": list(judged.interval),
        "margin": judged.margin,
    }


def _metrics_json(comparison: "Comparison") -> list[dict[str, Any]]:
    return [
        {
            "metric": item.metric,
            "before": item.before,
            "after": item.after,
            "difference": item.difference,
            "interval": list(item.interval),
            "pValue": item.p_value,
            "adjustedPValue": item.adjusted_p_value,
            "verdict": item.verdict.value,
        }
        for item in comparison.metrics
    ]


def _evaluation(
    evaluation: "StoredEvaluation", evidence: "Mapping[UUID, Evidence]"
) -> dict[str, Any]:
    return {
        "evaluationId": str(evaluation.evaluation_id),
        "configuration": evaluation.configuration,
        "createdAt": evaluation.created_at.isoformat(),
        "evidence": evidence[evaluation.evaluation_id].state.value,
    }


def _moved(found: "EvaluationComparison", item: "Flip") -> dict[str, Any]:
    """Return the ranks of a question in both, and what came above its note."""
    from rag_resources.evaluation.comparison_tables import note_names

    return {
        "goldenId": str(item.after.golden_id),
        "query": item.after.query,
        "category": item.after.category,
        "rankBefore": item.before.rank,
        "rankAfter": item.after.rank,
        "servedBefore": item.before.is_served,
        "servedAfter": item.after.is_served,
        "relevantNotes": note_names(found, item.after.relevant),
        "newcomers": note_names(found, item.newcomers),
    }
