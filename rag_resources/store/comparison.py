"""What a comparison reads: evaluations by name, their questions, how the notes are called."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from rag_resources.core.attribution import EvaluatedQuestion
from rag_resources.core.evaluation import StoredEvaluation
from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries
from rag_resources.languages.messages import restored
from rag_resources.store.evaluations import stored_evaluation

MIN_PREFIX = 6
"""Hex digits an id has to begin with, to be meant by them."""

Questions = Mapping[UUID, EvaluatedQuestion]


@dataclass(frozen=True, slots=True)
class NoteName:
    """How people know a note, and the month it is of, as `YYYY-MM`."""

    name: str
    title: str
    month: str


def find_evaluations(connection: Connection, name: str) -> list[StoredEvaluation]:
    """Return the evaluations a name may mean; two if it is not enough to tell which.

    Args:
        connection: Open.
        name: A configuration, for its newest evaluation, or the beginning of an evaluation's id.
    """
    digits = name.replace("-", "").lower()
    is_prefix = re.fullmatch(r"[0-9a-f]+", digits) and len(digits) >= MIN_PREFIX
    rows = queries().find_evaluations(connection, name=name, id_prefix=digits if is_prefix else "")
    return [stored_evaluation(row) for row in rows]


def evaluated_questions(
    connection: Connection, evaluation_ids: Collection[UUID]
) -> dict[UUID, dict[UUID, EvaluatedQuestion]]:
    """Return every question of some evaluations, by evaluation and golden id.

    An evaluation whose questions were archived has none.
    """
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
            passage_metrics=row.passage_metrics,
            places=frozenset((each["note"], each["start"], each["end"]) for each in row.places),
        )
    return found


def name_notes(connection: Connection, note_ids: Sequence[UUID]) -> dict[UUID, NoteName]:
    """Return how people know some notes; those that are gone have no name."""
    rows = queries().name_notes(connection, note_ids=list(note_ids))
    return {row.id: NoteName(row.name, row.title, row.month) for row in rows}
