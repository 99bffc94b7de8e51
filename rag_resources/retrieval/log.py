"""Writes answered questions into `retrieval_log`, beside the questions and never in their way.

The rows are in `store.retrieval_log`; failures of a retrieval are logged in `retrieval.stages`.
"""

import random
import threading
import time
from collections import deque
from datetime import UTC, datetime
from uuid import uuid4

import psycopg
import structlog

from rag_resources.core.configuration import RetrievalConfig
from rag_resources.core.deadline import Deadline
from rag_resources.core.errors import RagError
from rag_resources.core.types import RetrievalResponse
from rag_resources.database.pool import Database
from rag_resources.retrieval.cache import Caches
from rag_resources.store.retrieval_log import RetrievalRecord, insert_retrievals

WAITING = 1_000
"""Most records that wait to be written; beyond that the oldest is dropped."""
BATCH = 200
WRITE_MS = 1_000.0
"""Longest time of a write."""

_log = structlog.get_logger()


class RetrievalLog:
    """Logs answered questions; thread-safe.

    A thread writes them in batches. A database that is down, locked, full or read-only loses the
    records of that time, and nothing else: a question neither waits for a write nor fails by it.

    Args:
        database: Where the table is.
        caches: Whose hits and misses are recorded.
        tenant: Whose questions they are.
        share: Share of the questions that is written, in [0, 1].
        keep_days: Rows older than this are deleted, >= 1.
        write_ms: Longest time of a write.
    """

    def __init__(
        self,
        database: Database,
        caches: Caches,
        *,
        tenant: str,
        share: float,
        keep_days: int,
        write_ms: float = WRITE_MS,
    ) -> None:
        self._database = database
        self._caches = caches
        self._tenant = tenant
        self._share = share
        self._keep_days = keep_days
        self._process = uuid4()
        self._write_ms = write_ms
        self._waiting: deque[RetrievalRecord] = deque(maxlen=WAITING)
        self._changed = threading.Condition()
        self._closing = False
        self._writer: threading.Thread | None = None

    def record(self, config: RetrievalConfig, response: RetrievalResponse) -> None:
        """Log a question, and write it if it is in the sample; costs no input or output."""
        _log.info(
            "retrieval",
            config_hash=config.config_hash,
            latency_ms=round(response.latency_ms, 1),
            stages={name: round(stage_ms, 1) for name, stage_ms in response.stages.items()},
            results=len(response.results),
            degraded=response.degraded,
            cached=response.cached,
            failed=response.error is not None,
        )
        if random.random() >= self._share:  # noqa: S311 -- a sample, not a secret
            return
        self._put(self._made(config, response))

    def close(self) -> None:
        """Write what waits; takes two writes at most, the one under way and the last one."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._writer is None, timeout=2 * self._write_ms / 1_000)

    def _made(self, config: RetrievalConfig, response: RetrievalResponse) -> RetrievalRecord:
        pool = self._database.statistics()
        return RetrievalRecord(
            tenant=self._tenant,
            answered_at=datetime.now(UTC),
            process=self._process,
            config_hash=config.config_hash,
            strategy=config.strategy.value,
            model=config.model,
            latency_ms=response.latency_ms,
            stage_latencies=response.stages,
            results=len(response.results),
            degraded=response.degraded,
            failed=response.error is not None,
            cached=response.cached,
            caches={
                name: (counts.hits, counts.misses)
                for name, counts in self._caches.statistics().items()
            },
            pool={
                "size": pool.size,
                "in_use": pool.in_use,
                "waiting": pool.waiting,
                "requests": pool.requests,
                "wait_ms_avg": pool.wait_ms_avg,
                "connections_lost": pool.connections_lost,
            },
        )

    def _put(self, record: RetrievalRecord) -> None:
        with self._changed:
            self._closing = False
            self._waiting.append(record)
            # A forked process has no threads of its parent.
            if self._writer is None or not self._writer.is_alive():
                self._writer = threading.Thread(
                    target=self._write_all, name="retrieval-log", daemon=True
                )
                self._writer.start()
            self._changed.notify_all()

    def _write_all(self) -> None:
        while batch := self._next():
            self._write(batch)

    def _next(self) -> list[RetrievalRecord]:
        """Wait for records; none once the log is closed and everything is written."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closing)
            if not self._waiting:
                self._writer = None
                self._changed.notify_all()
            return [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]

    def _write(self, batch: list[RetrievalRecord]) -> None:
        try:
            deadline = Deadline.after(self._write_ms, time.monotonic)
            with self._database.transaction(deadline) as connection:
                insert_retrievals(connection, batch, keep_days=self._keep_days)
        except (RagError, psycopg.Error) as error:
            _log.warning("retrieval_log_skipped", records=len(batch), error=type(error).__name__)
