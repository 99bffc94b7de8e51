"""Data that a rollback to whole notes reads and drops."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries


@dataclass(frozen=True, slots=True)
class ModelVectors:
    """Which vectors of a model exist.

    Attributes:
        notes_missing: Number of visible notes without a whole-note vector of the model.
        chunks: Whether any chunks exist, with or without vectors.
        kinds: The kinds of which it has any.
    """

    notes_missing: int
    chunks: bool
    kinds: Sequence[str]


@dataclass(frozen=True, slots=True)
class DroppedBatch:
    """A batch of notes whose chunks were dropped.

    Attributes:
        last: The last note of the batch, by id.
        busy: How many notes other runs have claimed; their chunks were not dropped.
    """

    last: UUID
    busy: int


def wait_for_chunking(connection: Connection) -> None:
    """Wait for running chunking transactions, and block new ones until commit.

    A hold written in this transaction is visible to every later one.
    """
    queries().lock_chunking(connection)


def drop_batch(connection: Connection, after: UUID, *, batch_size: int) -> DroppedBatch | None:
    """Replace the chunks of the next notes, by id, by provisional ones, as before chunking.

    While notes are locked this waits for nothing, so neither retrievals nor writers wait long.

    Returns:
        None if no note after `after` is chunked.
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
    queries().provide_chunks(connection, note_ids=claimed)
    return DroppedBatch(found[-1], len(found) - len(claimed))


def vectors_to_serve(connection: Connection, model: str) -> ModelVectors | None:
    """Return which vectors a model has; None if it is unknown or retired."""
    row = queries().vectors_to_serve(connection, model=model)
    return ModelVectors(*row) if row else None
