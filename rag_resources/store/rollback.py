"""What going back to whole notes reads and drops."""

from dataclasses import dataclass
from uuid import UUID

from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries


@dataclass(frozen=True, slots=True)
class ModelVectors:
    """Which vectors there are of a model.

    Attributes:
        notes_missing: Notes that can be found and have no whole-note vector of it.
        chunks: Whether there are any, with vectors or without.
        chunk_vectors: Whether there are any.
    """

    notes_missing: int
    chunks: bool
    chunk_vectors: bool


@dataclass(frozen=True, slots=True)
class DroppedBatch:
    """Some notes whose chunks were to go.

    Attributes:
        last: The last of them, in order of ids.
        busy: How many others have in hand: they are left as they were.
    """

    last: UUID
    busy: int


def wait_for_chunking(connection: Connection) -> None:
    """Wait for the notes being chunked; until commit none is, then a hold written here counts."""
    queries().lock_chunking(connection)


def drop_batch(connection: Connection, after: UUID, *, batch_size: int) -> DroppedBatch | None:
    """Take the next notes, in order of ids, back to what they were before chunking.

    Nothing is waited for while a note is locked: neither retrievals nor writers wait long.

    Returns:
        None if no note after that one has anything of chunking.
    """
    queries().announce_dropping(connection)
    rows = queries().select_notes_to_drop(connection, after=after, batch_size=batch_size)
    found = [row.id for row in rows]
    if not found:
        return None
    queries().lock_pending_of_notes(connection, note_ids=found)
    claimed = [row.id for row in queries().claim_notes_to_drop(connection, note_ids=found)]
    queries().drop_pending_of_notes(connection, note_ids=claimed)
    queries().drop_chunks_of_notes(connection, note_ids=claimed)
    queries().mark_unchunked(connection, note_ids=claimed)
    return DroppedBatch(found[-1], len(found) - len(claimed))


def vectors_to_serve(connection: Connection, model: str) -> ModelVectors | None:
    """Return which vectors a model has; None if it is not known, or retired."""
    row = queries().vectors_to_serve(connection, model=model)
    return ModelVectors(*row) if row else None
