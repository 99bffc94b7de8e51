"""Rows of `chunk_embeddings` and `note_embeddings`.

Models belong in `store.models`, HNSW indexes in `store.vector_indexes`, the notes that wait for
chunk vectors in `store.queues`.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from pgvector import HalfVector

from rag_resources.core.types import ModelInfo, TimeWindow
from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries


@dataclass(frozen=True, slots=True)
class ChunkText:
    """A chunk to embed."""

    chunk_id: UUID
    note_id: UUID
    content: str
    context: str
    content_sha256: bytes
    contextual_sha256: bytes


@dataclass(frozen=True, slots=True)
class NoteText:
    """A note to embed as a whole."""

    note_id: UUID
    created_at: datetime
    content: str
    content_sha256: bytes


@dataclass(frozen=True, slots=True)
class Gaps:
    """How many chunks of a window lack a valid vector of a model, by kind of gap."""

    chunks: int
    missing: int
    stale: int
    wrong_dimension: int

    @property
    def total(self) -> int:
        """The number of gaps; a chunk counts at most once per kind."""
        return self.missing + self.stale + self.wrong_dimension


def select_chunk_texts(
    connection: Connection, model: str, note_ids: Sequence[UUID]
) -> list[ChunkText]:
    """Return the chunks of the given notes that lack current vectors."""
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
        The claimed notes that still need a vector; another run may just have embedded some.
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
    """Count the notes that lack a current whole-note vector, claimed or not."""
    count: int = queries().count_notes_to_embed(
        connection,
        model=model,
        month_start=window.start,
        month_end=window.end,
        skipped=list(skipped),
    )
    return count


def find_reusable(
    connection: Connection, model: str, hashes: Iterable[bytes], *, note_ids: Iterable[UUID]
) -> dict[bytes, HalfVector]:
    """Return the vectors that a model already has for the given texts, by the texts' SHA-256.

    Vectors of any chunk are found, and whole-note vectors of the given notes.
    """
    rows = queries().find_reusable_vectors(
        connection, model=model, hashes=list(hashes), note_ids=list(note_ids)
    )
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
        chunks: The chunks to write.
        vectors: By text hash; must have a vector for both texts of every chunk.
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
        The notes that have their vector now; not those deleted or being deleted.
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
    """Remove notes from the queue if all their chunks have current vectors; return them."""
    rows = queries().complete_pending_notes(connection, model=model, note_ids=list(note_ids))
    return [row.note_id for row in rows]


def count_gaps(connection: Connection, info: ModelInfo, window: TimeWindow) -> Gaps:
    """Count the chunks of a window that lack a valid vector of a model."""
    row = queries().count_embedding_gaps(
        connection,
        model=info.name,
        dimension=info.dimension,
        month_start=window.start,
        month_end=window.end,
    )
    return Gaps(*row)
