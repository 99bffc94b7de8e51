"""Cuts the chunks of a time window into small windows and embeds them.

`core.windows` decides where a chunk is cut; `indexing.embed` makes batches and records texts that
the model refuses.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from uuid import UUID

from rag_resources.core.text import content_sha256
from rag_resources.core.types import TimeWindow
from rag_resources.core.windows import WindowsConfig, cut_windows, window_text, window_words
from rag_resources.database.pool import Connection, Database
from rag_resources.indexing.chunk import Progress, no_progress
from rag_resources.indexing.embed import Embedded, embed_new
from rag_resources.indexing.embedding_queue import (
    EmbeddedBatch,
    EmbedReport,
    Queue,
    Write,
    embed_all,
)
from rag_resources.providers.protocols import Embedder
from rag_resources.store import windows as store
from rag_resources.store.failures import Failure, clear_failures, record_failure
from rag_resources.store.queues import NoteQueue, QueuedNote, claim_queued, count_queued
from rag_resources.store.windows import ChunkToCut, Window

BATCH_NOTES = 32

_QUEUE = Queue(
    "embed_window",
    BATCH_NOTES,
    partial(claim_queued, queue=NoteQueue.WINDOWS),
    partial(count_queued, queue=NoteQueue.WINDOWS),
)


def embed_windows(
    database: Database,
    embedder: Embedder,
    config: WindowsConfig,
    window: TimeWindow,
    *,
    progress: Progress = no_progress,
) -> EmbedReport:
    """Make the windows of a time window's queued notes.

    A chunk that already has these windows is left alone. A text that the model refuses is recorded;
    its note stays queued and is searched as a whole.

    Raises:
        ProviderUnavailableError: The model does not answer; what is committed stays.
        ModelMissingError: The model was retired meanwhile, or the provider lacks it.
        DatabaseUnavailableError: The connection was lost; what was committed stays.
        IndexingError: Another run does not release its notes.

    Properties: 41, 42.
    """

    def embed(connection: Connection, notes: Sequence[QueuedNote]) -> Write:
        return _embed_claimed(connection, embedder, config, notes)

    return embed_all(database, _QUEUE, embedder.info.name, window, embed, progress)


def _embed_claimed(
    connection: Connection,
    embedder: Embedder,
    config: WindowsConfig,
    notes: Sequence[QueuedNote],
) -> Write:
    model = embedder.info.name
    claimed = [note.note_id for note in notes]
    chunks = store.select_chunks_to_cut(connection, model, claimed)
    texts: dict[bytes, str] = {}
    changed: dict[UUID, tuple[Window, ...]] = {}
    for chunk in chunks:
        cut = _cut(chunk, config, texts)
        if cut != chunk.stored:
            changed[chunk.chunk_id] = cut
    wanted = {window.text_sha256 for cut in changed.values() for window in cut}
    vectors = embed_new(
        connection, embedder, {key: texts[key] for key in wanted}, store.find_reusable_windows
    )
    return partial(_write, connection, model, claimed, chunks, changed, vectors)


def _write(
    connection: Connection,
    model: str,
    claimed: Sequence[UUID],
    chunks: Sequence[ChunkToCut],
    changed: Mapping[UUID, tuple[Window, ...]],
    embedded: Embedded,
) -> EmbeddedBatch:
    known, made, errors = embedded
    ready = {
        chunk_id: cut
        for chunk_id, cut in changed.items()
        if not any(window.text_sha256 in errors for window in cut)
    }
    written = store.replace_windows(connection, model, ready, known | made)
    unfinished = {
        chunk.note_id
        for chunk in chunks
        if chunk.chunk_id in changed and chunk.chunk_id not in written
    }
    completed = store.complete_pending_windows(
        connection, model, [note for note in claimed if note not in unfinished]
    )
    failures = [
        _failure(chunk, changed[chunk.chunk_id], errors, model)
        for chunk in chunks
        if chunk.chunk_id in changed and chunk.chunk_id not in ready
    ]
    for failure in failures:
        record_failure(connection, failure)
    clear_failures(connection, "embed_window", completed, model=model)
    report = EmbedReport(
        notes=len(completed),
        vectors=sum(len(ready[chunk_id]) for chunk_id in written),
        embedded=len(made),
        reused=len(known),
        failed=failures,
    )
    return EmbeddedBatch(report, unfinished)


def _cut(chunk: ChunkToCut, config: WindowsConfig, texts: dict[bytes, str]) -> tuple[Window, ...]:
    """Return the windows of a chunk; add their texts to `texts`, by hash."""
    windows = []
    for span in cut_windows(chunk.content, config):
        text = window_text(chunk.title, window_words(chunk.content, span), chunk.tags)
        sha256 = content_sha256(text)
        texts[sha256] = text
        windows.append(Window(span, sha256))
    return tuple(windows)


def _failure(
    chunk: ChunkToCut, cut: Sequence[Window], errors: dict[bytes, str], model: str
) -> Failure:
    reason = next(errors[window.text_sha256] for window in cut if window.text_sha256 in errors)
    return Failure("embed_window", chunk.note_id, reason, chunk_id=chunk.chunk_id, model=model)
