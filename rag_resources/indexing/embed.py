"""Embeds a window's chunks and notes, deduplicated by content.

Which notes a batch holds is decided in `indexing.embedding_queue`.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple
from uuid import UUID

from pgvector import HalfVector

from rag_resources.core.contextual import contextual_text
from rag_resources.core.errors import ModelMissingError, ProviderError, ProviderUnavailableError
from rag_resources.core.types import TimeWindow
from rag_resources.database.pool import Connection, Database
from rag_resources.indexing.chunk import Progress, no_progress
from rag_resources.indexing.embedding_queue import (
    EmbeddedBatch,
    EmbedReport,
    Queue,
    Write,
    embed_all,
)
from rag_resources.providers.protocols import Embedder
from rag_resources.store import embeddings as store
from rag_resources.store.embeddings import ChunkText, NoteText
from rag_resources.store.failures import Failure, clear_failures, record_failure
from rag_resources.store.models import keep_model
from rag_resources.store.queues import NoteQueue, QueuedNote, claim_queued, count_queued

BATCH_NOTES = 64
BATCH_TEXTS = 64

_HARMLESS = "nota"
"""A text that every model can represent."""


class Embedded(NamedTuple):
    """Vectors by the hash of their text, stored and new ones; why the other texts have none."""

    known: dict[bytes, HalfVector]
    made: dict[bytes, HalfVector]
    errors: dict[bytes, str]


_CHUNKS = Queue(
    "embed_chunk",
    BATCH_NOTES,
    partial(claim_queued, queue=NoteQueue.EMBEDDINGS),
    partial(count_queued, queue=NoteQueue.EMBEDDINGS),
)
_NOTES = Queue("embed_note", BATCH_NOTES, store.claim_note_texts, store.count_notes_to_embed)


def embed_chunks(
    database: Database, embedder: Embedder, window: TimeWindow, *, progress: Progress = no_progress
) -> EmbedReport:
    """Embed the chunks of a window's queued notes: standard and contextual vectors.

    A text that the model refuses is recorded; its note stays queued and is searched as a whole.
    Notes claimed by another run come last: either that run finishes them, or it dies and they are
    done here.

    Raises:
        ProviderUnavailableError: The model does not answer; what is committed stays.
        ModelMissingError: The model was retired meanwhile, or the provider lacks it.
        DatabaseUnavailableError: The connection was lost; what was committed stays.
        IndexingError: Another run does not release its notes.

    Properties: 19, 41, 42.
    """
    model = embedder.info.name

    def embed(connection: Connection, notes: Sequence[QueuedNote]) -> Write:
        return _embed_claimed(connection, embedder, notes)

    return embed_all(database, _CHUNKS, model, window, embed, progress)


def _embed_claimed(
    connection: Connection, embedder: Embedder, notes: Sequence[QueuedNote]
) -> Write:
    """Embed the chunks of claimed notes."""
    claimed = [note.note_id for note in notes]
    chunks = store.select_chunk_texts(connection, embedder.info.name, claimed)
    find = partial(store.find_reusable, note_ids=claimed)
    vectors = embed_new(connection, embedder, _texts(chunks), find)
    return partial(_write_chunks, connection, embedder.info.name, claimed, chunks, vectors)


def _write_chunks(
    connection: Connection,
    model: str,
    claimed: Sequence[UUID],
    chunks: Sequence[ChunkText],
    embedded: Embedded,
) -> EmbeddedBatch:
    known, made, errors = embedded
    vectors = known | made
    ready: list[ChunkText] = []
    failures: list[Failure] = []
    for chunk in chunks:
        if chunk.content_sha256 in vectors and chunk.contextual_sha256 in vectors:
            ready.append(chunk)
        else:
            failures.append(_failure(chunk, errors, model))
    store.write_chunk_vectors(connection, model, ready, vectors)
    completed = store.complete_pending(connection, model, claimed)
    for failure in failures:
        record_failure(connection, failure)
    clear_failures(connection, "embed_chunk", completed, model=model)
    report = EmbedReport(
        notes=len(completed),
        vectors=2 * len(ready),
        embedded=len(made),
        reused=len(known),
        failed=failures,
    )
    return EmbeddedBatch(report, set(claimed) - set(completed))


def embed_notes(
    database: Database, embedder: Embedder, window: TimeWindow, *, progress: Progress = no_progress
) -> EmbedReport:
    """Embed the notes of a window as a whole; otherwise like `embed_chunks`."""
    model = embedder.info.name

    def embed(connection: Connection, notes: Sequence[NoteText]) -> Write:
        return _embed_note_texts(connection, embedder, notes)

    return embed_all(database, _NOTES, model, window, embed, progress)


def _embed_note_texts(
    connection: Connection, embedder: Embedder, notes: Sequence[NoteText]
) -> Write:
    """Embed claimed notes as a whole."""
    texts = {note.content_sha256: note.content for note in notes}
    find = partial(store.find_reusable, note_ids=[note.note_id for note in notes])
    vectors = embed_new(connection, embedder, texts, find)
    return partial(_write_notes, connection, embedder.info.name, notes, vectors)


def _write_notes(
    connection: Connection, model: str, notes: Sequence[NoteText], embedded: Embedded
) -> EmbeddedBatch:
    known, made, errors = embedded
    vectors = known | made
    ready = [note for note in notes if note.content_sha256 in vectors]
    written = store.write_note_vectors(
        connection, model, ready, [vectors[note.content_sha256] for note in ready]
    )
    failures = [
        Failure("embed_note", note.note_id, errors[note.content_sha256], model=model)
        for note in notes
        if note.content_sha256 in errors
    ]
    for failure in failures:
        record_failure(connection, failure)
    # Only for written notes: a process that is deleting the others may have locked their failures.
    clear_failures(connection, "embed_note", written, model=model)
    report = EmbedReport(
        notes=len(written),
        vectors=len(written),
        embedded=len(made),
        reused=len(known),
        failed=failures,
    )
    unfinished = {note.note_id for note in ready} - set(written)
    return EmbeddedBatch(report, unfinished)


def embed_new(
    connection: Connection,
    embedder: Embedder,
    texts: dict[bytes, str],
    find: Callable[[Connection, str, Iterable[bytes]], dict[bytes, HalfVector]],
) -> Embedded:
    """Embed the texts for which the model has no vector yet.

    Args:
        connection: In a transaction.
        embedder: The model.
        texts: By content hash.
        find: Returns the stored vectors of a model for some of these hashes.
    """
    model = embedder.info.name
    known = find(connection, model, texts) if texts else {}
    made, errors = embed_each(
        embedder,
        {key: texts[key] for key in texts if key not in known},
        between=partial(keep_model, connection, model),
    )
    return Embedded(known, made, errors)


def embed_each(
    embedder: Embedder, texts: dict[bytes, str], *, between: Callable[[], None] = lambda: None
) -> tuple[dict[bytes, HalfVector], dict[bytes, str]]:
    """Embed texts in batches; a failing batch is split until the bad text is isolated.

    Evaluations compare the bits of stored vectors, so that a note that is embedded again must not
    look new: where a vector depends on its batch, each text is one.

    Args:
        embedder: The model.
        texts: By content hash.
        between: Called before each batch. It keeps the transaction active while a slow model takes
            minutes; otherwise the server ends it as idle.

    Returns:
        The vectors by hash, and for each text without one the reason.

    Raises:
        ProviderUnavailableError: The model does not answer at all.
    """
    made: dict[bytes, HalfVector] = {}
    errors: dict[bytes, str] = {}
    # Batches of texts of similar length waste the least padding.
    keys = sorted(texts, key=lambda key: (len(texts[key]), key))
    size = 1 if embedder.info.varies_with_batch else BATCH_TEXTS
    pending = [keys[start : start + size] for start in range(0, len(keys), size)]
    while pending:
        batch = pending.pop()
        between()
        try:
            vectors = embedder.embed_passages([texts[key] for key in batch])
        except ModelMissingError:
            raise
        except ProviderError as error:
            if isinstance(error, ProviderUnavailableError) and not _fails_for_some(error, embedder):
                raise
            if len(batch) == 1:
                errors[batch[0]] = error.message
            else:
                middle = len(batch) // 2
                pending.extend((batch[:middle], batch[middle:]))
            continue
        made.update((key, HalfVector(vector)) for key, vector in zip(batch, vectors, strict=True))
    return made, errors


def _fails_for_some(error: ProviderUnavailableError, embedder: Embedder) -> bool:
    """Whether a server that failed on one text embeds others; some texts crash a model."""
    if "status" not in error.context:
        return False
    try:
        embedder.embed_passages([_HARMLESS])
    except ProviderError:
        return False
    return True


def _texts(chunks: Iterable[ChunkText]) -> dict[bytes, str]:
    texts: dict[bytes, str] = {}
    for chunk in chunks:
        texts[chunk.content_sha256] = chunk.content
        texts[chunk.contextual_sha256] = contextual_text(chunk.context, chunk.content)
    return texts


def _failure(chunk: ChunkText, errors: dict[bytes, str], model: str) -> Failure:
    reason = errors.get(chunk.content_sha256) or errors[chunk.contextual_sha256]
    return Failure("embed_chunk", chunk.note_id, reason, chunk_id=chunk.chunk_id, model=model)
