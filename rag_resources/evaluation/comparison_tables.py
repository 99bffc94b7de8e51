"""A comparison of two evaluations as tables: metrics, changes, questions that flipped."""

from collections.abc import Iterable, Mapping
from uuid import UUID

from rag_resources.core.attribution import Attribution, Flip
from rag_resources.core.comparison import Comparison
from rag_resources.core.metrics import DEPTH
from rag_resources.core.tables import ReportTable
from rag_resources.evaluation.comparison import EvaluationComparison
from rag_resources.evaluation.summary import (
    ANSWER_METRIC_WORDS,
    VERDICT_WORDS,
    p_value_in_words,
    value_in_words,
)
from rag_resources.languages.labels import METRIC_WORDS
from rag_resources.languages.messages import Text, _

SHOWN_NEWCOMERS = 3
COMPARED_WORDS: Mapping[str, str] = {**METRIC_WORDS, **ANSWER_METRIC_WORDS}


def metrics_table(comparison: Comparison, *, title: str = "") -> ReportTable:
    """Return a row per metric: before, after, difference, and whether it is significant."""
    return ReportTable(
        title,
        (
            _("Metric"),
            _("Before"),
            _("After"),
            _("Change"),
            _("95 % CI"),
            _("p (Holm)"),
            _("Verdict"),
        ),
        tuple(
            (
                COMPARED_WORDS[item.metric],
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
        (_("Field"), _("Before"), _("After")),
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
            _("Question"),
            _("Rank"),
            _("Relevant notes"),
            _("Instead"),
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


def _instead(found: EvaluationComparison, flip: Flip) -> str:
    """Name what came in the place of a relevant note; a dash if the question was gained."""
    names = ", ".join(note_names(found, flip.newcomers[:SHOWN_NEWCOMERS]))
    return names or (_("nothing") if flip.is_lost else "–")


def rank_in_words(rank: int | None) -> str:
    """Return a rank; one that an evaluation did not look at, since the note came later, as such."""
    return str(rank or f"> {DEPTH}")


def ranks_in_words(flip: Flip) -> str:
    """Return the ranks before and after, and how the flip went if only what users get changed."""
    ranks = f"{rank_in_words(flip.before.rank)} → {rank_in_words(flip.after.rank)}"
    if not flip.is_served_only:
        return ranks
    message = _("{ranks} (@final: lost)") if flip.is_lost else _("{ranks} (@final: gained)")
    return message.format(ranks=ranks)


def attribution_in_words(found: Attribution) -> Text:
    """Say how many lost questions the former configuration finds; see `Attribution`."""
    if not found.lost:
        return _("No question was lost.").format()
    if found.obstacle:
        return _(
            "Lost questions: {lost}. They cannot be asked again under the former configuration: "
            "{reason}."
        ).format(lost=found.lost, reason=found.obstacle)
    configuration, data = len(found.by_configuration), len(found.by_data)
    return _(
        "Lost questions: {lost}. Asked again under the former configuration, the configuration "
        "lost {configuration} and the data {data}."
    ).format(lost=found.lost, configuration=configuration, data=data)


def note_names(found: EvaluationComparison, notes: Iterable[UUID]) -> list[str]:
    """Return the titles of notes; for a deleted note, its id."""
    return [found.notes.get(key, str(key)) for key in notes]
