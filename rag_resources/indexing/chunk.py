"""Chunks the notes of a window. How a note is cut is in `core.chunking`."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from uuid import UUID

import psycopg

from rag_resources.core.blocks import read
from rag_resources.core.chunking import chunk_note
from rag_resources.core.chunking_version import chunking_hash
from rag_resources.core.configuration import ChunkingConfig
from rag_resources.core.contextual import (
    contextual_prefix,
    contextual_topics,
    summarize,
    with_header,
)
from rag_resources.core.errors import IndexingError
from rag_resources.core.text import is_blank
from rag_resources.core.types import Chunk, Note, TimeWindow
from rag_resources.database.claims import until_none_is_left
from rag_resources.database.faults import first_line, is_refusal
from rag_resources.database.pool import Database
from rag_resources.store import chunks as store
from rag_resources.store.failures import Failure, clear_failures, record_failure

BATCH_NOTES = 100
BATCH_BYTES = 160_000
"""Most notes and most text of a transaction, unless a single note is longer. It takes a fifth of a
second, and edits of these notes wait for it. Smaller ones spend their time on statements."""

SELECTED_NOTES = 5_000
"""Notes looked up together, because each look-up scans all finished notes of a window."""

WORKERS = 2
"""Threads: one cuts notes while the other's are being written; both steps take equally long."""

Progress = Callable[[int], None]


@dataclass
class ChunkReport:
    """How many notes of a window were chunked, and which failed."""

    notes: int = 0
    chunks: int = 0
    failed: list[Failure] = field(default_factory=list)

    def add(self, other: "ChunkReport") -> None:
        """Add the counts of another report."""
        self.notes += other.notes
        self.chunks += other.chunks
        self.failed.extend(other.failed)


def no_progress(_: int) -> None:
    """Ignore the progress."""


def build_chunks(note: Note, config: ChunkingConfig) -> list[Chunk]:
    """Cut a note into chunks with contextual prefixes; a blank note has no chunks."""
    if is_blank(note.content):
        return []
    chunks = chunk_note(note.note_id, note.content, config)
    summary = summarize(note.title, note.content)
    headers = [""] * len(chunks)
    if config.strategy == "structure":
        reading = read(note.content)
        headers = [reading.columns_at(chunk.start_char) for chunk in chunks]
    return [
        replace(
            chunk,
            context=with_header(contextual_prefix(summary, chunks, index), header),
            topics=with_header(contextual_topics(summary, chunks, index, note.tags), header),
        )
        for index, (chunk, header) in enumerate(zip(chunks, headers, strict=True))
    ]


def chunk_window(
    database: Database,
    window: TimeWindow,
    config: ChunkingConfig,
    *,
    progress: Progress = no_progress,
) -> ChunkReport:
    """Chunk every note of a window that needs it, newest first, in batches of one transaction each.

    A note that fails is recorded and left unchanged; the others continue. Notes claimed by
    another run come last: either that run finishes them, or it dies and they are done here.

    Args:
        database: Open.
        window: Range of the notes' creation times.
        config: How to cut.
        progress: Called with the number of notes done in each batch.

    Raises:
        DatabaseUnavailableError: The connection was lost; what was committed stays.
        IndexingError: Another run does not release its notes.

    Properties: 41, 42.
    """
    report, version = ChunkReport(), chunking_hash(config)

    def take_free(workers: ThreadPoolExecutor) -> int:
        busy: list[UUID] = []
        while True:
            skipped = [*busy, *(failure.note_id for failure in report.failed)]
            with database.transaction() as connection:
                selected = store.select_notes_to_chunk(
                    connection,
                    window,
                    chunking_hash=version,
                    skipped=skipped,
                    batch_size=SELECTED_NOTES,
                )
            if not selected:
                return len(busy)
            batches = list(_batches(selected))
            chunked = workers.map(partial(_chunk, database, config, version), batches)
            for batch, (taken, done) in zip(batches, chunked, strict=True):
                report.add(done)
                busy.extend(note for note in batch if note not in taken)
                progress(len(taken))

    with ThreadPoolExecutor(WORKERS) as workers:
        until_none_is_left(lambda: take_free(workers))
    return report


def _batches(notes: Iterable[store.NoteToChunk]) -> Iterator[list[UUID]]:
    batch: list[UUID] = []
    size_bytes = 0
    for note in notes:
        if batch and (len(batch) == BATCH_NOTES or size_bytes + note.size_bytes > BATCH_BYTES):
            yield batch
            batch, size_bytes = [], 0
        batch.append(note.note_id)
        size_bytes += note.size_bytes
    if batch:
        yield batch


def _chunk(
    database: Database, config: ChunkingConfig, version: str, note_ids: Sequence[UUID]
) -> tuple[set[UUID], ChunkReport]:
    """Chunk notes together; if that fails, one by one, so that the bad note is found and recorded.

    Returns:
        The notes that are finished (the others are claimed or done by another run), and the
        report on them.
    """
    try:
        with database.bulk() as connection:
            notes = store.claim_notes(connection, note_ids, chunking_hash=version)
            if not notes:
                return set(), ChunkReport()
            chunks = {note.note_id: build_chunks(note, config) for note in notes}
            store.replace_chunks(connection, chunks, chunking_hash=version)
            clear_failures(connection, "chunk", list(chunks))
    except (IndexingError, psycopg.Error) as error:
        if isinstance(error, psycopg.Error) and not is_refusal(error):
            raise
        if len(note_ids) > 1:
            return _chunk_apart(database, config, version, note_ids)
        reason = first_line(error) if isinstance(error, psycopg.Error) else error.message
        failure = Failure("chunk", note_ids[0], reason)
        with database.transaction() as connection:
            record_failure(connection, failure)
        return set(note_ids), ChunkReport(failed=[failure])
    return set(chunks), ChunkReport(len(chunks), sum(len(cut) for cut in chunks.values()))


def _chunk_apart(
    database: Database, config: ChunkingConfig, version: str, note_ids: Sequence[UUID]
) -> tuple[set[UUID], ChunkReport]:
    taken: set[UUID] = set()
    report = ChunkReport()
    for note_id in note_ids:
        one, done = _chunk(database, config, version, [note_id])
        taken |= one
        report.add(done)
    return taken, report
