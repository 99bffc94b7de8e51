"""Rows of `chunk_embeddings`, `note_embeddings` and the queue of the notes that wait for them.

The models are `store.models`, the HNSW indexes `store.vector_indexes`.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import numpy as np
from pgvector import HalfVector

from rag_resources.core.types import ModelInfo, TimeWindow, Vectors
from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries


@dataclass(frozen=True, slots=True)
class ChunkText:
    """A chunk whose vectors are to be made."""

    chunk_id: UUID
    note_id: UUID
    content: str
    context: str
    content_sha256: bytes
    contextual_sha256: bytes


@dataclass(frozen=True, slots=True)
class PendingNote:
    """A queued note, claimed."""

    note_id: UUID
    created_at: datetime


@dataclass(frozen=True, slots=True)
class NoteText:
    """A note whose whole-note vector is to be made."""

    note_id: UUID
    created_at: datetime
    content: str
    content_sha256: bytes


@dataclass(frozen=True, slots=True)
class Gaps:
    """What the chunks of a window lack of a model."""

    chunks: int
    missing: int
    stale: int
    wrong_dimension: int

    @property
    def total(self) -> int:
        """Chunks with any gap, at most counted once per kind."""
        return self.missing + self.stale + self.wrong_dimension


@dataclass(frozen=True, slots=True)
class EmbeddedSample:
    """A chunk with its stored vectors, each `(dimension,)` float32."""

    content: str
    context: str
    embedding: Vectors
    contextual_embedding: Vectors


def claim_pending(
    connection: Connection,
    model: str,
    window: TimeWindow,
    *,
    skipped: Collection[UUID],
    batch_size: int,
) -> list[PendingNote]:
    """Lock the newest queued notes of a window that nobody else has locked, until commit."""
    rows = queries().claim_pending_notes(
        connection,
        model=model,
        month_start=window.start,
        month_end=window.end,
        skipped=list(skipped),
        batch_size=batch_size,
    )
    return [PendingNote(*row) for row in rows]


def count_pending(
    connection: Connection, model: str, window: TimeWindow, *, skipped: Collection[UUID]
) -> int:
    """Count the queued notes of a window, whoever has them locked."""
    count: int = queries().count_pending_notes(
        connection,
        model=model,
        month_start=window.start,
        month_end=window.end,
        skipped=list(skipped),
    )
    return count


def select_chunk_texts(
    connection: Connection, model: str, note_ids: Sequence[UUID]
) -> list[ChunkText]:
    """Return the chunks of some notes that lack current vectors."""
    rows = queries().select_chunks_to_embed(connection, model=model, note_ids=list(note_ids))
    return [ChunkText(*row) for row in rows]


def claim_note_texts(
    connection: Connection,
    model: str,
    window: TimeWindow,
    *,
    skipped: Collection[UUID],
    batch_size: int,
) -> list[NoteText]:
    """Claim the newest notes of a window that lack a current whole-note vector, until commit.

    Returns:
        Those that are free; fewer than claimed if another run was done with some just before.
    """
    claimed = queries().claim_notes_to_embed(
        connection,
        model=model,
        month_start=window.start,
        month_end=window.end,
        skipped=list(skipped),
        batch_size=batch_size,
    )
    rows = queries().select_note_texts(
        connection, model=model, note_ids=[row.id for row in claimed]
    )
    return [NoteText(*row) for row in rows]


def count_notes_to_embed(
    connection: Connection, model: str, window: TimeWindow, *, skipped: Collection[UUID]
) -> int:
    """Count the notes that lack a current whole-note vector, whoever has claimed them."""
    count: int = queries().count_notes_to_embed(
        connection,
        model=model,
        month_start=window.start,
        month_end=window.end,
        skipped=list(skipped),
    )
    return count


def find_reusable(
    connection: Connection, model: str, hashes: Iterable[bytes]
) -> dict[bytes, HalfVector]:
    """Return the vectors a model already has, by the SHA-256 of their texts."""
    rows = queries().find_reusable_vectors(connection, model=model, hashes=list(hashes))
    return {row.sha256: row.embedding for row in rows}


def write_chunk_vectors(
    connection: Connection,
    model: str,
    chunks: Sequence[ChunkText],
    vectors: Mapping[bytes, HalfVector],
) -> None:
    """Write both vectors of chunks by COPY and one merge.

    Args:
        connection: In a transaction.
        model: Registered.
        chunks: Those to write.
        vectors: By text hash; holds the hashes of both texts of every chunk.
    """
    queries().create_incoming_chunk_embeddings(connection)
    command = queries().copy_incoming_chunk_embeddings.sql
    with connection.cursor() as cursor, cursor.copy(command) as copy:
        copy.set_types(["uuid", "text", "halfvec", "halfvec", "bytea", "bytea"])
        for chunk in chunks:
            copy.write_row(
                (
                    chunk.chunk_id,
                    model,
                    vectors[chunk.content_sha256],
                    vectors[chunk.contextual_sha256],
                    chunk.content_sha256,
                    chunk.contextual_sha256,
                )
            )
    queries().merge_incoming_chunk_embeddings(connection)


def write_note_vectors(
    connection: Connection, model: str, notes: Sequence[NoteText], vectors: Sequence[HalfVector]
) -> list[UUID]:
    """Write whole-note vectors, one per note, by COPY and one merge.

    Returns:
        The notes that have theirs now; not those that are gone or being deleted.
    """
    queries().create_incoming_note_embeddings(connection)
    command = queries().copy_incoming_note_embeddings.sql
    with connection.cursor() as cursor, cursor.copy(command) as copy:
        copy.set_types(["uuid", "text", "halfvec", "bytea"])
        for note, vector in zip(notes, vectors, strict=True):
            copy.write_row((note.note_id, model, vector, note.content_sha256))
    rows = queries().merge_incoming_note_embeddings(connection)
    return [row.note_id for row in rows]


def complete_pending(connection: Connection, model: str, note_ids: Sequence[UUID]) -> list[UUID]:
    """Take notes off the queue whose chunks all have current vectors; returns those."""
    rows = queries().complete_pending_notes(connection, model=model, note_ids=list(note_ids))
    return [row.note_id for row in rows]


def count_gaps(connection: Connection, info: ModelInfo, window: TimeWindow) -> Gaps:
    """Count what the chunks of a window lack of a model."""
    row = queries().count_embedding_gaps(
        connection,
        model=info.name,
        dimension=info.dimension,
        month_start=window.start,
        month_end=window.end,
    )
    return Gaps(*row)


def count_chunk_vectors(connection: Connection, model: str) -> int:
    """Return how many chunks have vectors of a model."""
    count: int = queries().count_embeddings(connection, model=model)
    return count


def sample_vectors(connection: Connection, model: str, *, limit: int) -> list[EmbeddedSample]:
    """Return some chunks with their vectors, the same ones every time."""
    rows = queries().sample_embeddings(connection, model=model, row_limit=limit)
    return [
        EmbeddedSample(
            row.content,
            row.context,
            row.embedding.to_numpy().astype(np.float32),
            row.contextual_embedding.to_numpy().astype(np.float32),
        )
        for row in rows
    ]
