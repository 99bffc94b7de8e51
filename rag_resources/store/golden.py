"""Rows of `golden_dataset`. Their types and validation are in `core.golden`.

Triggers write their history; the data for a
review in `store.golden_review`.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from typing import Any
from uuid import UUID, uuid4, uuid5

from psycopg.types.json import Jsonb

from rag_resources.core.golden import GoldenEntry
from rag_resources.core.golden_changes import GoldenChange, keep_own, plan_changes
from rag_resources.core.golden_places import (
    GoldenPlace,
    LocatedPlace,
    locate,
    place_from_json,
    restate,
)
from rag_resources.core.text import normalize_query
from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries
from rag_resources.languages.messages import _
from rag_resources.store.notes import note_content

NAMESPACE = UUID("0f0f6a32-4f0e-4f55-8b9b-7d7f5d6b5a21")
"""Namespace for ids of questions imported without one, so that a question always gets the same."""


@dataclass(frozen=True, slots=True)
class BrokenEntry:
    """A question with relevant notes that were deleted.

    Attributes:
        names: What the source called the missing notes, in their order.
    """

    golden_id: UUID
    query: str
    missing: tuple[UUID, ...]
    names: tuple[str, ...]

    @property
    def finding(self) -> str:
        """What is wrong with it and what helps, as a review of the questions says it."""
        return _(
            "Relevant notes that are gone or expired: {notes}. Question: “{query}”. Change it "
            "with “rag golden update {golden_id} --note NOTE”, delete it with “rag golden delete "
            "{golden_id}” or, if the note was deleted lately, restore it with “rag notes restore "
            "NOTE”."
        ).format(query=self.query, golden_id=self.golden_id, notes=", ".join(self.names))


@dataclass(frozen=True, slots=True)
class GoldenImport:
    """The result of an import.

    Attributes:
        changes: What changed, deletions first.
        kept: Questions that a person entered or changed and that differ in the file; they stay as
            they are.
        deleted: Questions of the file that a person deleted; they do not come back.
        orphaned: Questions of the file that name a deleted note; they are not imported, and stay
            as they are if stored.
        drafts: Questions of the file without an answer yet; they are not imported.
        unknown: A sentence for each key of the file that is not read.
    """

    changes: list[GoldenChange]
    kept: list[GoldenEntry] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    orphaned: list[str] = field(default_factory=list)
    drafts: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)


def list_golden(connection: Connection) -> list[GoldenEntry]:
    """Read the whole dataset, in a stable order."""
    return [
        GoldenEntry(
            query=row.query,
            relevant_note_ids=tuple(row.relevant_note_ids),
            expected_answer=row.expected_answer,
            category=row.category,
            difficulty=row.difficulty,
            tags=tuple(row.tags),
            golden_id=row.id,
            created_at=row.created_at,
            updated_at=row.updated_at,
            places=tuple(place_from_json(place) for place in row.places),
        )
        for row in queries().list_golden(connection)
    ]


def withdrawn_golden(connection: Connection) -> list[GoldenEntry]:
    """Return the questions removed or changed without a reason since the last promotion, as then.

    Evaluations ask them beside the present ones, so nobody can promote a configuration by taking
    away what it does not find. Property 62.
    """
    return [
        replace(entry_of_row(row.entry), golden_id=uuid5(row.golden_id, "withdrawn"))
        if row.is_changed
        else entry_of_row(row.entry)
        for row in queries().withdrawn_golden(connection)
    ]


def asked_golden(connection: Connection) -> list[GoldenEntry]:
    """Return the questions that an evaluation asks: the present and the withdrawn ones."""
    return [*list_golden(connection), *withdrawn_golden(connection)]


def entry_of_row(row: Mapping[str, Any]) -> GoldenEntry:
    """Read a row of `golden_dataset` as `to_jsonb` wrote it."""
    return GoldenEntry(
        query=row["query"],
        relevant_note_ids=tuple(UUID(note_id) for note_id in row["relevant_note_ids"]),
        expected_answer=row["expected_answer"],
        category=row["category"],
        difficulty=row["difficulty"],
        tags=tuple(row["tags"]),
        golden_id=UUID(row["id"]),
        created_at=datetime.fromisoformat(row["created_at"]),
        updated_at=datetime.fromisoformat(row["updated_at"]),
        places=tuple(place_from_json(place) for place in row["places"]),
    )


def locate_places(
    connection: Connection, entries: Sequence[GoldenEntry]
) -> dict[str, tuple[LocatedPlace, ...]]:
    """Find the current positions of stored places in their notes, by golden id as text.

    A place in a deleted note keeps its stored position: no passage can overlap it, since the note
    has none. Entries without places are left out.
    """
    displaced = {
        (row.golden_id, row.position): row.content for row in queries().displaced_places(connection)
    }
    return {
        str(entry.golden_id): tuple(
            locate(place, displaced[key])
            if (key := (entry.golden_id, position)) in displaced
            else LocatedPlace(place, place.start, place.end)
            for position, place in enumerate(entry.places)
        )
        for entry in entries
        if entry.places
    }


def present_place(connection: Connection, place: GoldenPlace) -> GoldenPlace:
    """Return a place with its current position in the note; unchanged if its text is lost."""
    content = note_content(connection, place.note_id)
    located = locate(place, content)
    return place if located.is_lost else restate(located, content)


def write_golden(
    connection: Connection,
    entries: Sequence[GoldenEntry],
    *,
    replace: bool,
    origin: str = "",
    reason: str = "",
) -> list[GoldenChange]:
    """Write a validated dataset; unchanged questions are not touched.

    Args:
        connection: In a transaction, so that all entries are written or none.
        entries: No two with the same id or normalised query.
        replace: Whether to delete stored questions that are not among the entries.
        origin: File, command or run, for the history and for messages.
        reason: See `lock_golden`.

    Returns:
        What changed, deletions first.

    Raises:
        InvalidGoldenDatasetError: An entry has the same question as another one that stays.
    """
    lock_golden(connection, origin=origin, reason=reason)
    stored = list_golden(connection)
    changes = plan_changes(stored, entries, replace_all=replace, origin=origin)
    _write_changes(connection, stored, entries, changes)
    return changes


def import_entries(
    connection: Connection,
    entries: Sequence[GoldenEntry],
    *,
    source: str,
    orphaned: Sequence[str] = (),
    replace: bool = False,
    origin: str = "",
    reason: str = "",
) -> GoldenImport:
    """Write the validated questions of a file; questions that a person entered are kept.

    A question that the file no longer has is deleted if it came from that file and nobody has
    changed it since. A question that a person entered or changed stays as it is, and one that a
    person deleted does not come back.

    Args:
        connection: In a transaction, so that all entries are written or none.
        entries: No two with the same id or normalised query.
        source: The file, with its folder.
        orphaned: Questions of the file that cannot be imported because they name a deleted note.
        replace: Whether to make the dataset equal to the file, including questions of a person.
        origin: File and run, for the history and for messages.
        reason: See `lock_golden`.

    Raises:
        InvalidGoldenDatasetError: An entry has the same question as another one that stays.
    """
    lock_golden(connection, origin=origin, reason=reason)
    queries().set_transaction(connection, name="rag.golden_source", value=source)
    stored = list_golden(connection)
    kept: list[GoldenEntry] = []
    deleted: list[str] = []
    wanted, removable = list(entries), set()
    if not replace:
        origins = {row.golden_id: row for row in queries().golden_origins(connection)}
        own = {golden_id for golden_id, row in origins.items() if row.by_person}
        removable = {golden_id for golden_id, row in origins.items() if row.source == source}
        wanted, deleted = _without_deleted(connection, stored, entries)
        wanted, kept = keep_own(stored, wanted, own)
        unimportable = {normalize_query(query) for query in orphaned}
        removable -= own | {e.golden_id for e in stored if e.normalized_query in unimportable}
    changes = plan_changes(stored, wanted, replace_all=replace, origin=origin, removable=removable)
    _write_changes(connection, stored, wanted, changes)
    return GoldenImport(changes, kept, deleted, list(orphaned))


def _without_deleted(
    connection: Connection, stored: Sequence[GoldenEntry], entries: Sequence[GoldenEntry]
) -> tuple[list[GoldenEntry], list[str]]:
    """Remove the entries that a person deleted; return the others, and the removed questions."""
    present = {key for entry in stored for key in (entry.golden_id, entry.normalized_query)}
    rows = list(queries().deleted_golden(connection))
    gone = {key for row in rows for key in (row.golden_id, row.normalized_query)} - present
    kept, deleted = [], []
    for entry in entries:
        keys = {entry.golden_id, entry.normalized_query}
        if keys & gone and not keys & present:
            deleted.append(entry.query)
        else:
            kept.append(entry)
    return kept, deleted


def _write_changes(
    connection: Connection,
    stored: Sequence[GoldenEntry],
    entries: Sequence[GoldenEntry],
    changes: Sequence[GoldenChange],
) -> None:
    queries().defer_golden_repeats(connection)
    taken = {entry.golden_id for entry in (*stored, *entries)}
    delete_golden(connection, [change.before for change in changes if change.after is None])
    queries().update_golden(
        connection,
        [
            _row(change.after) | {"stored_id": change.before.golden_id}
            for change in changes
            if change.before and change.after
        ],
    )
    queries().insert_golden(
        connection,
        [
            _row(change.after)
            | {"golden_id": change.after.golden_id or _new_id(change.after, taken)}
            for change in changes
            if change.before is None and change.after
        ],
    )


def lock_golden(connection: Connection, *, origin: str, reason: str = "") -> None:
    """Lock the dataset against changes by others until commit.

    Args:
        connection: In a transaction.
        origin: File, command or run, for the history.
        reason: Why questions are removed or changed, for the history; see `withdrawn_golden`.
    """
    queries().lock_golden(connection)
    queries().set_transaction(connection, name="rag.golden_origin", value=origin)
    queries().set_transaction(connection, name="rag.golden_reason", value=reason)


def delete_golden(connection: Connection, entries: Iterable[GoldenEntry | None]) -> None:
    """Delete questions, in a transaction that called `lock_golden`."""
    golden_ids = [entry.golden_id for entry in entries if entry]
    queries().delete_golden(connection, golden_ids=golden_ids)


def find_broken(connection: Connection) -> list[BrokenEntry]:
    """Return the questions with a relevant note that was deleted. Property 31."""
    states = [row for row in queries().golden_note_states(connection) if row.deleted]
    return [
        BrokenEntry(
            *question, tuple(row.note_id for row in notes), tuple(row.name for row in notes)
        )
        for question, rows in groupby(states, key=attrgetter("golden_id", "query"))
        if (notes := list(rows))
    ]


def questions_naming(connection: Connection, note_ids: Iterable[UUID]) -> dict[UUID, str]:
    """Return the questions that have one of these notes among their relevant ones, by id."""
    rows = queries().golden_questions_naming(connection, note_ids=list(note_ids))
    return {row.id: row.query for row in rows}


def _row(entry: GoldenEntry) -> dict[str, Any]:
    return {
        "golden_id": entry.golden_id,
        "query": entry.query,
        "normalized_query": entry.normalized_query,
        "relevant_note_ids": list(entry.relevant_note_ids),
        "expected_answer": entry.expected_answer,
        "category": entry.category,
        "difficulty": entry.difficulty,
        "tags": list(entry.tags),
        "created_at": entry.created_at,
        "updated_at": entry.updated_at,
        "places": Jsonb([place.to_json() for place in entry.places]),
    }


def _new_id(entry: GoldenEntry, taken: Container[UUID | None]) -> UUID:
    """The id derived from the question, or another one if a reworded question still has it."""
    own = uuid5(NAMESPACE, entry.normalized_query)
    return uuid4() if own in taken else own
