"""Compares stored evaluations: which is better, which questions flipped, what changed.

The statistics are `core.comparison`, the attribution `core.attribution`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC
from uuid import UUID

from rag_resources.core.answer_metrics import FIRST_CITATION
from rag_resources.core.attribution import ConfigChange, Flip, Shift, config_changes, flips, shifts
from rag_resources.core.comparison import HITS, Comparison, QueryMetrics, compare
from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.evaluation import StoredEvaluation
from rag_resources.core.fusion_config import respelled
from rag_resources.core.measurement import Versions
from rag_resources.core.messages import Message
from rag_resources.core.texts import joined
from rag_resources.database.pool import Connection
from rag_resources.store.comparison import (
    NoteName,
    Questions,
    evaluated_questions,
    find_evaluations,
    name_notes,
)
from rag_resources.store.evaluations import latest_evaluations
from rag_resources.store.promotions import evaluation_of_serving


@dataclass(frozen=True, slots=True)
class EvaluationComparison:
    """Two stored evaluations, the second against the first.

    Attributes:
        flips: Questions that only one of them found.
        shifts: Questions that both found, at different ranks.
        changes: In the configuration, and in what both were run on (`MODEL_DIGEST`, …).
        notes: The notes that flips and shifts mention, if they still exist.
        passages: The same metrics per passage, tested as a separate family; None if no common
            question names the same places in both.
        answers: The metrics of the answers, likewise; None if no common question with the same
            places was answered in both.
    """

    before: StoredEvaluation
    after: StoredEvaluation
    comparison: Comparison
    flips: tuple[Flip, ...]
    shifts: tuple[Shift, ...]
    changes: tuple[ConfigChange, ...]
    notes: Mapping[UUID, NoteName]
    passages: Comparison | None = None
    answers: Comparison | None = None


def compare_by_name(
    connection: Connection, before: str, after: str, *, common_only: bool = False
) -> EvaluationComparison:
    """Compare two evaluations by name; see `compare_evaluations`.

    Args:
        connection: In a snapshot.
        before: The name of a configuration (its newest evaluation), or a prefix of an
            evaluation's id.
        after: Likewise.
        common_only: Whether evaluations of different golden datasets may be compared on the
            questions they share.

    Raises:
        InvalidParameterError: A name matches no evaluation, or several.
    """
    return compare_evaluations(
        connection, _named(connection, before), _named(connection, after), common_only=common_only
    )


def compare_evaluations(
    connection: Connection,
    before: StoredEvaluation,
    after: StoredEvaluation,
    *,
    common_only: bool = False,
    asked: Questions | None = None,
) -> EvaluationComparison:
    """Compare two evaluations over the same golden dataset.

    Args:
        connection: In a snapshot.
        before: An evaluation.
        after: Another one.
        common_only: As `compare_by_name`.
        asked: The questions of the second one if it is not stored.

    Raises:
        InvalidParameterError: Their golden datasets differ and `common_only` is not set; or they
            share no question; or the questions of one were archived; or one was disturbed.
    """
    if before.golden_hash != after.golden_hash and not common_only:
        raise InvalidParameterError(
            Message.COMPARISON_GOLDEN_DIFFERS.format(
                before=before.configuration,
                before_at=before.created_at.astimezone(UTC),
                before_count=before.total_queries,
                after=after.configuration,
                after_at=after.created_at.astimezone(UTC),
                after_count=after.total_queries,
            )
        )
    ids = (before.evaluation_id, after.evaluation_id)
    questions: dict[UUID, Questions] = dict(evaluated_questions(connection, ids))
    if asked is not None:
        questions[after.evaluation_id] = asked
    for evaluation in (before, after):
        if evaluation.is_disturbed:
            reason = Message.DISTURBANCE.format(count=evaluation.degraded_queries)
            raise InvalidParameterError(
                Message.COMPARISON_DISTURBED.format(
                    evaluation_id=evaluation.evaluation_id, reason=reason
                )
            )
        if not questions[evaluation.evaluation_id]:
            raise InvalidParameterError(
                Message.COMPARISON_ARCHIVED.format(evaluation_id=evaluation.evaluation_id)
            )
    first, second = comparable(*(questions[key] for key in ids))
    found, moved = flips(first, second), shifts(first, second)
    changed = (*(flip.after for flip in found), *(shift.after for shift in moved))
    mentioned = {note for each in changed for note in (*each.relevant, *each.retrieved)}
    return EvaluationComparison(
        before,
        after,
        compare(query_metrics(first), query_metrics(second)),
        tuple(found),
        tuple(moved),
        tuple(_changes(before, after)),
        name_notes(connection, sorted(mentioned)),
        _compare_places(first, second, _passage_metrics),
        _compare_places(first, second, _answer_metrics, hits=FIRST_CITATION),
    )


def compare_with_serving(
    connection: Connection, evaluation: StoredEvaluation, asked: Questions | None = None
) -> EvaluationComparison | None:
    """Compare an evaluation with that of the serving configuration; see `evaluation_of_serving`.

    Only the questions that both share are compared.

    Args:
        connection: In a snapshot.
        evaluation: The one to compare.
        asked: Its questions if it is not stored.

    Returns:
        None if what serves was never evaluated, or this is that evaluation, or the two share no
        question, or this one was disturbed.
    """
    serving = evaluation_of_serving(connection, compared_hash=evaluation.config_hash)
    if serving is None or serving.evaluation_id == evaluation.evaluation_id:
        return None
    try:
        return compare_evaluations(connection, serving, evaluation, common_only=True, asked=asked)
    except InvalidParameterError:
        return None


def query_metrics(questions: Questions) -> QueryMetrics:
    """Return every metric of every question."""
    return {key: question.metrics for key, question in questions.items()}


def comparable(before: Questions, after: Questions) -> tuple[Questions, Questions]:
    """Keep the questions whose relevant notes are the same in both evaluations."""
    edited = {
        key
        for key in before.keys() & after.keys()
        if set(before[key].relevant) != set(after[key].relevant)
    }
    first, second = (
        {key: question for key, question in questions.items() if key not in edited}
        for questions in (before, after)
    )
    return first, second


def _compare_places(
    before: Questions,
    after: Questions,
    metrics_of: Callable[[Questions], QueryMetrics],
    *,
    hits: str = HITS,
) -> Comparison | None:
    """Compare what is judged by places, over the questions that name the same in both."""
    first, second = metrics_of(before), metrics_of(after)
    common = {
        key for key in first.keys() & second.keys() if before[key].places == after[key].places
    }
    if not common:
        return None
    return compare(
        {key: first[key] for key in common},
        {key: second[key] for key in common},
        hits=hits,
    )


def _answer_metrics(questions: Questions) -> QueryMetrics:
    """Return every metric of the answers, for the questions that were answered."""
    return {
        key: question.answer_metrics
        for key, question in questions.items()
        if question.answer_metrics is not None
    }


def _passage_metrics(questions: Questions) -> QueryMetrics:
    """Return every metric per passage, for the questions that have places."""
    return {
        key: question.passage_metrics
        for key, question in questions.items()
        if question.passage_metrics is not None
    }


def _not_found(connection: Connection, name: str) -> str:
    message = Message.EVALUATION_NOT_FOUND.format(name=name)
    names = sorted({item.configuration for item in latest_evaluations(connection)})
    if not names:
        return message
    return joined("", (message, Message.EVALUATION_NAMES.format(names=", ".join(names))))


def _named(connection: Connection, name: str) -> StoredEvaluation:
    found = find_evaluations(connection, name)
    if not found:
        raise InvalidParameterError(_not_found(connection, name), name=name)
    if len(found) > 1:
        raise InvalidParameterError(Message.EVALUATION_AMBIGUOUS.format(name=name), name=name)
    return found[0]


def _changes(before: StoredEvaluation, after: StoredEvaluation) -> list[ConfigChange]:
    """Return what differs in the configuration and in the data of the two."""
    return [
        *config_changes(respelled(before.config), respelled(after.config)),
        *config_changes(_circumstances(before.versions), _circumstances(after.versions)),
    ]


def _circumstances(versions: Versions) -> dict[str, object]:
    return {
        Message.CHANGE_MODEL_DIGEST: versions.model_digest,
        Message.CHANGE_GOLDEN: versions.golden_hash,
        Message.CHANGE_CHUNKING: ", ".join(versions.chunking_hashes),
        Message.CHANGE_INDEX: versions.index_version,
    }
