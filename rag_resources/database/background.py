"""Writes records in the background, so that the work that makes them never waits or fails."""

import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from typing import Generic, TypeVar

import psycopg
import structlog

from rag_resources.core.deadline import Deadline
from rag_resources.database.pool import Connection, Database

WAITING = 1_000
"""Most records that wait to be written; beyond that the oldest is dropped."""
BATCH = 200
WRITE_MS = 1_000.0
"""Longest time of a write."""

# What PostgreSQL or psycopg says of a record that cannot be stored, whatever is written beside it.
_OF_A_RECORD = (psycopg.DataError, psycopg.IntegrityError, ValueError, TypeError)

_log = structlog.get_logger()

RecordT = TypeVar("RecordT")


class BackgroundWriter(Generic[RecordT]):
    """Writes records in batches, in a thread; thread-safe.

    While the database is down, locked, full or read-only, records are lost, and nothing else: `put`
    neither waits for a write nor fails because of one. If a record cannot be stored, the others of
    its batch still are.

    Args:
        database: Where they are written.
        write: Writes a batch, in a transaction.
        name: The log's name, such as `answer_log`.
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
        self._dropped = 0
        self._changed = threading.Condition()
        self._closing = False
        self._is_writing = False
        self._writer: threading.Thread | None = None

    def put(self, record: RecordT) -> None:
        """Queue a record to be written; does no input or output."""
        with self._changed:
            self._closing = False
            self._dropped += len(self._waiting) == WAITING
            self._waiting.append(record)
            # A forked process has no threads of its parent.
            if self._writer is None or not self._writer.is_alive():
                self._writer = threading.Thread(
                    target=self._write_all, name=self._name.replace("_", "-"), daemon=True
                )
                self._writer.start()
            self._changed.notify_all()

    def flush(self) -> None:
        """Wait until all queued records are written or lost, for two writes at most."""
        with self._changed:
            self._changed.wait_for(
                lambda: not self._waiting and not self._is_writing,
                timeout=2 * self._write_ms / 1_000,
            )

    def close(self) -> None:
        """Write what is queued; takes two writes at most, the one under way and the last one."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._writer is None, timeout=2 * self._write_ms / 1_000)

    def _write_all(self) -> None:
        while batch := self._next():
            self._tell_dropped()
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

    def _tell_dropped(self) -> None:
        with self._changed:
            dropped, self._dropped = self._dropped, 0
        if dropped:
            _log.warning(f"{self._name}_dropped", records=dropped)

    def _write(self, batch: list[RecordT]) -> None:
        """Write a batch, in halves if one of its records cannot be stored."""
        deadline = Deadline.after(self._write_ms, time.monotonic)
        parts, lost = [batch], Counter[str]()
        while parts:
            part = parts.pop()
            try:
                with self._database.transaction(deadline) as connection:
                    self._write_batch(connection, part)
            except Exception as error:  # noqa: BLE001 -- whatever it is, later records are written
                if isinstance(error, _OF_A_RECORD) and len(part) > 1:
                    middle = len(part) // 2
                    parts += [part[middle:], part[:middle]]
                else:
                    lost[type(error).__name__] += len(part)
        for name, records in lost.items():
            _log.warning(f"{self._name}_skipped", records=records, error=name)
