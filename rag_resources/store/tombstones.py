"""Rows of `tombstones`: deleted notes, so that their source does not bring them back.

What a person may do with them is decided in `ingestion.deletion`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from rag_resources.core.text import content_sha256
from rag_resources.core.types import NoteRecord
from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries
from rag_resources.store.notes import uuid_or_none


class Deletion(StrEnum):
    """Why a note was deleted."""

    PURGED = "purged"
    """It expired; nothing of it is kept."""

    DELETED = "deleted"
    """A person deleted it."""

    ABSENT = "absent"
    """Its file was gone from a mirrored source; it comes back with its file."""


@dataclass(frozen=True, slots=True)
class Tombstone:
    """A deleted note.

    Attributes:
        external_id: Its id, for a note that came from no source.
        reason: The reason that the person gave; may be empty.
        note: The deleted row; None if it is not kept.
    """

    note_id: UUID
    source: str
    external_id: str
    content_sha256: bytes
    kind: Deletion
    reason: str
    deleted_at: datetime
    note: Mapping[str, Any] | None


def find_tombstones(
    connection: Connection, records: Sequence[NoteRecord], *, tenant: str, source: str
) -> list[Tombstone | None]:
    """Return, for each record, the tombstone of a note with the same identity and content.

    No note can be deleted until the transaction ends.
    """
    queries().lock_tombstones(connection)
    keys = [(record.external_id, content_sha256(record.content)) for record in records]
    rows = queries().find_tombstones(
        connection,
        tenant=tenant,
        source=source,
        external_ids=[external_id for external_id, _ in keys],
        hashes=[content_hash for _, content_hash in keys],
    )
    found = {(row.external_id, bytes(row.content_sha256)): _tombstone(row) for row in rows}
    return [found.get(key) for key in keys]


def list_tombstones(
    connection: Connection, *, tenant: str, name: str | None = None, limit: int | None = None
) -> tuple[list[Tombstone], int]:
    """Return deleted notes, latest deletion first, and how many there are without the limit.

    Args:
        connection: In a transaction.
        tenant: The owner.
        name: Only the notes with this id or external id.
        limit: The most to return; None returns all.
    """
    rows = list(
        queries().list_tombstones(
            connection, tenant=tenant, name=name, id=uuid_or_none(name), row_limit=limit
        )
    )
    return [_tombstone(row) for row in rows], rows[0].total if rows else 0


def forget_deleted(connection: Connection, *, days: int) -> None:
    """Drop the kept rows of notes that a person deleted at least this many days ago."""
    queries().forget_deleted_tombstones(connection, days=days)


def deleted_names(connection: Connection, *, tenant: str) -> set[str]:
    """Return the ids and external ids of deleted notes that no stored note has."""
    rows = queries().deleted_note_names(connection, tenant=tenant)
    return {name for row in rows for name in (row.note_id, row.external_id) if name}


def lock_deletions(connection: Connection) -> None:
    """Wait for ingestions under way, before locking notes that are to be deleted."""
    queries().lock_deletions(connection)


def bury_notes(
    connection: Connection,
    note_ids: Sequence[UUID],
    *,
    kind: Deletion,
    reason: str = "",
    keep: bool = False,
) -> list[UUID]:
    """Delete notes and everything derived from them; each leaves a tombstone.

    Args:
        connection: In a transaction that called `lock_deletions`.
        note_ids: Notes that are already gone are skipped.
        kind: Whether they expired or a person deletes them.
        reason: The person's reason.
        keep: Whether the tombstones keep the notes, so that they can be restored.

    Returns:
        The deleted notes.
    """
    rows = queries().bury_notes(
        connection, note_ids=list(note_ids), kind=kind.value, reason=reason, keep=keep
    )
    return [row.id for row in rows]


def forget_expired(connection: Connection, *, grace_hours: int) -> None:
    """Forget the kept notes that expired `grace_hours` ago or earlier."""
    queries().forget_expired_tombstones(connection, grace_hours=grace_hours)


def lift_tombstone(connection: Connection, tombstone: Tombstone) -> None:
    """Remove a tombstone; if it keeps a note, the note is restored and needs indexing."""
    key = {"note_id": tombstone.note_id, "content_sha256": tombstone.content_sha256}
    queries().restore_note(connection, **key)
    queries().delete_tombstone(connection, **key)


def _tombstone(row: Any) -> Tombstone:
    return Tombstone(
        row.note_id,
        row.source,
        row.external_id,
        bytes(row.content_sha256),
        Deletion(row.kind),
        row.reason,
        row.deleted_at,
        row.note,
    )
