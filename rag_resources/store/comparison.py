"""Data for comparing evaluations: evaluations by name, their questions, the names of notes."""

import re
from collections.abc import Collection, Mapping, Sequence
from uuid import UUID

from rag_resources.core.attribution import EvaluatedQuestion
from rag_resources.core.evaluation import QueryOutcome, StoredEvaluation, Summary
from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries
from rag_resources.languages.messages import restored
from rag_resources.store.evaluations import stored_evaluation

MIN_PREFIX = 6
"""Fewest hex digits that are accepted as the beginning of an id."""


Questions = Mapping[UUID, EvaluatedQuestion]


def find_evaluations(connection: Connection, name: str) -> list[StoredEvaluation]:
    """Return the evaluations that a name may stand for; two if it is ambiguous.

    Args:
        connection: Any.
        name: A configuration (its newest evaluation), or the beginning of an evaluation's id.
    """
    digits = name.replace("-", "").lower()
    is_prefix = re.fullmatch(r"[0-9a-f]+", digits) and len(digits) >= MIN_PREFIX
    rows = queries().find_evaluations(connection, name=name, id_prefix=digits if is_prefix else "")
    return [stored_evaluation(row) for row in rows]


def evaluated_questions(
    connection: Connection, evaluation_ids: Collection[UUID]
) -> dict[UUID, dict[UUID, EvaluatedQuestion]]:
    """Return every question of the given evaluations, by evaluation and golden id."""
    found: dict[UUID, dict[UUID, EvaluatedQuestion]] = {key: {} for key in evaluation_ids}
    for row in queries().evaluated_questions(connection, evaluation_ids=list(evaluation_ids)):
        found[row.evaluation_id][row.golden_id] = EvaluatedQuestion(
            golden_id=row.golden_id,
            query=row.query,
            category=row.category,
            relevant=tuple(row.relevant_note_ids),
            retrieved=tuple(row.retrieved_note_ids),
            rank=row.first_relevant_rank,
            metrics=row.metrics,
            error=restored(row.error) if row.error else None,
            places=frozenset((each["note"], each["start"], each["end"]) for each in row.places),
            answer_metrics=row.answer_metrics,
            difficulty=row.difficulty,
            latency_ms=row.latency_ms,
        )
    return found


def unstored_questions(
    summary: Summary, outcomes: Sequence[QueryOutcome]
) -> dict[UUID, EvaluatedQuestion]:
    """Return the questions of an unstored evaluation in the form of `evaluated_questions`."""
    answers = summary.answers.answers if summary.answers else {}
    return {
        UUID(outcome.key): EvaluatedQuestion(
            golden_id=UUID(outcome.key),
            query=outcome.golden.query,
            category=outcome.golden.category,
            relevant=outcome.golden.relevant_note_ids,
            retrieved=tuple(map(UUID, outcome.judged.distinct)),
            rank=outcome.judged.first_relevant_rank,
            metrics=summary.per_query[outcome.key],
            error=outcome.error,
            places=frozenset(
                (str(place.stated.note_id), place.stated.start, place.stated.end)
                for place in outcome.places
            ),
            answer_metrics=(own.metrics or None) if (own := answers.get(outcome.key)) else None,
            difficulty=outcome.golden.difficulty,
            latency_ms=outcome.latency_ms,
        )
        for outcome in outcomes
    }


def name_notes(connection: Connection, note_ids: Sequence[UUID]) -> dict[UUID, str]:
    """Return the names of the given notes for display, by id; deleted notes have none."""
    if not note_ids:  # Saves a round trip, and a wait if the database does not answer.
        return {}
    return {row.id: row.name for row in queries().name_notes(connection, note_ids=list(note_ids))}
