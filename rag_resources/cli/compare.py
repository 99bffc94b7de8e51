"""`rag compare`: compares two evaluations, question by question."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rag_resources.cli.output import JsonOption, note, picked, say, show_table, write_json
from rag_resources.cli.session import application
from rag_resources.languages.messages import _, joined

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from rag_resources.core.attribution import Flip
    from rag_resources.core.comparison import Comparison, NonInferiority
    from rag_resources.core.evaluation import StoredEvaluation
    from rag_resources.core.evidence import Evidence
    from rag_resources.evaluation.comparison import EvaluationComparison

SHOWN_FLIPS = 20


def compare(
    before: Annotated[
        str,
        typer.Argument(
            metavar="ANTES",
            help=_("A configuration, or the beginning of an evaluation's identifier."),
        ),
    ],
    after: Annotated[
        str,
        typer.Argument(metavar="DESPUÉS", help=_("The second, which is judged against the first.")),
    ],
    why: Annotated[
        bool,
        typer.Option("--why", help=_("Says whether configuration or data lost the lost ones.")),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Compare the second evaluation with the first."""
    with application() as opened:
        found, judged = opened.evaluations.compare(before, after)
        evidence = opened.evaluations.evidence([found.before, found.after])
        causes = opened.evaluations.attribute(found) if why else None
    if as_json:
        told = picked(causes, "lost", "by_configuration", "by_data", "obstacle") if causes else None
        write_json(_as_json(found, judged, evidence) | {"causes": told})
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
    from rag_resources.core.comparison import HITS
    from rag_resources.core.metrics import SERVED
    from rag_resources.evaluation.comparison_tables import changes_table, flips_table, metrics_table
    from rag_resources.evaluation.summary import evidence_in_words, inferiority_in_words

    say(joined(" ", (inferiority_in_words(item, metric) for metric, item in judged.items())))
    title = _("{before} → {after} (common questions: {queries})").format(
        before=_titled(found.before), after=_titled(found.after), queries=found.comparison.queries
    )
    show_table(metrics_table(found.comparison, title=title))
    if found.answers:
        title = _("Answers (questions answered in both: {queries})").format(
            queries=found.answers.queries
        )
        show_table(metrics_table(found.answers, title=title))
    for item in (found.before, found.after):
        state = evidence[item.evaluation_id]
        if not state.is_current:
            note(
                _("{evaluation}: evaluation {evidence}.").format(
                    evaluation=_titled(item), evidence=evidence_in_words(state)
                )
            )
    changes = changes_table(found)
    if changes.rows:
        show_table(changes)
    for metric, template in (
        (HITS, _("Among the first ten, questions lost: {lost}; gained: {gained}.")),
        (SERVED, _("Among what a user gets (@final), lost: {lost}; gained: {gained}.")),
    ):
        hits = found.hits(metric)
        say(template.format(lost=hits.lost, gained=hits.gained))
    flips = flips_table(found, shown=SHOWN_FLIPS)
    if flips.rows:
        show_table(flips)


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

    metrics = ("metric", "before", "after", "difference", "interval", "p_value")

    def compared(comparison: "Comparison") -> dict[str, Any]:
        rows = [
            picked(each, *metrics, "adjusted_p_value", "verdict") for each in comparison.metrics
        ]
        return {"queries": comparison.queries, "metrics": rows}

    return {
        "before": _evaluation(found.before, evidence),
        "after": _evaluation(found.after, evidence),
        "leftOut": found.left_out,
        **compared(found.comparison),
        "answers": compared(found.answers) if found.answers else None,
        "nonInferiority": picked(judged[HITS], "state", "interval", "margin"),
        "servedNonInferiority": picked(judged[SERVED], "state", "interval", "margin"),
        "changes": [picked(item, "field", "before", "after") for item in found.changes],
        "flips": [_moved(found, flip) for flip in found.flips],
    }


def _evaluation(
    evaluation: "StoredEvaluation", evidence: "Mapping[UUID, Evidence]"
) -> dict[str, Any]:
    return picked(evaluation, "evaluation_id", "configuration", "created_at") | {
        "evidence": evidence[evaluation.evaluation_id].state
    }


def _moved(found: "EvaluationComparison", item: "Flip") -> dict[str, Any]:
    """Return the ranks of a question in both, and what came above its note."""
    from rag_resources.evaluation.comparison_tables import note_names

    before, after = item.before, item.after
    return picked(after, "golden_id", "query", "category") | {
        "rankBefore": before.rank,
        "rankAfter": after.rank,
        "servedBefore": before.is_served,
        "servedAfter": after.is_served,
        "relevantNotes": note_names(found, after.relevant),
        "newcomers": note_names(found, item.newcomers),
    }
