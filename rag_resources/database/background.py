"""Writes records beside the work that makes them, and never in its way."""

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

import psycopg
import structlog

from rag_resources.core.deadline import Deadline
from rag_resources.core.errors import RagError
from rag_resources.database.pool import Connection, Database

WAITING = 1_000
"""Most records that wait to be written; beyond that the oldest is dropped."""
BATCH = 200
WRITE_MS = 1_000.0
"""Longest time of a write."""

_log = structlog.get_logger()

RecordT = TypeVar("RecordT")


class BackgroundWriter(Generic[RecordT]):
    """Writes records in batches, in a thread; thread-safe.

    A database that is down, locked, full or read-only loses the records of that time, and nothing
    else: who puts a record neither waits for a write nor fails by it.

    Args:
        database: Where they are written.
        write: Writes a batch, in a transaction.
        name: Of the log, such as `retrieval_log`.
        write_ms: Longest time of a write.
    """

    def __init__(
        self,
        database: Database,
        write: Callable[[Connection, list[RecordT]], None],
        *,
        name: str,
        write_ms: float = WRITE_MS,
    ) -> None:
        self._database = database
        self._write_batch = write
        self._name = name
        self._write_ms = write_ms
        self._waiting: deque[RecordT] = deque(maxlen=WAITING)
        self._changed = threading.Condition()
        self._closing = False
        self._is_writing = False
        self._writer: threading.Thread | None = None

    def put(self, record: RecordT) -> None:
        """Have a record written; costs no input or output."""
        with self._changed:
            self._closing = False
            self._waiting.append(record)
            # A forked process has no threads of its parent.
            if self._writer is None or not self._writer.is_alive():
                self._writer = threading.Thread(
                    target=self._write_all, name=self._name.replace("_", "-"), daemon=True
                )
                self._writer.start()
            self._changed.notify_all()

    def flush(self) -> None:
        """Wait until what was put is written or lost, for two writes at most."""
        with self._changed:
            self._changed.wait_for(
                lambda: not self._waiting and not self._is_writing,
                timeout=2 * self._write_ms / 1_000,
            )

    def close(self) -> None:
        """Write what waits; takes two writes at most, the one under way and the last one."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._writer is None, timeout=2 * self._write_ms / 1_000)

    def _write_all(self) -> None:
        while batch := self._next():
            self._write(batch)

    def _next(self) -> list[RecordT]:
        """Wait for records; none once the writer is closed and everything is written."""
        with self._changed:
            self._is_writing = False
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._waiting or self._closing)
            if not self._waiting:
                self._writer = None
                self._changed.notify_all()
            batch = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
            self._is_writing = bool(batch)
            return batch

    def _write(self, batch: list[RecordT]) -> None:
        try:
            deadline = Deadline.after(self._write_ms, time.monotonic)
            with self._database.transaction(deadline) as connection:
                self._write_batch(connection, batch)
        except (RagError, psycopg.Error) as error:
            _log.warning(f"{self._name}_skipped", records=len(batch), error=type(error).__name__)
