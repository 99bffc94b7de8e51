"""What a review of the golden dataset looks at.

What is made of it is `core.golden_drift` and `core.golden_candidates`.
"""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from rag_resources.core.golden_drift import NoteState, Outcome
from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries

_CATEGORY = "category:"


def note_states(connection: Connection) -> list[NoteState]:
    """Return the relevant notes that are gone, or edited since their question was last written."""
    rows = queries().golden_note_states(connection)
    return [NoteState(row.golden_id, row.note_id, row.name, row.gone) for row in rows]


def question_lexemes(connection: Connection) -> dict[UUID, frozenset[str]]:
    """Return the stems of every question, with and without accents, by golden id."""
    rows = queries().golden_lexemes(connection)
    return {row.golden_id: frozenset(row.lexemes) for row in rows}


def latest_outcomes(connection: Connection) -> list[Outcome]:
    """Return what the latest evaluation of every configuration found, by configuration.

    Questions that failed, or were edited since, are left out.
    """
    return _outcomes(queries().golden_outcomes(connection))


def reviewed_outcomes(connection: Connection) -> list[Outcome]:
    """Return what was found for every question when it was last written, by question."""
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
    """Return the questions by category of the evaluation on which what serves was promoted.

    Of the latest evaluation if that is not known; empty before the first.
    """
    breakdown = queries().reference_breakdown(connection) or {}
    return {
        name.removeprefix(_CATEGORY): means["queries"]
        for name, means in breakdown.items()
        if name.startswith(_CATEGORY)
    }
