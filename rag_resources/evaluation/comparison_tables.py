"""A comparison of two evaluations as tables: metrics, changes, questions that flipped."""

from collections.abc import Iterable, Mapping
from uuid import UUID

from rag_resources.core.answer_metrics import Citations
from rag_resources.core.attribution import Flip, first_citation
from rag_resources.core.comparison import Comparison
from rag_resources.core.counterfactuals import Attribution
from rag_resources.core.messages import METRIC_WORDS, Message
from rag_resources.core.metrics import DEPTH
from rag_resources.core.tables import ReportTable
from rag_resources.core.texts import Text
from rag_resources.evaluation.attribution import AnswerAttribution
from rag_resources.evaluation.comparison import EvaluationComparison
from rag_resources.evaluation.summary import (
    ANSWER_METRIC_WORDS,
    VERDICT_WORDS,
    change_in_words,
    p_value_in_words,
    suspicion_in_words,
    value_in_words,
)
from rag_resources.store.comparison import NoteName

SHOWN_NEWCOMERS = 3
_WORDS: Mapping[str, str] = {**METRIC_WORDS, **ANSWER_METRIC_WORDS}


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
                _WORDS[item.metric],
                f"{item.before:.3f}",
                f"{item.after:.3f}",
                f"{item.difference:+z.3f}",
                f"{item.interval.low:+z.3f} … {item.interval.high:+z.3f}",
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
                ranks_in_words(flip),
                ", ".join(note_names(found, flip.after.relevant)),
                _instead(found, flip),
            )
            for flip in found.flips[:shown]
        ),
        is_prose=True,
    )


def shifts_table(found: EvaluationComparison, *, shown: int) -> ReportTable:
    """Return a row per question found at another rank, at most `shown` rows."""
    return ReportTable(
        "",
        (Message.COLUMN_QUESTION, Message.COLUMN_RANK, Message.COLUMN_NOW_ABOVE),
        tuple(
            (
                shift.after.query,
                f"{shift.before.rank} → {shift.after.rank}",
                ", ".join(note_names(found, shift.newcomers[:SHOWN_NEWCOMERS])) or "–",
            )
            for shift in found.shifts[:shown]
        ),
        is_prose=True,
    )


def shifts_in_words(found: EvaluationComparison) -> Text:
    """Say how many questions are found at another rank."""
    down = sum(shift.is_down for shift in found.shifts)
    return Message.COMPARE_SHIFTS.format(down=down, up=len(found.shifts) - down)


def _instead(found: EvaluationComparison, flip: Flip) -> str:
    """Name what came in the place of a relevant note; a dash if the question was gained."""
    names = ", ".join(note_names(found, flip.newcomers[:SHOWN_NEWCOMERS]))
    return names or (Message.CITED_NOTHING if flip.is_lost else "–")


def rank_in_words(rank: int | None) -> str:
    """Return a rank; one that an evaluation did not look at, since the note came later, as such."""
    return str(rank or f"> {DEPTH}")


def ranks_in_words(flip: Flip) -> str:
    """Return the ranks before and after, and how the flip went if only what users get changed."""
    ranks = f"{rank_in_words(flip.before.rank)} → {rank_in_words(flip.after.rank)}"
    if not flip.is_served_only:
        return ranks
    message = Message.RANKS_SERVED_LOST if flip.is_lost else Message.RANKS_SERVED_GAINED
    return message.format(ranks=ranks)


def attribution_table(found: Attribution) -> ReportTable:
    """Return a row per cause of lost questions, then a row per suspicion.

    A question counts in each row that it belongs to, so shares may exceed 100 % in total.
    """
    rows = [
        *(
            (
                change_in_words(cause.change, cause.month, cause.together, cause.fields),
                cause.queries,
            )
            for cause in found.causes
        ),
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


def answers_table(found: AnswerAttribution, *, shown: int) -> ReportTable:
    """Return a row per question whose first citation changed, at most `shown` rows, with causes."""
    return ReportTable(
        Message.ANSWERS_CHANGED.format(
            changed=len(found.changed), examined=len(found.causes.examined)
        ),
        (
            Message.COLUMN_QUESTION,
            Message.COLUMN_CITED_BEFORE,
            Message.COLUMN_CITED_AFTER,
            Message.COLUMN_CAUSE,
        ),
        tuple(
            (
                item.after.query,
                _cited(item.before.citations, found.notes),
                _cited(item.after.citations, found.notes),
                "; ".join(causes_in_words(found.causes, item.after.golden_id)) or "–",
            )
            for item in found.changed[:shown]
        ),
        is_prose=True,
    )


def causes_in_words(found: Attribution, question: UUID) -> list[str]:
    """Name the causes of one lost question; empty if it was not examined."""
    said = [
        change_in_words(cause.change, cause.month, cause.together, cause.fields)
        for cause in found.causes
        if question in cause.queries
    ]
    if question in found.unstable:
        said.append(Message.CAUSE_UNSTABLE)
    return said + [suspicion_in_words(item) for item in found.suspected if question in item.queries]


def _cited(citations: Citations | None, names: Mapping[UUID, NoteName]) -> str:
    return (
        ", ".join(
            Message.CITED_RANGE.format(
                note=names[own.note_id].name if own.note_id in names else own.note_id,
                start=own.start,
                end=own.end,
            )
            for own in first_citation(citations)
        )
        or Message.CITED_NOTHING
    )


def note_names(found: EvaluationComparison, notes: Iterable[UUID]) -> list[str]:
    """Return the titles of notes; for a deleted note, its id."""
    return [found.notes[key].name if key in found.notes else str(key) for key in notes]
