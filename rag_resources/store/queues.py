"""The queues of the notes that wait for vectors of a model."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from rag_resources.core.types import TimeWindow
from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries


class NoteQueue(StrEnum):
    """A queue, by the kind of its vectors."""

    EMBEDDINGS = "chunk"
    WINDOWS = "window"


@dataclass(frozen=True, slots=True)
class QueuedNote:
    """A claimed note of a queue."""

    note_id: UUID
    created_at: datetime


def claim_queued(
    connection: Connection,
    model: str,
    window: TimeWindow,
    *,
    queue: NoteQueue,
    skipped: Collection[UUID],
    batch_size: int,
) -> list[QueuedNote]:
    """Lock the newest unclaimed queued notes of a time window, until commit."""
    rows = queries().claim_queued_notes(
        connection,
        **_months(model, window, queue),
        skipped=list(skipped),
        batch_size=batch_size,
    )
    return [QueuedNote(*row) for row in rows]


def count_queued(
    connection: Connection,
    model: str,
    window: TimeWindow,
    *,
    queue: NoteQueue,
    skipped: Collection[UUID] = (),
) -> int:
    """Count the queued notes of a time window, claimed or not."""
    notes: int = queries().count_queued_notes(
        connection, **_months(model, window, queue), skipped=list(skipped)
    )
    return notes


def count_pending(connection: Connection) -> dict[str, int]:
    """Return how many notes wait for vectors, by model."""
    return {row.model: row.notes for row in queries().count_pending_notes(connection)}


def is_empty(connection: Connection, model: str, window: TimeWindow, *, queue: NoteQueue) -> bool:
    """Whether no note of a time window is queued, not even one that is not chunked yet."""
    found: bool = queries().queue_is_empty(connection, **_months(model, window, queue))
    return found


def _months(model: str, window: TimeWindow, queue: NoteQueue) -> dict[str, object]:
    return {
        "model": model,
        "kind": queue.value,
        "month_start": window.start,
        "month_end": window.end,
    }
