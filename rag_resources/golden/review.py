"""Reviews the stored golden dataset: which questions drifted, which may lack relevant notes."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from rag_resources.core.golden import GoldenEntry
from rag_resources.core.golden_candidates import CANDIDATE_RANKS, find_candidates
from rag_resources.core.golden_drift import GoldenDrift, measure_drift
from rag_resources.core.golden_place_drift import QuestionPlace
from rag_resources.database.pool import Connection, Database
from rag_resources.store.comparison import name_notes
from rag_resources.store.golden import list_golden, locate_places
from rag_resources.store.golden_review import (
    latest_outcomes,
    note_states,
    question_lexemes,
    reference_categories,
    reviewed_outcomes,
)
from rag_resources.store.notes import fetch_notes


def review_drift(database: Database) -> GoldenDrift:
    """Check the whole dataset for drift, in one snapshot."""
    with database.snapshot() as connection:
        entries = list_golden(connection)
        return measure_drift(
            entries,
            notes=note_states(connection),
            categories_before=reference_categories(connection),
            lexemes=question_lexemes(connection),
            outcomes=latest_outcomes(connection),
            places=_displaced(connection, entries),
        )


def _displaced(connection: Connection, entries: Sequence[GoldenEntry]) -> list[QuestionPlace]:
    located = locate_places(connection, entries)
    displaced = [
        (entry, place)
        for entry in entries
        for place in located.get(str(entry.golden_id), ())
        if not place.is_as_stated
    ]
    names = name_notes(connection, [place.stated.note_id for _, place in displaced])
    return [
        QuestionPlace(entry, place, names[place.stated.note_id].name) for entry, place in displaced
    ]


def suggest_candidates(database: Database, *, limit: int) -> list[dict[str, Any]]:
    """Return questions with notes that may be relevant, as entries of a golden file.

    The import refuses them until a person has judged the notes of each. Notes that the person
    removes are not suggested again.

    Args:
        database: Open.
        limit: Maximum number of questions, >= 1.
    """
    with database.snapshot() as connection:
        outcomes = latest_outcomes(connection)
        found = {
            note_id
            for outcome in outcomes
            for note_id in outcome.retrieved_note_ids[:CANDIDATE_RANKS]
        }
        known = name_notes(connection, list(found))
        names = {note_id: note.name for note_id, note in known.items()}
        candidates = find_candidates(
            list_golden(connection),
            outcomes,
            reviewed=reviewed_outcomes(connection),
            existing=names,
        )[:limit]
        chosen = {note.note_id for candidate in candidates for note in candidate.notes}
        notes = fetch_notes(connection, chosen)
        at = datetime.now(UTC)
    return [candidate.to_json(names, notes, at=at) for candidate in candidates]
