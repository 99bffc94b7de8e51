"""Reviews the stored golden dataset: which questions drifted, which may lack relevant notes."""

from collections.abc import Container, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from rag_resources.core.golden import GoldenEntry
from rag_resources.core.golden_asked import AskedCandidate, asked_candidates
from rag_resources.core.golden_candidates import CANDIDATE_RANKS, Candidate, find_candidates
from rag_resources.core.golden_drift import GoldenDrift, measure_drift
from rag_resources.core.golden_place_drift import QuestionPlace
from rag_resources.database.pool import Connection, Database
from rag_resources.store.answers import answers_to_review
from rag_resources.store.comparison import name_notes
from rag_resources.store.golden import deleted_queries, list_golden, locate_places
from rag_resources.store.golden_review import (
    latest_outcomes,
    note_states,
    question_lexemes,
    reference_categories,
    reviewed_outcomes,
)
from rag_resources.store.notes import fetch_notes


def review_drift(database: Database, configurations: Container[str] | None = None) -> GoldenDrift:
    """Check the whole dataset for drift, in one snapshot.

    Args:
        database: Open.
        configurations: Those whose evaluations count, by name; None: all that were evaluated.
    """
    with database.snapshot() as connection:
        entries = list_golden(connection)
        return measure_drift(
            entries,
            notes=note_states(connection),
            categories_before=reference_categories(connection),
            lexemes=question_lexemes(connection),
            outcomes=[
                each
                for each in latest_outcomes(connection)
                if configurations is None or each.configuration in configurations
            ],
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

    Questions whose answer a reader found wrong come first, then golden questions that may lack
    relevant notes, then questions that got no answer. The import refuses them until a person has
    judged the notes of each. Notes that the person removes, and questions that were dismissed, are
    not suggested again.

    Args:
        database: Open.
        limit: Maximum number of questions, >= 1.
    """
    with database.snapshot() as connection:
        entries = list_golden(connection)
        outcomes = latest_outcomes(connection)
        doubtful = answers_to_review(connection)
        found = {
            note_id
            for ranked in (
                *(outcome.retrieved_note_ids[:CANDIDATE_RANKS] for outcome in outcomes),
                *(answer.note_ids for answer in doubtful),
            )
            for note_id in ranked
        }
        known = name_notes(connection, list(found))
        names = {note_id: note.name for note_id, note in known.items()}
        pooled = find_candidates(
            entries, outcomes, reviewed=reviewed_outcomes(connection), existing=names
        )
        asked = asked_candidates(
            doubtful,
            known={entry.normalized_query for entry in entries} | deleted_queries(connection),
            existing=names,
        )
        suggested: list[Candidate | AskedCandidate] = []
        suggested += [candidate for candidate in asked if candidate.is_down]
        suggested += pooled
        suggested += [candidate for candidate in asked if not candidate.is_down]
        chosen = suggested[:limit]
        notes = fetch_notes(connection, {own for candidate in chosen for own in _notes(candidate)})
        at = datetime.now(UTC)
    return [
        candidate.to_json(names, notes, at=at)
        if isinstance(candidate, Candidate)
        else candidate.to_json(names, notes)
        for candidate in chosen
    ]


def _notes(candidate: Candidate | AskedCandidate) -> list[UUID]:
    if isinstance(candidate, Candidate):
        return [note.note_id for note in candidate.notes]
    return list(candidate.note_ids)
