"""Works off the notes that wait for vectors, batch after batch, each in one transaction.

What a batch embeds and writes is in `indexing.embed`.
"""

from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from threading import Lock
from typing import NamedTuple
from uuid import UUID

import psycopg

from rag_resources.core.types import INSTANT, TimeWindow
from rag_resources.database.claims import until_none_is_left
from rag_resources.database.faults import first_line, is_refusal
from rag_resources.database.pool import Connection, Database
from rag_resources.indexing.chunk import Progress
from rag_resources.store.failures import Failure, record_failure
from rag_resources.store.models import keep_model
from rag_resources.store.vectors import QueuedNote

WORKERS = 2
"""Batches under way at once, each in its connection: one is written while another is embedded."""


@dataclass
class EmbedReport:
    """The outcome of embedding a window.

    Attributes:
        notes: Notes completed.
        kinds: Vectors written, by kind.
        embedded: Texts that the model was run on.
        reused: Texts whose vector was already stored.
        failed: Texts that the model could not embed.
    """

    notes: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    embedded: int = 0
    reused: int = 0
    failed: list[Failure] = field(default_factory=list)

    def add(self, other: "EmbedReport") -> None:
        """Add the counts of another report."""
        self.notes += other.notes
        self.kinds += other.kinds
        self.embedded += other.embedded
        self.reused += other.reused
        self.failed.extend(other.failed)

    @property
    def vectors(self) -> int:
        """All vectors written."""
        return self.kinds.total()

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


@dataclass(frozen=True, slots=True)
class Queue:
    """The notes that wait for one kind of vectors.

    Attributes:
        stage: The stage under which failures are recorded.
        batch_notes: Most notes per transaction.
        claim: Claims the newest unclaimed notes of a window until commit; see `store.vectors`.
        count: Counts the notes of a window, claimed or not.
    """

    stage: str
    batch_notes: int
    claim: Callable[..., Sequence[QueuedNote]]
    count: Callable[..., int]


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
    queue: Queue,
    model: str,
    window: TimeWindow,
    embed: Callable[[Connection, Sequence[QueuedNote]], Write],
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
    queue: Queue,
    model: str,
    window: TimeWindow,
    embed: Callable[[Connection, Sequence[QueuedNote]], Write],
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
            shared.rest = TimeWindow(window.start, claimed[-1].created_at + INSTANT)
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


def _claim(connection: Connection, queue: Queue, model: str, shared: _Pass) -> Sequence[QueuedNote]:
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
    connection: Connection, queue: Queue, model: str, claimed: Sequence[QueuedNote], reason: str
) -> EmbeddedBatch | None:
    """Record that what a note would write was refused; of several notes nobody knows which."""
    if len(claimed) > 1:
        return None
    failure = Failure(queue.stage, claimed[0].note_id, reason, model=model)
    record_failure(connection, failure)
    return EmbeddedBatch(EmbedReport(failed=[failure]), set())
