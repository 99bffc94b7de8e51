"""Rows of `notes` as a mirrored source sees them: their names and what is missing.

What follows from the files of the source is decided in `ingestion.mirror`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries


@dataclass(frozen=True, slots=True)
class MirroredNote:
    """A stored note of a source.

    Attributes:
        missing_since: When its file was first not found; None if it is there.
        is_golden: Whether a golden question names it.
    """

    id: UUID
    external_id: str
    content_sha256: bytes
    missing_since: datetime | None = None
    is_golden: bool = False


@dataclass(frozen=True, slots=True)
class MirrorChanges:
    """What is to be written.

    Attributes:
        moves: Notes with their name before and now.
        dropped: Notes that another one with the same content stands for.
        gone: All notes whose file is gone.
    """

    moves: Sequence[tuple[UUID, str, str]] = ()
    dropped: Sequence[UUID] = ()
    gone: Sequence[UUID] = ()


def lock_mirror(connection: Connection, *, tenant: str, source: str) -> None:
    """Let one process at a time mirror a source, until commit."""
    queries().lock_mirror(connection, tenant=tenant, source=source)


def list_mirrored(connection: Connection, *, tenant: str, source: str) -> list[MirroredNote]:
    """Return the notes of a source, not of documents."""
    return [
        MirroredNote(
            row.id,
            row.external_id,
            bytes(row.content_sha256),
            row.missing_since,
            row.is_golden,
        )
        for row in queries().list_mirrored_notes(connection, tenant=tenant, source=source)
    ]


def write_mirror(
    connection: Connection, changes: MirrorChanges, *, tenant: str, source: str
) -> datetime:
    """Drop, rename and mark notes; return the time of the database."""
    queries().drop_mirrored_notes(connection, note_ids=list(changes.dropped))
    ids = [move[0] for move in changes.moves]
    queries().rename_notes(
        connection,
        note_ids=ids,
        former=[move[1] for move in changes.moves],
        names=[move[2] for move in changes.moves],
    )
    now: datetime = queries().mark_missing(
        connection, tenant=tenant, source=source, note_ids=list(changes.gone)
    )
    return now


def write_addresses(
    connection: Connection, copies: Mapping[str, str], *, tenant: str, source: str
) -> None:
    """Store the names of identical copies with their note; forget those that are notes by now."""
    queries().write_addresses(
        connection,
        tenant=tenant,
        source=source,
        mains=list(copies.values()),
        copies=list(copies),
    )


def count_due(connection: Connection, *, tenant: str, source: str, grace_days: int) -> int:
    """Count the notes whose file has been gone for at least so many days."""
    count: int = queries().count_missing_due(
        connection, tenant=tenant, source=source, grace_days=grace_days
    )
    return count
