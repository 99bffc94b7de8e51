"""Makes the vectors of a window's chunks and notes, of all kinds that a model has.

Which notes a batch holds is decided in `indexing.embedding_queue`, what a window of a chunk is in
`core.windows`.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple
from uuid import UUID

from pgvector import HalfVector

from rag_resources.core.errors import ModelMissingError, ProviderError, ProviderUnavailableError
from rag_resources.core.retrievers import VectorKind
from rag_resources.core.text import content_sha256
from rag_resources.core.types import TimeWindow
from rag_resources.core.windows import WindowsConfig, cut_windows
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
from rag_resources.store import vectors as store
from rag_resources.store.failures import Failure, clear_failures, record_failure
from rag_resources.store.models import keep_model, kinds_of
from rag_resources.store.vectors import OwnerText, Place, Places, QueuedNote

BATCH_NOTES = 64
BATCH_TEXTS = 64

_HARMLESS = "nota"
"""A text that every model can represent."""

_CHUNKS = Queue("embed_chunk", BATCH_NOTES, store.claim_queued, store.count_queued)
_NOTES = Queue(
    "embed_note",
    BATCH_NOTES,
    partial(store.claim_queued, whole=True),
    partial(store.count_queued, whole=True),
)


class _Batch(NamedTuple):
    """Claimed notes and the vectors that they need.

    Attributes:
        texts: Their chunks, or the notes as a whole.
        changed: By kind, the chunks or notes whose vectors are to be replaced.
        known: Stored vectors, by the hash of their text.
        made: New ones.
        errors: Why the other texts have none.
    """

    model: str
    claimed: Sequence[UUID]
    texts: Sequence[OwnerText]
    changed: Mapping[VectorKind, Places]
    known: Mapping[bytes, HalfVector]
    made: Mapping[bytes, HalfVector]
    errors: Mapping[bytes, str]


def embed_chunks(
    database: Database,
    embedder: Embedder,
    window: TimeWindow,
    *,
    windows: WindowsConfig | None = None,
    progress: Progress = no_progress,
) -> EmbedReport:
    """Make the vectors of the chunks of a window's queued notes, of all kinds that the model has.

    What a chunk has already is left alone. A text that the model refuses is recorded; its note
    stays queued. Notes claimed by another run come last: either that run finishes them, or it dies
    and they are done here.

    Args:
        database: Open.
        embedder: The model, registered.
        window: Range of the notes' creation times.
        windows: How chunks are cut into windows; None: by default.
        progress: Called with the number of notes of each batch.

    Raises:
        ProviderUnavailableError: The model does not answer; what is committed stays.
        ModelMissingError: The model was retired meanwhile, or the provider lacks it.
        DatabaseUnavailableError: The connection was lost; what was committed stays.
        IndexingError: Another run does not release its notes.

    Properties: 19, 41, 42.
    """

    def embed(connection: Connection, notes: Sequence[QueuedNote]) -> Write:
        kinds = kinds_of(connection, embedder.info.name) - {VectorKind.NOTE}
        batch = _make(connection, embedder, notes, kinds, windows or WindowsConfig())
        return partial(_write_chunks, connection, batch)

    return embed_all(database, _CHUNKS, embedder.info.name, window, embed, progress)


def embed_notes(
    database: Database, embedder: Embedder, window: TimeWindow, *, progress: Progress = no_progress
) -> EmbedReport:
    """Embed the notes of a window as a whole; otherwise like `embed_chunks`."""

    def embed(connection: Connection, notes: Sequence[QueuedNote]) -> Write:
        batch = _make(connection, embedder, notes, {VectorKind.NOTE}, WindowsConfig())
        return partial(_write_notes, connection, batch)

    return embed_all(database, _NOTES, embedder.info.name, window, embed, progress)


def _make(
    connection: Connection,
    embedder: Embedder,
    notes: Sequence[QueuedNote],
    kinds: set[VectorKind],
    windows: WindowsConfig,
) -> _Batch:
    """Make the vectors that claimed notes lack."""
    model = embedder.info.name
    claimed = [note.note_id for note in notes]
    owners = store.select_texts(connection, claimed, whole=VectorKind.NOTE in kinds)
    texts: dict[bytes, str] = {}
    changed: dict[VectorKind, Places] = {}
    for kind in VectorKind:
        if kind in kinds:
            stored = store.stored_places(connection, model, kind, [each.owner for each in owners])
            wanted = {each.owner: _places(each, kind, windows, texts) for each in owners}
            changed[kind] = {
                owner: places for owner, places in wanted.items() if places != stored.get(owner, ())
            }
    needed = {
        place.text_sha256
        for owned in changed.values()
        for places in owned.values()
        for place in places
    }
    known = store.find_reusable(connection, model, needed) if needed else {}
    made, errors = embed_each(
        embedder,
        {key: texts[key] for key in needed if key not in known},
        between=partial(keep_model, connection, model),
    )
    return _Batch(model, claimed, owners, changed, known, made, errors)


def _places(
    owner: OwnerText, kind: VectorKind, windows: WindowsConfig, texts: dict[bytes, str]
) -> tuple[Place, ...]:
    """Return the vectors that a chunk or note should have; add their texts, by hash."""
    spans = cut_windows(owner.content, windows) if kind is VectorKind.WINDOW else [None]
    places = []
    for span in spans:
        text = owner.text(kind, span)
        sha256 = content_sha256(text)
        texts[sha256] = text
        places.append(Place(span, sha256))
    return tuple(places)


def _write(
    connection: Connection, batch: _Batch, stage: str
) -> tuple[Counter[str], list[Failure], set[UUID]]:
    """Write what was made.

    Returns:
        How many vectors of each kind were written, the texts that the model refused, and the notes
        that are being deleted.
    """
    notes = {each.owner: each.note_id for each in batch.texts}
    vectors = {**batch.known, **batch.made}
    # Of a chunk with a refused text nothing is written: it has the vectors of all kinds, or waits.
    lacking = {
        owner: place.text_sha256
        for changed in batch.changed.values()
        for owner, places in changed.items()
        for place in places
        if place.text_sha256 not in vectors
    }
    refused = [
        Failure(
            stage,
            notes[owner],
            batch.errors[sha256],
            chunk_id=None if VectorKind.NOTE in batch.changed else owner,
            model=batch.model,
        )
        for owner, sha256 in lacking.items()
    ]
    counts: Counter[str] = Counter()
    leaving: set[UUID] = set()
    for kind, changed in batch.changed.items():
        ready = {owner: places for owner, places in changed.items() if owner not in lacking}
        written = store.replace_vectors(connection, batch.model, kind, ready, vectors)
        counts[kind.value] = sum(len(ready[owner]) for owner in written)
        leaving |= {notes[owner] for owner in ready.keys() - written}
    return counts, refused, leaving


def _write_chunks(connection: Connection, batch: _Batch) -> EmbeddedBatch:
    vectors, failures, leaving = _write(connection, batch, "embed_chunk")
    kept = set(batch.claimed) - leaving - {failure.note_id for failure in failures}
    completed = store.complete_pending(
        connection, batch.model, sorted(kept), batch.texts, vectors=vectors.total()
    )
    for failure in failures:
        record_failure(connection, failure)
    clear_failures(connection, "embed_chunk", completed, model=batch.model)
    report = _report(batch, len(completed), vectors, failures)
    return EmbeddedBatch(report, set(batch.claimed) - set(completed))


def _write_notes(connection: Connection, batch: _Batch) -> EmbeddedBatch:
    vectors, failures, leaving = _write(connection, batch, "embed_note")
    for failure in failures:
        record_failure(connection, failure)
    refused = {failure.note_id for failure in failures}
    written = [own for own in batch.changed[VectorKind.NOTE] if own not in refused | leaving]
    # Only for written notes: a process that is deleting the others may have locked their failures.
    clear_failures(connection, "embed_note", written, model=batch.model)
    return EmbeddedBatch(_report(batch, len(written), vectors, failures), leaving)


def _report(
    batch: _Batch, notes: int, vectors: Counter[str], failures: list[Failure]
) -> EmbedReport:
    return EmbedReport(
        notes=notes,
        kinds=vectors,
        embedded=len(batch.made),
        reused=len(batch.known),
        failed=failures,
    )


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
