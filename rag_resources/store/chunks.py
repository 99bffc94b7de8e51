"""Rows of `chunks` and what is derived from them: the statistics of full-text search."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from rag_resources.core.errors import IndexingError
from rag_resources.core.messages import Message
from rag_resources.core.types import Chunk, Note, TimeWindow
from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries


@dataclass(frozen=True, slots=True)
class BrokenNote:
    """A note whose chunks break a property: `bounds`, `sequence` or `missing`."""

    note_id: UUID
    problem: str


@dataclass(frozen=True, slots=True)
class ChunkSpans:
    """A chunked note with the spans of its chunks, in order."""

    note_id: UUID
    content: str
    spans: tuple[tuple[int, int], ...]


def select_notes_to_chunk(
    connection: Connection,
    window: TimeWindow,
    *,
    chunking_hash: str,
    skipped: Sequence[UUID],
    batch_size: int,
) -> list[UUID]:
    """Return the newest notes of a window that need chunking, not yet claimed."""
    rows = queries().select_notes_to_chunk(
        connection,
        month_start=window.start,
        month_end=window.end,
        chunking_hash=chunking_hash,
        skipped=list(skipped),
        batch_size=batch_size,
    )
    return [row.id for row in rows]


def claim_note(connection: Connection, note_id: UUID, *, chunking_hash: str) -> Note | None:
    """Lock a note that still needs chunking until commit; None if another run has or had it."""
    row = queries().claim_note_to_chunk(connection, note_id=note_id, chunking_hash=chunking_hash)
    return Note(row.id, row.title, row.content, row.created_at) if row else None


def replace_chunks(
    connection: Connection, note_id: UUID, chunks: Sequence[Chunk], *, chunking_hash: str
) -> None:
    """Give a claimed note exactly these chunks and queue it for embedding.

    Raises:
        IndexingError: The note does not have as many chunks as given; roll back.
    """
    ids = [chunk.chunk_id for chunk in chunks]
    queries().announce_chunking(connection)
    queries().request_embeddings(connection, note_id=note_id)
    queries().delete_other_chunks(connection, note_id=note_id, ids=ids)
    queries().upsert_chunks(
        connection,
        note_id=note_id,
        ids=ids,
        contents=[chunk.content for chunk in chunks],
        contexts=[chunk.context for chunk in chunks],
        topics=[chunk.topics for chunk in chunks],
        starts=[chunk.start_char for chunk in chunks],
        ends=[chunk.end_char for chunk in chunks],
    )
    queries().mark_chunked(connection, note_id=note_id, chunking_hash=chunking_hash)
    stored: int = queries().count_chunks(connection, note_id=note_id)
    if stored != len(chunks):
        raise IndexingError(Message.CHUNKS_NOT_STORED, note_id=note_id, stored=stored)


def find_broken(connection: Connection, window: TimeWindow, *, limit: int) -> list[BrokenNote]:
    """Return chunked notes of a window whose chunks break bounds or sequence."""
    rows = queries().find_broken_chunks(
        connection, month_start=window.start, month_end=window.end, row_limit=limit
    )
    return [BrokenNote(row.note_id, row.problem) for row in rows]


def stream_spans(connection: Connection, window: TimeWindow) -> Iterator[ChunkSpans]:
    """Yield every chunked note of a window, without holding them all."""
    with connection.cursor(name="chunk_spans") as cursor:
        cursor.itersize = 200
        cursor.execute(
            queries().stream_chunk_spans.sql,
            {"month_start": window.start, "month_end": window.end},
        )
        for row in cursor:
            yield ChunkSpans(
                row.note_id, row.content, tuple(zip(row.starts, row.ends, strict=True))
            )


def refresh_statistics(connection: Connection) -> None:
    """Bring the statistics of full-text search up to date: of the lexemes and of the corpus."""
    queries().refresh_lexeme_statistics(connection)
    queries().refresh_corpus_statistics(connection)


def statistics_are_current(connection: Connection) -> bool:
    """Whether the lexeme statistics count the chunks there are."""
    current: bool = queries().statistics_are_current(connection)
    return current
