"""Embeds a window's chunks and notes: claimed, deduplicated by content, in batches."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from threading import Lock
from typing import Generic, NamedTuple, Protocol, TypeVar
from uuid import UUID

import psycopg
from pgvector import HalfVector

from rag_resources.core.contextual import contextual_text
from rag_resources.core.errors import ModelMissingError, ProviderError, ProviderUnavailableError
from rag_resources.core.types import TimeWindow
from rag_resources.database.claims import until_none_is_left
from rag_resources.database.faults import first_line, is_refusal
from rag_resources.database.pool import Connection, Database
from rag_resources.indexing.chunk import Progress, no_progress
from rag_resources.providers.protocols import Embedder
from rag_resources.store import embeddings as store
from rag_resources.store.embeddings import ChunkText, NoteText
from rag_resources.store.failures import Failure, clear_failures, record_failure
from rag_resources.store.models import keep_model
from rag_resources.store.queues import NoteQueue, QueuedNote, claim_queued, count_queued

BATCH_NOTES = 64
BATCH_TEXTS = 64
WORKERS = 2
"""Batches under way at once, each in its connection: one is written while another is embedded."""

_HARMLESS = "nota"
"""A text that every model can represent."""

_INSTANT = timedelta(microseconds=1)
"""The smallest difference between two PostgreSQL times."""


@dataclass
class EmbedReport:
    """The outcome of embedding a window.

    Attributes:
        notes: Notes completed.
        vectors: Vectors written.
        embedded: Texts that the model was run on.
        reused: Texts whose vector was already stored.
        failed: Texts that the model could not embed.
    """

    notes: int = 0
    vectors: int = 0
    embedded: int = 0
    reused: int = 0
    failed: list[Failure] = field(default_factory=list)

    def add(self, other: "EmbedReport") -> None:
        """Add the counts of another report."""
        self.notes += other.notes
        self.vectors += other.vectors
        self.embedded += other.embedded
        self.reused += other.reused
        self.failed.extend(other.failed)

    @property
    def refused(self) -> set[UUID]:
        """The notes with a text that the model could not embed."""
        return {failure.note_id for failure in self.failed}


class EmbeddedBatch(NamedTuple):
    """The outcome of a batch; `unfinished` are notes that are being deleted."""

    report: EmbedReport
    unfinished: set[UUID]


Write = Callable[[], EmbeddedBatch]
"""Writes a batch whose vectors are made, in the transaction that claimed its notes."""


class Embedded(NamedTuple):
    """Vectors by the hash of their text, stored and new ones; why the other texts have none."""

    known: dict[bytes, HalfVector]
    made: dict[bytes, HalfVector]
    errors: dict[bytes, str]


class Queued(Protocol):
    """A note that waits for vectors."""

    @property
    def note_id(self) -> UUID:
        """Its id."""

    @property
    def created_at(self) -> datetime:
        """When it was written; batches start with the newest."""


Note = TypeVar("Note", bound=Queued)


@dataclass(frozen=True, slots=True)
class Queue(Generic[Note]):
    """The notes that wait for one kind of vectors.

    Attributes:
        stage: The stage under which failures are recorded.
        batch_notes: Most notes per transaction.
        claim: Locks the newest unclaimed notes of a window until commit; see `store.queues`.
        count: Counts the notes of a window, claimed or not.
    """

    stage: str
    batch_notes: int
    claim: Callable[..., Sequence[Note]]
    count: Callable[..., int]


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


@dataclass
class _Pass:
    """What the batches of one pass over a queue share.

    Attributes:
        rest: Newer notes are claimed or done: otherwise every batch would scan all finished notes
            of a large window.
        skipped: Notes that must not be claimed again in this pass.
        alone: How many notes still to embed one by one.
        turn: Of the batch that claims notes and uses the model.
    """

    rest: TimeWindow
    skipped: set[UUID]
    alone: int = 0
    turn: Lock = field(default_factory=Lock)
    _changing: Lock = field(default_factory=Lock)

    def settle(self, batch: EmbeddedBatch | None) -> None:
        """Count a batch that is about to be committed; None: it was refused."""
        if batch:
            with self._changing:
                self.alone = max(0, self.alone - 1)
                self.skipped = self.skipped | batch.unfinished | batch.report.refused

    def begin_again(self, window: TimeWindow, *, alone: int) -> None:
        """Have notes of a refused batch embedded one by one; the caller has its turn."""
        with self._changing:
            self.rest = window
            self.alone += alone


def embed_all(
    database: Database,
    queue: Queue[Note],
    model: str,
    window: TimeWindow,
    embed: Callable[[Connection, Sequence[Note]], Write],
    progress: Progress,
) -> EmbedReport:
    """Embed batch after batch, each in a transaction, until no run has any left.

    `WORKERS` batches are under way at once, but one at a time claims notes and uses the model: none
    waits for the model in a transaction. If PostgreSQL refuses what a batch would write, its notes
    are embedded one by one, so that the bad one is found and recorded.

    Args:
        database: Open.
        queue: The notes.
        model: Registered.
        window: Range of the notes' creation times.
        embed: Makes the vectors of claimed notes; returns what writes them.
        progress: Called with the number of notes of each batch.
    """
    report = EmbedReport()

    def left() -> int:
        with database.transaction() as connection:
            return queue.count(connection, model, window, skipped=report.refused)

    def embed_free() -> int:
        shared = _Pass(window, report.refused)
        several = left() > queue.batch_notes
        with ThreadPoolExecutor(WORKERS) as workers:

            def start() -> Future[tuple[int, EmbedReport] | None]:
                return workers.submit(_embed_next, database, queue, model, window, embed, shared)

            under_way = deque(start() for _ in range(WORKERS if several else 1))
            while under_way:
                if done := under_way.popleft().result():
                    notes, batch = done
                    report.add(batch)
                    progress(notes)
                    under_way.append(start())
        return left()

    until_none_is_left(embed_free)
    return report


def _embed_next(
    database: Database,
    queue: Queue[Note],
    model: str,
    window: TimeWindow,
    embed: Callable[[Connection, Sequence[Note]], Write],
    shared: _Pass,
) -> tuple[int, EmbedReport] | None:
    """Embed the next batch; return how many notes it finished or failed, None if there is none."""
    with ExitStack() as turn:
        turn.enter_context(shared.turn)
        with database.bulk() as connection:
            keep_model(connection, model)
            claimed = _claim(connection, queue, model, shared)
            if not claimed:
                return None
            shared.rest = TimeWindow(window.start, claimed[-1].created_at + _INSTANT)
            batch: EmbeddedBatch | None
            try:
                with connection.transaction():
                    write = embed(connection, claimed)
                    turn.close()
                    batch = write()
            except psycopg.Error as error:
                if not is_refusal(error):
                    raise
                batch = _refused(connection, queue, model, claimed, first_line(error))
            # Before the commit: after it another batch could claim these notes.
            shared.settle(batch)
    if batch:
        return len(claimed), batch.report
    with shared.turn:
        shared.begin_again(window, alone=len(claimed))
    return 0, EmbedReport()


def _claim(connection: Connection, queue: Queue[Note], model: str, shared: _Pass) -> Sequence[Note]:
    """Claim the notes of the next batch; return none if none are left."""
    while True:
        claimed = queue.claim(
            connection,
            model,
            shared.rest,
            skipped=frozenset(shared.skipped),
            batch_size=1 if shared.alone else queue.batch_notes,
        )
        # Another batch may have skipped a note after these were listed, and then let go of it.
        free = [note for note in claimed if note.note_id not in shared.skipped]
        if free or not claimed:
            return free


def _refused(
    connection: Connection, queue: Queue[Note], model: str, claimed: Sequence[Note], reason: str
) -> EmbeddedBatch | None:
    """Record that what a note would write was refused; of several notes nobody knows which."""
    if len(claimed) > 1:
        return None
    failure = Failure(queue.stage, claimed[0].note_id, reason, model=model)
    record_failure(connection, failure)
    return EmbeddedBatch(EmbedReport(failed=[failure]), set())


def embed_each(
    embedder: Embedder, texts: dict[bytes, str], *, between: Callable[[], None] = lambda: None
) -> tuple[dict[bytes, HalfVector], dict[bytes, str]]:
    """Embed texts in batches; a failing batch is split until the bad text is isolated.

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
    pending = [keys[start : start + BATCH_TEXTS] for start in range(0, len(keys), BATCH_TEXTS)]
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
