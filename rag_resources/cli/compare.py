"""`rag compare`: two evaluations, question by question."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from rag_resources.cli.output import JsonOption, console, note, say, table, write_json
from rag_resources.cli.session import application
from rag_resources.core.messages import METRIC_WORDS, Message

if TYPE_CHECKING:
    from rag_resources.core.attribution import Flip
    from rag_resources.core.comparison import Comparison, NonInferiority
    from rag_resources.core.evaluation import StoredEvaluation
    from rag_resources.evaluation.comparison import EvaluationComparison

SHOWN_FLIPS = 20
SHOWN_NEWCOMERS = 3


def compare(
    before: Annotated[str, typer.Argument(metavar="ANTES", help=Message.HELP_COMPARE_BEFORE)],
    after: Annotated[str, typer.Argument(metavar="DESPUÉS", help=Message.HELP_COMPARE_AFTER)],
    common: Annotated[bool, typer.Option("--common", help=Message.HELP_COMPARE_COMMON)] = False,
    as_json: JsonOption = False,
) -> None:
    """Compare the second evaluation with the first."""
    from rag_resources.evaluation.comparison import compare_by_name

    with application() as opened, opened.database.snapshot() as connection:
        found = compare_by_name(connection, before, after, common_only=common)
        inferiority = found.comparison.inferiority(opened.settings.gate.margin)
    if as_json:
        write_json(_as_json(found, inferiority))
    else:
        _show(found, inferiority)


def _show(found: "EvaluationComparison", inferiority: "NonInferiority") -> None:
    from rag_resources.evaluation.summary import inferiority_in_words

    comparison, screen = found.comparison, console()
    title = Message.COMPARE_TITLE.format(
        before=_titled(found.before),
        after=_titled(found.after),
        queries=comparison.queries,
    )
    columns = (
        Message.COLUMN_METRIC,
        Message.COLUMN_BEFORE,
        Message.COLUMN_AFTER,
        Message.COLUMN_DIFFERENCE,
        Message.COLUMN_INTERVAL,
        Message.COLUMN_P_ADJUSTED,
        Message.COLUMN_VERDICT,
    )
    screen.print(table(columns, _metric_rows(comparison), title=title))
    if found.passages:
        title = Message.COMPARE_PASSAGES_TITLE.format(queries=found.passages.queries)
        screen.print(table(columns, _metric_rows(found.passages), title=title))
    say(Message.COMPARE_METHOD)
    say(inferiority_in_words(inferiority))
    if comparison.left_out:
        note(Message.COMPARE_LEFT_OUT.format(count=comparison.left_out))
    _show_changes(found)
    _show_flips(found)


def _metric_rows(comparison: "Comparison") -> list[Sequence[str]]:
    from rag_resources.evaluation.summary import VERDICT_WORDS, p_value_in_words

    return [
        (
            METRIC_WORDS[item.metric],
            f"{item.before:.3f}",
            f"{item.after:.3f}",
            f"{item.difference:+.3f}",
            f"{item.interval.low:+.3f} … {item.interval.high:+.3f}",
            p_value_in_words(item.adjusted_p_value),
            VERDICT_WORDS[item.verdict],
        )
        for item in comparison.metrics
    ]


def _show_changes(found: "EvaluationComparison") -> None:
    from rag_resources.evaluation.summary import value_in_words

    if not found.changes:
        say(Message.COMPARE_NO_CHANGES)
        return
    columns = (Message.COLUMN_FIELD, Message.COLUMN_BEFORE, Message.COLUMN_AFTER)
    rows = [
        (item.field, value_in_words(item.before), value_in_words(item.after))
        for item in found.changes
    ]
    console().print(table(columns, rows))


def _show_flips(found: "EvaluationComparison") -> None:
    lost, gained = len(found.comparison.lost), len(found.comparison.gained)
    say(Message.COMPARE_FLIPS.format(lost=lost, gained=gained))
    if not found.flips:
        return
    columns = (
        Message.COLUMN_QUESTION,
        Message.COLUMN_RANK,
        Message.COLUMN_RELEVANT_NOTES,
        Message.COLUMN_INSTEAD,
    )
    rows = [
        (
            flip.after.query,
            f"{_rank(flip.before.rank)} → {_rank(flip.after.rank)}",
            ", ".join(_names(found, flip.after.relevant)),
            ", ".join(_names(found, flip.newcomers[:SHOWN_NEWCOMERS])) or "–",
        )
        for flip in found.flips[:SHOWN_FLIPS]
    ]
    console().print(table(columns, rows, prose=True))
    if len(rows) < len(found.flips):
        say(Message.COMPARE_FLIPS_SHOWN.format(shown=len(rows)))


def _titled(evaluation: "StoredEvaluation") -> str:
    """Name an evaluation: two of one configuration differ by when they were made."""
    return Message.COMPARE_EVALUATION.format(
        configuration=evaluation.configuration, created_at=evaluation.created_at
    )


def _names(found: "EvaluationComparison", notes: Sequence[UUID]) -> list[str]:
    return [found.notes[key].name if key in found.notes else str(key) for key in notes]


def _rank(rank: int | None) -> str:
    return str(rank) if rank else "–"


def _as_json(found: "EvaluationComparison", inferiority: "NonInferiority") -> dict[str, Any]:
    comparison = found.comparison
    return {
        "before": _evaluation(found.before),
        "after": _evaluation(found.after),
        "queries": comparison.queries,
        "leftOut": comparison.left_out,
        "metrics": _metrics_json(comparison),
        "passages": {
            "queries": found.passages.queries,
            "metrics": _metrics_json(found.passages),
        }
        if found.passages
        else None,
        "nonInferiority": {
            "state": inferiority.state.value,
            "interval": list(inferiority.interval),
            "margin": inferiority.margin,
        },
        "changes": [
            {"field": item.field, "before": item.before, "after": item.after}
            for item in found.changes
        ],
        "flips": [_flip(found, flip) for flip in found.flips],
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


def _evaluation(evaluation: "StoredEvaluation") -> dict[str, Any]:
    return {
        "evaluationId": str(evaluation.evaluation_id),
        "configuration": evaluation.configuration,
        "createdAt": evaluation.created_at.isoformat(),
    }


def _flip(found: "EvaluationComparison", flip: "Flip") -> dict[str, Any]:
    return {
        "goldenId": str(flip.after.golden_id),
        "query": flip.after.query,
        "category": flip.after.category,
        "rankBefore": flip.before.rank,
        "rankAfter": flip.after.rank,
        "relevantNotes": _names(found, flip.after.relevant),
        "newcomers": _names(found, flip.newcomers),
    }
