"""Rows of `rejected_records`, and the notes whose source states no date."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from psycopg.types.json import Jsonb

from rag_resources.core.types import RejectedRecord
from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries
from rag_resources.languages.messages import restored, to_stored


@dataclass(frozen=True, slots=True)
class Rejection:
    """A record that the last reading of a source could not read.

    Attributes:
        root: The folder or file that was read.
        location: Where in it: file, or file and line.
        reason: Why it was rejected, in Spanish.
    """

    source: str
    root: str
    location: str
    reason: str
    rejected_at: datetime


@dataclass(frozen=True, slots=True)
class UndatedNote:
    """A note that neither states its date nor has it in its name.

    Attributes:
        name: Its identifier in its source.
        created_at: When its file was changed.
    """

    name: str
    created_at: datetime

    @property
    def label(self) -> str:
        """Its name: where it was read is not stored."""
        return self.name


def list_rejection_roots(connection: Connection, *, tenant: str, source: str) -> list[str]:
    """Return the folders and files of a source whose last reading had rejected records."""
    return [
        row.root for row in queries().list_rejection_roots(connection, tenant=tenant, source=source)
    ]


def replace_rejections(
    connection: Connection,
    rejected: Sequence[RejectedRecord],
    *,
    tenant: str,
    source: str,
    root: str,
    covered: Sequence[str] = (),
) -> None:
    """Store the rejected records of one reading, in place of those of the previous reading.

    Args:
        connection: Open.
        rejected: In the order of reading.
        tenant: Owner of the notes.
        source: Name of the source.
        root: The folder or file that was read.
        covered: Other roots of earlier readings, which this one has read again.
    """
    queries().replace_rejections(
        connection,
        tenant=tenant,
        source=source,
        root=root,
        locations=[record.location for record in rejected],
        reasons=[Jsonb(to_stored(record.reason)) for record in rejected],
        covered=list(covered),
    )


def forget_rejections(
    connection: Connection, *, tenant: str, source: str, root: str, part: str
) -> None:
    """Delete the rejected records of a reading that are in a part of it, which was read again."""
    queries().forget_rejections(connection, tenant=tenant, source=source, root=root, part=part)


def list_rejections(
    connection: Connection, *, limit: int | None = None
) -> tuple[list[Rejection], int]:
    """Return rejected records in the order of reading, and how many there are without the limit."""
    rows = list(queries().list_rejections(connection, row_limit=limit))
    found = [
        Rejection(row.source, row.root, row.location, restored(row.reason), row.rejected_at)
        for row in rows
    ]
    return found, rows[0].total if rows else 0


def list_undated(connection: Connection, *, limit: int) -> tuple[list[UndatedNote], int]:
    """Return notes without a date, newest first, and how many there are without the limit."""
    rows = list(queries().list_undated(connection, row_limit=limit))
    found = [UndatedNote(row.external_id, row.created_at) for row in rows]
    return found, rows[0].total if rows else 0
