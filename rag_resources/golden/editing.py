"""Adds, finds, changes and deletes single golden questions. Whole files are in `golden.files`."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rag_resources.core.errors import InvalidGoldenDatasetError, InvalidParameterError
from rag_resources.core.golden import GoldenEntry, parse_entry
from rag_resources.core.golden_places import could_name_a_note
from rag_resources.database.pool import Connection, Database
from rag_resources.languages.messages import _
from rag_resources.store.golden import (
    delete_golden,
    list_golden,
    lock_golden,
    present_place,
    write_golden,
)
from rag_resources.store.notes import find_note, note_content

Fields = Mapping[str, Any]
"""The fields of an entry, as a file gives them."""


def find_entry(entries: Sequence[GoldenEntry], prefix: str) -> GoldenEntry:
    """Return the only entry whose id starts with this prefix.

    Raises:
        InvalidParameterError: No entry matches, or several do.
    """
    found = [entry for entry in entries if str(entry.golden_id).startswith(prefix.strip().lower())]
    if len(found) == 1:
        return found[0]
    message = (
        _("{count} questions have an identifier that begins with “{prefix}”. Write more digits.")
        if found
        else _(
            "No question has an identifier that begins with “{prefix}”. See them with “rag golden "
            "list”."
        )
    )
    raise InvalidParameterError(message.format(prefix=prefix, count=len(found)))


def add_entry(database: Database, fields: Fields, *, tenant: str, origin: str) -> GoldenEntry:
    """Add a question.

    Args:
        database: Open.
        fields: The entry's fields.
        tenant: Whose notes the question refers to.
        origin: Who or what adds it, for the history.

    Raises:
        InvalidGoldenDatasetError: Some fields are invalid; all are named.
    """
    with database.transaction() as connection:
        lock_golden(connection, origin=origin)
        return _write(connection, fields, list_golden(connection), tenant, origin)


def update_entry(
    database: Database, prefix: str, fields: Fields, *, tenant: str, origin: str, reason: str = ""
) -> GoldenEntry:
    """Change some fields of a question; with no fields, record that it was reviewed and is right.

    Places that are not given are kept at their present position in the notes. Those in notes
    that are no longer relevant are dropped. A lost place must be given again.

    Args:
        database: Open.
        prefix: Beginning of the entry's id.
        fields: The fields to change.
        tenant: Whose notes the question refers to.
        origin: Who or what changes it, for the history.
        reason: Why, for the history.

    Raises:
        InvalidParameterError: No entry's id matches, or several do.
        InvalidGoldenDatasetError: Some fields are invalid; all are named.
    """
    with database.transaction() as connection:
        lock_golden(connection, origin=origin)
        entries = list_golden(connection)
        stored = find_entry(entries, prefix)
        row = stored.to_json()
        if "relevantNotes" in fields:
            del row["relevantNoteIds"]
        if stored.places and "places" not in fields:
            row["places"] = _present_places(connection, stored, fields, tenant)
        others = [entry for entry in entries if entry is not stored]
        row |= {"updatedAt": datetime.now(UTC).isoformat(), **fields, "id": row["id"]}
        return _write(connection, row, others, tenant, origin, reason)


def delete_entries(
    database: Database, entries: Sequence[GoldenEntry], *, origin: str, reason: str = ""
) -> None:
    """Delete stored questions; one already deleted is ignored."""
    with database.transaction() as connection:
        lock_golden(connection, origin=origin, reason=reason)
        delete_golden(connection, entries)


def _present_places(
    connection: Connection, stored: GoldenEntry, fields: Fields, tenant: str
) -> list[dict[str, Any]]:
    """Return the places of a stored entry at their present position, as a file writes them."""
    relevant = set(stored.relevant_note_ids)
    names = fields.get("relevantNoteIds") or fields.get("relevantNotes")
    if isinstance(names, list):
        relevant = {
            found
            for name in names
            if could_name_a_note(name)
            and (found := find_note(connection, str(name), tenant=tenant))
        }
    return [
        present_place(connection, place).to_json()
        for place in stored.places
        if place.note_id in relevant
    ]


def _write(
    connection: Connection,
    row: Fields,
    others: Sequence[GoldenEntry],
    tenant: str,
    origin: str,
    reason: str = "",
) -> GoldenEntry:
    """Write one entry among the others, in a transaction that has called `lock_golden`."""
    entry = parse_entry(
        row,
        resolve_note=lambda name: find_note(connection, name, tenant=tenant),
        content_of=lambda found: note_content(connection, found),
    )
    for other in others:
        if entry.folded_query == other.folded_query or entry.golden_id == other.golden_id:
            repeated = _(
                "the question is already in the set ({golden_id}; capitals, accents and "
                "punctuation do not count)"
            ).format(golden_id=other.golden_id)
            raise InvalidGoldenDatasetError(
                _("The question is not valid; nothing was changed:"), [repeated]
            )
    write_golden(connection, [entry], replace=False, origin=origin, reason=reason)
    written = {each.normalized_query: each for each in list_golden(connection)}
    return written[entry.normalized_query]
