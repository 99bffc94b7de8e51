"""Rows of `notes`: writing the records of a source, finding and reading notes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID, uuid5

from psycopg.types.json import Jsonb

from rag_resources.core.text import content_sha256
from rag_resources.core.types import DateSource, Note, NoteRecord, TimeWindow
from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries

NAMESPACE = UUID("6f1d7c7e-5a0e-4c0c-9d6e-0b5a2f9c3e11")
"""Namespace of note ids: the same record gives the same id in every database."""

STATEMENT_CHARS = 4_000_000
"""Most characters that one statement writes, unless a single note is longer."""


class Upsert(StrEnum):
    """The effect of an upsert on a record."""

    INSERTED = "inserted"
    UPDATED = "updated"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class HeldContent:
    """What kinds of content a database holds, seen from a source of a tenant.

    Attributes:
        own: The tenant has notes of the source.
        others: It has notes of other sources, not counting documents.
        golden: It has golden questions.
        notes: Anybody has a note.
    """

    own: bool
    others: bool
    golden: bool
    notes: bool


@dataclass(frozen=True, slots=True)
class OutsideNotes:
    """The notes dated outside every partition: their number, date range, and first external ids."""

    count: int
    earliest: datetime
    latest: datetime
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FileDatedMonth:
    """A month (`YYYY-MM`), its notes, and how many of these only have the date of their file."""

    month: str
    notes: int
    file_dated: int


@dataclass(frozen=True, slots=True)
class FilterValues:
    """What notes can be filtered by: their tags, sources and metadata keys, first and last date.

    Attributes:
        lists: The metadata keys whose value is a list or an object in some note.
    """

    tags: tuple[str, ...]
    sources: tuple[str, ...]
    keys: tuple[str, ...]
    lists: tuple[str, ...]
    first: datetime | None
    last: datetime | None


@dataclass(frozen=True, slots=True)
class StoredNote:
    """A note in a list, without its content.

    Attributes:
        external_id: Its id, for a note that came from no source.
    """

    note_id: UUID
    source: str
    external_id: str
    title: str
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None
    chunked: bool
    tags: tuple[str, ...]
    metadata: Mapping[str, Any]
    date_source: DateSource | None


_CHARS_BEFORE = 6_000
_CHARS_AFTER = 1_500
"""Characters read around a cited range: its block, and the columns of a table."""


@dataclass(frozen=True, slots=True)
class CitedNote:
    """A range of a stored note.

    Attributes:
        text: The characters of the range; fewer if the note is shorter by now.
        content_sha256: Hash of the note's whole content.
        around: The range with the characters before and after it.
        start: Where the range begins in `around`.
    """

    text: str
    content_sha256: bytes
    around: str
    start: int


def note_id(tenant: str, source: str, external_id: str) -> UUID:
    """Return the id of a record of a source."""
    return uuid5(NAMESPACE, "\0".join((tenant, source, external_id)))


def upsert_notes(
    connection: Connection, records: Sequence[NoteRecord], *, tenant: str, source: str
) -> list[Upsert]:
    """Write the records that are new or changed.

    This takes two round trips, or more if a record is repeated or the records are long.

    Returns:
        The effect on each, in the order of the records.
    """
    outcomes: list[Upsert] = []
    for part in _statements(records):
        changed = _select_changed(connection, part, tenant=tenant, source=source)
        written = _write(connection, changed, tenant=tenant, source=source) if changed else {}
        outcomes += [written.get(record.external_id, Upsert.UNCHANGED) for record in part]
    return outcomes


def _select_changed(
    connection: Connection, records: Sequence[NoteRecord], *, tenant: str, source: str
) -> list[NoteRecord]:
    given = [
        (
            record.external_id,
            record.title,
            content_sha256(record.content).hex(),
            record.tags,
            dict(record.metadata),
            record.created_at.isoformat(),
            record.date_source,
        )
        for record in records
    ]
    rows = queries().select_changed_notes(
        connection, tenant=tenant, source=source, given=Jsonb(given)
    )
    changed = {row.external_id for row in rows}
    return [record for record in records if record.external_id in changed]


def _write(
    connection: Connection, records: Sequence[NoteRecord], *, tenant: str, source: str
) -> dict[str, Upsert]:
    rows = queries().upsert_notes(
        connection,
        tenant=tenant,
        source=source,
        ids=[note_id(tenant, source, record.external_id) for record in records],
        external_ids=[record.external_id for record in records],
        titles=[record.title for record in records],
        contents=[record.content for record in records],
        tags=[Jsonb(list(record.tags)) for record in records],
        metadata=[Jsonb(dict(record.metadata)) for record in records],
        created_at=[record.created_at for record in records],
        date_sources=[record.date_source for record in records],
    )
    return {row.external_id: Upsert.INSERTED if row.inserted else Upsert.UPDATED for row in rows}


def _statements(records: Iterable[NoteRecord]) -> Iterator[list[NoteRecord]]:
    """Split records into statements: each writes a note only once, and limited text."""
    part: dict[str, NoteRecord] = {}
    chars = 0
    for record in records:
        size = len(record.title) + len(record.content)
        size += len(str(record.tags)) + len(str(record.metadata))
        if part and (record.external_id in part or chars + size > STATEMENT_CHARS):
            yield list(part.values())
            part, chars = {}, 0
        part[record.external_id] = record
        chars += size
    if part:
        yield list(part.values())


def list_notes(
    connection: Connection, *, tenant: str, name: str | None = None, limit: int | None = None
) -> tuple[list[StoredNote], int]:
    """Return the notes of a tenant, newest first, and how many there are without the limit.

    Args:
        connection: In a transaction.
        tenant: The owner.
        name: Only the notes with this id or external id; one for each source that uses it.
        limit: The most to return; None returns all.
    """
    rows = list(
        queries().list_notes(
            connection, tenant=tenant, name=name, id=uuid_or_none(name), row_limit=limit
        )
    )
    notes = [
        StoredNote(
            row.id,
            row.source,
            row.external_id,
            row.title,
            row.created_at,
            row.updated_at,
            row.expires_at,
            row.chunked,
            tuple(row.tags),
            row.metadata,
            row.date_source,
        )
        for row in rows
    ]
    return notes, rows[0].total if rows else 0


def find_note(connection: Connection, name: str, *, tenant: str) -> UUID | None:
    """Return the id of the note with this id or external id; None if there is none."""
    found: UUID | None = queries().find_note(
        connection, name=name, id=uuid_or_none(name), tenant=tenant
    )
    return found


def creation_times(
    connection: Connection, names: Sequence[str], *, tenant: str, source: str
) -> dict[str, datetime]:
    """Return when notes of a source were created, by external id."""
    rows = queries().read_creation_times(
        connection, tenant=tenant, source=source, external_ids=list(names)
    )
    return {row.external_id: row.created_at for row in rows}


def uuid_or_none(name: str | None) -> UUID | None:
    """Return a name as a UUID; None if it is not one."""
    with suppress(ValueError):
        return UUID(name) if name else None
    return None


def count_notes(connection: Connection, window: TimeWindow) -> int:
    """Count the notes of a window that have not expired."""
    count: int = queries().count_notes(connection, month_start=window.start, month_end=window.end)
    return count


def external_ids(connection: Connection, note_ids: Iterable[UUID]) -> dict[UUID, str]:
    """Return the external ids of the given notes; deleted ones are left out."""
    rows = queries().select_external_ids(connection, note_ids=list(note_ids))
    return {row.id: row.external_id for row in rows}


def fetch_notes(connection: Connection, note_ids: Iterable[UUID]) -> dict[UUID, Note]:
    """Read notes by id; missing ones are left out."""
    rows = queries().fetch_notes(connection, note_ids=list(note_ids))
    return {
        row.id: Note(
            row.id, row.title, row.content, row.created_at, tuple(row.tags), row.external_id
        )
        for row in rows
    }


def fetch_cited(
    connection: Connection, ranges: Sequence[tuple[UUID, int, int]]
) -> list[CitedNote | None]:
    """Read ranges of notes, in the order given; None if the note is gone.

    Args:
        connection: Any.
        ranges: Note id, start and end of each.
    """
    found: list[CitedNote | None] = [None] * len(ranges)
    rows = queries().fetch_cited(
        connection,
        note_ids=[note_id for note_id, _, _ in ranges],
        starts=[start for _, start, _ in ranges],
        ends=[end for _, _, end in ranges],
        before=_CHARS_BEFORE,
        after=_CHARS_AFTER,
    )
    for row in rows:
        start = min(ranges[row.number - 1][1], _CHARS_BEFORE)
        found[row.number - 1] = CitedNote(row.text, bytes(row.content_sha256), row.around, start)
    return found


def note_content(connection: Connection, wanted: UUID) -> str:
    """Return the content of a note; empty if it was deleted."""
    notes = fetch_notes(connection, [wanted])
    return notes[wanted].content if wanted in notes else ""


def list_outside(connection: Connection, window: TimeWindow, *, limit: int) -> OutsideNotes | None:
    """Return which notes are dated outside a window; None if there are none."""
    rows = list(
        queries().select_notes_outside(
            connection, first=window.start, after_last=window.end, row_limit=limit
        )
    )
    if not rows:
        return None
    first = rows[0]
    examples = tuple(row.external_id for row in rows)
    return OutsideNotes(first.total, first.earliest, first.latest, examples)


def list_file_dated_months(connection: Connection, *, tenant: str) -> list[FileDatedMonth]:
    """Return the months in which most notes only have the date of their file."""
    rows = queries().list_file_dated_months(connection, tenant=tenant)
    return [FileDatedMonth(row.month, row.notes, row.file_dated) for row in rows]


def names_in_source(
    connection: Connection, *, tenant: str, source: str, page: int = 10_000
) -> Iterator[str]:
    """Stream the external ids of a source's notes, not of documents, `page` at a time."""
    names = [""]
    while names:
        rows = queries().list_names_in_source(
            connection, tenant=tenant, source=source, after=names[-1], row_limit=page
        )
        names = [row.external_id for row in rows]
        yield from names


def claim_expired(connection: Connection, *, grace_hours: int, batch_size: int) -> list[UUID]:
    """Lock notes that expired `grace_hours` ago or earlier until commit.

    Returns:
        At most `batch_size`, earliest expiry first. Notes that another run has claimed are skipped.
    """
    rows = queries().claim_expired_notes(connection, grace_hours=grace_hours, batch_size=batch_size)
    return [row.id for row in rows]


def count_expired(connection: Connection, *, grace_hours: int) -> int:
    """Count the notes that expired `grace_hours` ago or earlier, claimed or not."""
    count: int = queries().count_expired_notes(connection, grace_hours=grace_hours)
    return count


def filter_values(connection: Connection) -> FilterValues:
    """Return what the tenant's notes can be filtered by; reads all of them."""
    row = queries().filter_values(connection)
    return FilterValues(
        tuple(row.tags), tuple(row.sources), tuple(row.keys), tuple(row.lists), row.first, row.last
    )


def held_content(connection: Connection, *, tenant: str, source: str) -> HeldContent:
    """Return what kinds of content there are, seen from a source of a tenant."""
    row = queries().held_content(connection, tenant=tenant, source=source)
    return HeldContent(row.own, row.others, row.golden, row.notes)


def list_sources(connection: Connection, *, tenant: str) -> dict[str, int]:
    """Count the notes of each of a tenant's sources, most notes first."""
    return {row.source: row.notes for row in queries().list_sources(connection, tenant=tenant)}
