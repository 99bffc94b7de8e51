"""Reads what a review of the golden dataset needs, and has `core.golden_drift` judge it."""

from collections.abc import Sequence

from rag_resources.core.golden import GoldenEntry
from rag_resources.core.golden_drift import GoldenDrift, NoteState, QuestionPlace, measure_drift
from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries
from rag_resources.store.comparison import name_notes
from rag_resources.store.golden import list_golden, locate_places

_CATEGORY = "category:"


def review_drift(connection: Connection) -> GoldenDrift:
    """Check the whole dataset for drift.

    The mix of categories is compared with that of the evaluation that the serving promotion is
    based on; if that is unknown, with the latest one.

    Args:
        connection: In a snapshot.
    """
    entries = list_golden(connection)
    states = queries().golden_note_states(connection)
    breakdown = queries().reference_breakdown(connection) or {}
    return measure_drift(
        entries,
        notes=[NoteState(row.golden_id, row.note_id, row.name, row.gone) for row in states],
        categories_before={
            name.removeprefix(_CATEGORY): means["queries"]
            for name, means in breakdown.items()
            if name.startswith(_CATEGORY)
        },
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
    return [QuestionPlace(entry, place, names[place.stated.note_id]) for entry, place in displaced]
