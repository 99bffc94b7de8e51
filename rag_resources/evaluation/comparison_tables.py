"""A comparison of two evaluations as tables: metrics, changes, questions that flipped."""

from collections.abc import Iterable
from uuid import UUID

from rag_resources.core.comparison import Comparison
from rag_resources.core.counterfactuals import Attribution
from rag_resources.core.messages import METRIC_WORDS, Message
from rag_resources.core.tables import ReportTable
from rag_resources.evaluation.comparison import EvaluationComparison
from rag_resources.evaluation.summary import (
    VERDICT_WORDS,
    change_in_words,
    p_value_in_words,
    suspicion_in_words,
    value_in_words,
)

SHOWN_NEWCOMERS = 3


def metrics_table(comparison: Comparison, *, title: str = "") -> ReportTable:
    """Return a row per metric: before, after, difference, and whether it is significant."""
    return ReportTable(
        title,
        (
            Message.COLUMN_METRIC,
            Message.COLUMN_BEFORE,
            Message.COLUMN_AFTER,
            Message.COLUMN_DIFFERENCE,
            Message.COLUMN_INTERVAL,
            Message.COLUMN_P_ADJUSTED,
            Message.COLUMN_VERDICT,
        ),
        tuple(
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
        ),
    )


def changes_table(found: EvaluationComparison) -> ReportTable:
    """Return a row per field of the configuration, or of the index, that changed."""
    return ReportTable(
        "",
        (Message.COLUMN_FIELD, Message.COLUMN_BEFORE, Message.COLUMN_AFTER),
        tuple(
            (item.field, value_in_words(item.before), value_in_words(item.after))
            for item in found.changes
        ),
    )


def flips_table(found: EvaluationComparison, *, shown: int) -> ReportTable:
    """Return a row per question lost or gained, at most `shown` rows."""
    return ReportTable(
        "",
        (
            Message.COLUMN_QUESTION,
            Message.COLUMN_RANK,
            Message.COLUMN_RELEVANT_NOTES,
            Message.COLUMN_INSTEAD,
        ),
        tuple(
            (
                flip.after.query,
                f"{flip.before.rank or '–'} → {flip.after.rank or '–'}",
                ", ".join(note_names(found, flip.after.relevant)),
                ", ".join(note_names(found, flip.newcomers[:SHOWN_NEWCOMERS])) or "–",
            )
            for flip in found.flips[:shown]
        ),
        is_prose=True,
    )


def attribution_table(found: Attribution) -> ReportTable:
    """Return a row per change that lost questions are due to, then a row per suspicion.

    A question counts in each row that it belongs to, so shares may exceed 100 % in total.
    """
    rows = [
        *((change_in_words(cause.change, cause.month), cause.queries) for cause in found.causes),
        (Message.CAUSE_UNSTABLE, found.unstable),
        *((suspicion_in_words(item), item.queries) for item in found.suspected),
    ]
    return ReportTable(
        Message.ATTRIBUTION_EXAMINED.format(examined=len(found.examined), lost=found.lost),
        (Message.COLUMN_CAUSE, Message.COLUMN_LOST, Message.COLUMN_SHARE),
        tuple(
            (said, str(len(queries)), f"{100 * found.share(queries):.0f} %")
            for said, queries in rows
            if queries
        ),
        is_prose=True,
    )


def note_names(found: EvaluationComparison, notes: Iterable[UUID]) -> list[str]:
    """Return the titles of notes; for a deleted note, its id."""
    return [found.notes[key].name if key in found.notes else str(key) for key in notes]
