"""Reads the queued notes of a time window for a part of the graph.

What counts as a mention or statement is decided by `graph.extraction`.
"""

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from uuid import UUID

import psycopg

from rag_resources.core.errors import (
    DeadlineExceededError,
    ProviderError,
    ProviderUnavailableError,
)
from rag_resources.core.graph_version import GraphPart
from rag_resources.core.types import TimeWindow
from rag_resources.database.claims import until_none_is_left
from rag_resources.database.faults import first_line, is_refusal
from rag_resources.database.pool import Connection, Database
from rag_resources.graph.extraction import Extractor
from rag_resources.languages.messages import _
from rag_resources.providers.model_server import MAX_CALLS
from rag_resources.store import graph as store
from rag_resources.store.failures import Failure, clear_failures, record_failure
from rag_resources.store.graph import Extraction, NoteToRead, QueuedNote

BATCH_NOTES = 32
SLOW_BATCH_NOTES = MAX_CALLS
"""Notes that a slow extractor reads at the same time."""

_INSTANT = timedelta(microseconds=1)
"""The smallest difference between two PostgreSQL times."""

Progress = Callable[[int], None]

Read = Callable[[NoteToRead], Extraction | Failure | None]
"""Returns a note's extraction, or why it cannot be read; None if the note changed meanwhile."""


@dataclass
class GraphReport:
    """The outcome for a window.

    Attributes:
        notes: Notes read.
        found: Mentions or statements found in them.
        failed: Notes that could not be read.
    """

    notes: int = 0
    found: int = 0
    failed: list[Failure] = field(default_factory=list)

    def add(self, other: "GraphReport") -> None:
        """Add the counts of another report."""
        self.notes += other.notes
        self.found += other.found
        self.failed.extend(other.failed)


def read_notes(
    database: Database,
    part: GraphPart,
    extractor: Extractor,
    window: TimeWindow,
    *,
    progress: Progress = lambda _: None,
) -> GraphReport:
    """Make a part of the graph from a window's queued notes, in batches of a transaction each.

    A note that cannot be read is recorded and stays queued. Notes claimed by another run come last:
    either that run finishes them, or it dies and they are read here. A slow extractor reads before
    the notes are claimed, so that no edit or deletion waits for it; notes that changed meanwhile
    are read again.

    Args:
        database: Open; the part is registered.
        part: The part of the graph to make.
        extractor: Reads the notes.
        window: Range of the notes' creation times.
        progress: Called with the number of notes of each batch.

    Raises:
        ProviderUnavailableError: The language model does not answer, or none of several notes in
            time; what is committed stays.
        DatabaseUnavailableError: The connection was lost; what was committed stays.
        IndexingError: Another run does not release its notes.

    Properties: 41, 42.
    """
    report, is_slow = GraphReport(), extractor.is_slow(part)
    most = SLOW_BATCH_NOTES if is_slow else BATCH_NOTES

    def read_free() -> int:
        unfinished: set[UUID] = set()
        rest = window
        alone = 0  # How many notes still to read one by one.
        while True:
            refused = {failure.note_id for failure in report.failed}
            skipped, size = unfinished | refused, 1 if alone else most
            read: Read = partial(_found, part, extractor)
            if is_slow:
                read = _read_ahead(database, part, read, rest, skipped=skipped, size=size)
            with database.bulk() as connection:
                claimed = store.claim_queued(
                    connection, part, rest, skipped=skipped, batch_size=size
                )
                if not claimed:
                    return store.count_queued(connection, part, window, skipped=refused)
                try:
                    with connection.transaction():
                        batch, left = _read(connection, part, read, claimed)
                except psycopg.Error as error:
                    if not is_refusal(error):
                        raise
                    if len(claimed) > 1:
                        alone = len(claimed)
                        continue
                    failure = Failure(part, claimed[0].note_id, first_line(error))
                    record_failure(connection, failure)
                    batch, left = GraphReport(failed=[failure]), set()
            alone = max(0, alone - 1)
            unfinished |= left
            # Otherwise every batch would scan all finished notes of a large window.
            rest = TimeWindow(window.start, claimed[-1].created_at + _INSTANT)
            report.add(batch)
            progress(len(claimed))

    until_none_is_left(read_free)
    return report


def _read_ahead(
    database: Database,
    part: GraphPart,
    read: Read,
    window: TimeWindow,
    *,
    skipped: Collection[UUID],
    size: int,
) -> Read:
    """Extract from the next notes before they are claimed, so that no lock is held meanwhile."""
    with database.bulk() as connection:
        claimed = store.claim_queued(connection, part, window, skipped=skipped, batch_size=size)
        notes = store.select_notes(connection, [note.note_id for note in claimed])
    with ThreadPoolExecutor(MAX_CALLS, thread_name_prefix="graph") as threads:
        found = list(threads.map(read, notes))
    late = [
        item
        for item in found
        if isinstance(item, Failure)
        and item.error == _("the language model did not read the note in time")
    ]
    if len(late) == len(notes) > 1:
        raise ProviderUnavailableError(
            _(
                "the language model takes too long to read the notes: none of {count} in time; "
                "what was read stays, another run goes on"
            ).format(count=len(late))
        )
    # Not valid for a note that has changed since.
    return dict(zip(notes, found, strict=True)).get


def _read(
    connection: Connection, part: GraphPart, read: Read, claimed: Sequence[QueuedNote]
) -> tuple[GraphReport, set[UUID]]:
    """Read claimed notes; also return the ids of notes that are being changed or deleted."""
    note_ids = [note.note_id for note in claimed]
    report, unfinished = GraphReport(), set[UUID]()
    for note in store.select_notes(connection, note_ids):
        extraction = read(note)
        if isinstance(extraction, Failure):
            report.failed.append(extraction)
            continue
        if extraction is None or not store.keep_chunks(connection, note):
            unfinished.add(note.note_id)
            continue
        replace = store.replace_mentions if part is GraphPart.MENTIONS else store.replace_statements
        report.found += replace(connection, extraction)
    for failure in report.failed:
        record_failure(connection, failure)
    failed = {failure.note_id for failure in report.failed}
    done = [note_id for note_id in note_ids if note_id not in failed | unfinished]
    completed = store.complete_pending(connection, part, done)
    clear_failures(connection, part.value, completed)
    report.notes = len(completed)
    return report, unfinished


def _found(part: GraphPart, extractor: Extractor, note: NoteToRead) -> Extraction | Failure:
    """Return a note's extraction, or why it cannot be read."""
    try:
        return extractor.extract(part, note)
    except ProviderUnavailableError:
        raise
    except ProviderError as error:
        return Failure(part, note.note_id, error.message)
    except DeadlineExceededError:
        return Failure(part, note.note_id, _("the language model did not read the note in time"))
