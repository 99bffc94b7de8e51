"""Rows of `chunks`, and the full-text search statistics derived from them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from rag_resources.core.errors import IndexingError
from rag_resources.core.types import Chunk, Note, TimeWindow
from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries
from rag_resources.languages.messages import _
from rag_resources.store.holds import refuse_while_held

LARGE_INDEX = 10_000
"""Number of chunks from which the full-text search statistics may be slightly out of date."""


@dataclass(frozen=True, slots=True)
class NoteToChunk:
    """A note that needs chunking, and the size of its text."""

    note_id: UUID
    size_bytes: int


@dataclass(frozen=True, slots=True)
class BrokenNote:
    """A note whose chunks break a property: `bounds`, `sequence` or `missing`."""

    note_id: UUID
    problem: str


@dataclass(frozen=True, slots=True)
class ChunkSpans:
    """A chunked note with the ranges of its chunks, in order."""

    note_id: UUID
    content: str
    spans: tuple[tuple[int, int], ...]


def select_notes_to_chunk(
    connection: Connection,
    window: TimeWindow,
    *,
    chunking_hash: str,
    skipped: Sequence[UUID],
    batch_size: int | None,
) -> list[NoteToChunk]:
    """Return the newest notes of a window that need chunking; this does not claim them."""
    rows = queries().select_notes_to_chunk(
        connection,
        month_start=window.start,
        month_end=window.end,
        chunking_hash=chunking_hash,
        skipped=list(skipped),
        batch_size=batch_size,
    )
    return [NoteToChunk(row.id, row.size_bytes) for row in rows]


def count_notes_to_chunk(connection: Connection, window: TimeWindow, *, chunking_hash: str) -> int:
    """Count the notes of a window that need chunking, claimed or not."""
    return len(
        select_notes_to_chunk(
            connection, window, chunking_hash=chunking_hash, skipped=[], batch_size=None
        )
    )


def claim_notes(
    connection: Connection, note_ids: Sequence[UUID], *, chunking_hash: str
) -> list[Note]:
    """Lock the given notes that need chunking and are unclaimed, until commit.

    Raises:
        MigrationHeldError: The migration was rolled back, and its chunks are being dropped.
    """
    queries().announce_chunking(connection)
    rows = list(
        queries().claim_notes_to_chunk(
            connection, note_ids=list(note_ids), chunking_hash=chunking_hash
        )
    )
    if any(row.rolled_back for row in rows):
        refuse_while_held(connection)
    return [Note(row.id, row.title, row.content, row.created_at, tuple(row.tags)) for row in rows]


def replace_chunks(
    connection: Connection, chunks: Mapping[UUID, Sequence[Chunk]], *, chunking_hash: str
) -> None:
    """Replace the chunks of claimed notes; notes whose chunks changed are queued for embedding.

    Raises:
        IndexingError: The number of stored chunks of a note is wrong; roll back.
    """
    note_ids = list(chunks)
    given = [chunk for cut in chunks.values() for chunk in cut]
    rows = queries().find_changed_notes(connection, note_ids=note_ids, **_described(given))
    changed = [row.note_id for row in rows]
    if changed:
        new = [chunk for note_id in changed for chunk in chunks[note_id]]
        ids = [chunk.chunk_id for chunk in new]
        queries().request_vectors(connection, note_ids=changed)
        queries().request_graph(connection, note_ids=changed)
        described = _described(new) | {"contents": [chunk.content for chunk in new]}
        queries().settle_provisional_chunks(connection, note_ids=changed, **described)
        queries().delete_other_chunks(connection, note_ids=changed, ids=ids)
        queries().upsert_chunks(
            connection, indexes=[chunk.chunk_index for chunk in new], **described
        )
    queries().mark_chunked(connection, note_ids=note_ids, chunking_hash=chunking_hash)
    counts = dict(queries().count_chunks(connection, note_ids=note_ids))
    for note_id, cut in chunks.items():
        stored = counts.get(note_id, 0)
        if stored != len(cut):
            raise IndexingError(
                _("Not all chunks of the note were stored."), note_id=note_id, stored=stored
            )


def _described(chunks: Sequence[Chunk]) -> dict[str, list[Any]]:
    """Return the columns that may change in a chunk whose content stays the same."""
    return {
        "parents": [chunk.note_id for chunk in chunks],
        "ids": [chunk.chunk_id for chunk in chunks],
        "contexts": [chunk.context for chunk in chunks],
        "topics": [chunk.topics for chunk in chunks],
        "rendered": [chunk.rendered for chunk in chunks],
        "starts": [chunk.start_char for chunk in chunks],
        "ends": [chunk.end_char for chunk in chunks],
    }


def find_broken(connection: Connection, window: TimeWindow, *, limit: int) -> list[BrokenNote]:
    """Return chunked notes of a window with wrong chunk bounds, or with a broken sequence."""
    rows = queries().find_broken_chunks(
        connection, month_start=window.start, month_end=window.end, row_limit=limit
    )
    return [BrokenNote(row.note_id, row.problem) for row in rows]


def stream_spans(connection: Connection, window: TimeWindow) -> Iterator[ChunkSpans]:
    """Yield every chunked note of a window, without loading all of them at once."""
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
    """Bring the full-text search statistics up to date, of the lexemes and of the corpus.

    The cost grows with the changes since the last time. All chunks are counted only if the
    statistics are found to be wrong. Another refresh waits until the caller commits; searches do
    not wait.
    """
    queries().lock_lexeme_statistics(connection)
    (found,) = queries().compare_statistics(connection)
    if found.wrong:
        queries().recount_words(connection)
    queries().refresh_lexeme_statistics(connection)


def update_statistics(
    connection: Connection, *, rewritten: int = 0, forgetting: bool = False
) -> bool:
    """Refresh the full-text search statistics if that is due.

    A small index is refreshed after every change. In a large index, word weights hardly move until
    1 % of the chunks have changed, so a refresh, which makes cached answers stale, waits for that
    many changes, for an average length that differs by 5 %, or for a day.

    Args:
        connection: In a transaction.
        rewritten: How many chunks were written, even if their number stayed the same.
        forgetting: Whether texts were deleted for good, so that their words must go at once.

    Returns:
        Whether the statistics were refreshed.
    """
    (found,) = queries().compare_statistics(connection)
    is_minor = found.roughly and rewritten * 100 <= found.chunk_count
    may_wait = is_minor and not forgetting and found.chunk_count >= LARGE_INDEX
    if may_wait and not found.wrong:
        return False
    if not found.wrong and found.exactly and not rewritten:
        return False
    refresh_statistics(connection)
    return True
