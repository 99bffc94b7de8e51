"""Data for a review of the golden dataset.

`core.golden_drift` and `core.golden_candidates` interpret it.
"""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from rag_resources.core.golden_drift import NoteState, Outcome
from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries

_CATEGORY = "category:"


def note_states(connection: Connection) -> list[NoteState]:
    """Return the relevant notes deleted, expired or edited since the last write of a question."""
    rows = queries().golden_note_states(connection)
    return [NoteState(row.golden_id, row.note_id, row.name, row.gone) for row in rows]


def question_lexemes(connection: Connection) -> dict[UUID, frozenset[str]]:
    """Return the stemmed words of every question, with and without accents, by golden id."""
    rows = queries().golden_lexemes(connection)
    return {row.golden_id: frozenset(row.lexemes) for row in rows}


def latest_outcomes(connection: Connection) -> list[Outcome]:
    """Return the results of the latest evaluation of every configuration, by configuration.

    Questions that failed, or were edited since the evaluation, are left out.
    """
    return _outcomes(queries().golden_outcomes(connection))


def reviewed_outcomes(connection: Connection) -> list[Outcome]:
    """Return the evaluations' results for each question at the time it was last written."""
    return _outcomes(queries().reviewed_outcomes(connection))


def _outcomes(rows: Iterable[Any]) -> list[Outcome]:
    return [
        Outcome(
            row.configuration,
            row.golden_id,
            row.first_relevant_rank,
            tuple(row.retrieved_note_ids),
        )
        for row in rows
    ]


def reference_categories(connection: Connection) -> dict[str, float]:
    """Count the questions by category in the evaluation that the serving promotion is based on.

    If that evaluation is unknown, the latest one is used; empty before the first.
    """
    breakdown = queries().reference_breakdown(connection) or {}
    return {
        name.removeprefix(_CATEGORY): means["queries"]
        for name, means in breakdown.items()
        if name.startswith(_CATEGORY)
    }
