"""Reads what a review of the golden dataset needs, and has `core.golden_drift` judge it."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from rag_resources.core.golden import GoldenEntry
from rag_resources.core.golden_drift import GoldenDrift, NoteState, QuestionPlace, measure_drift
from rag_resources.core.golden_places import LocatedPlace
from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries
from rag_resources.store.comparison import name_notes
from rag_resources.store.golden import list_golden, locate_places
from rag_resources.store.notes import note_content

_CATEGORY = "category:"


def review_drift(connection: Connection) -> GoldenDrift:
    """Check the whole dataset for drift.

    The mix of categories is compared with that of the evaluation that the serving promotion is
    based on; if that is unknown, with the latest one.

    Args:
        connection: In a snapshot.
    """
    entries = list_golden(connection)
    states = list(queries().golden_note_states(connection))
    breakdown = queries().reference_breakdown(connection) or {}
    return measure_drift(
        entries,
        notes=[NoteState(row.golden_id, row.note_id, row.name, row.gone) for row in states],
        categories_before={
            name.removeprefix(_CATEGORY): means["queries"]
            for name, means in breakdown.items()
            if name.startswith(_CATEGORY)
        },
        places=_displaced(
            connection, entries, {row.note_id: row.name for row in states if row.gone}
        ),
    )


def _displaced(
    connection: Connection, entries: Sequence[GoldenEntry], gone: Mapping[UUID, str]
) -> list[QuestionPlace]:
    """Return the places that are not where their question says, each with its likely new place.

    Args:
        connection: As for `review_drift`.
        entries: All questions.
        gone: The names of relevant notes that are gone; places in them count if another note has
            their text now, as after notes were merged or a file was renamed.
    """
    located = locate_places(connection, entries)
    displaced = [
        (entry, place)
        for entry in entries
        for place in located.get(str(entry.golden_id), ())
        if not place.is_as_stated and place.stated.note_id not in gone
    ]
    moved = [
        (entry, LocatedPlace(place, 0, 0, similarity=None, occurrences=0))
        for entry in entries
        for place in entry.places
        if place.note_id in gone
    ]
    lost = {place.stated.text for _, place in (*displaced, *moved) if place.is_lost}
    elsewhere = {
        row.text: (row.name, row.text)
        for row in (queries().notes_with_texts(connection, texts=sorted(lost)) if lost else ())
    }
    names = name_notes(connection, [place.stated.note_id for _, place in displaced])

    def likely(place: LocatedPlace) -> tuple[str, str] | None:
        if place.is_lost:
            return elsewhere.get(place.stated.text)
        content = note_content(connection, place.stated.note_id)
        return names[place.stated.note_id], content[place.start : place.end]

    return [
        QuestionPlace(
            entry,
            place,
            names.get(place.stated.note_id) or gone[place.stated.note_id],
            likely(place),
        )
        for entry, place in (
            *displaced,
            *(each for each in moved if each[1].stated.text in elsewhere),
        )
    ]
