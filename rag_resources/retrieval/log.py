"""Writes answered questions into `retrieval_log` in the background; no question waits or fails.

The rows are in `store.retrieval_log`; failures of a retrieval are logged in `retrieval.stages`.
"""

import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from uuid import uuid4

import structlog

from rag_resources.core.configuration import RetrievalConfig
from rag_resources.core.filters import RetrievalFilters
from rag_resources.core.types import RetrievalResponse
from rag_resources.database.background import WRITE_MS, BackgroundWriter, ignore_lost
from rag_resources.database.pool import Connection, Database
from rag_resources.retrieval.cache import Caches
from rag_resources.store.retrieval_log import (
    AnsweringProcess,
    RetrievalRecord,
    insert_retrievals,
)

KEPT_DAYS = 30
"""How long a question is kept."""
EVERY_S = 0.5
"""How long questions are collected: a transaction for each costs as much as a third of a search."""

_log = structlog.get_logger()


class RetrievalLog:
    """Logs answered questions, as a `BackgroundWriter` does; thread-safe.

    Args:
        database: Where the table is.
        caches: Whose hits and misses are recorded.
        tenant: The tenant whose questions they are.
        write_ms: Longest time of a write.
        on_lost: As of `BackgroundWriter`.
    """

    def __init__(
        self,
        database: Database,
        caches: Caches,
        *,
        tenant: str,
        write_ms: float = WRITE_MS,
        on_lost: Callable[[str, int], None] = ignore_lost,
    ) -> None:
        self._database = database
        self._caches = caches
        self._tenant = tenant
        self._process = uuid4()
        self._writer: BackgroundWriter[RetrievalRecord] = BackgroundWriter(
            database,
            self._insert,
            name="retrieval_log",
            write_ms=write_ms,
            every_s=EVERY_S,
            on_lost=on_lost,
        )

    def record(
        self,
        config: RetrievalConfig,
        response: RetrievalResponse,
        filters: RetrievalFilters | None = None,
    ) -> None:
        """Log a question, and queue its row; does no input or output.

        Its text, its filters and the scores of the passages are only in DEBUG records.
        """
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
        if _log.is_enabled_for(logging.DEBUG):
            _log.debug(
                "retrieval_results",
                query=response.query,
                filters=filters.model_dump(mode="json", exclude_defaults=True) if filters else {},
                scores={str(each.chunk_id): round(each.score, 4) for each in response.results},
            )
        self._writer.put(
            RetrievalRecord(
                answered_at=datetime.now(UTC),
                config_hash=config.config_hash,
                strategy=config.strategy.value,
                model=config.model,
                latency_ms=response.latency_ms,
                stage_latencies=response.stages,
                results=len(response.results),
                degraded=response.degraded,
                failed=response.error is not None,
                cached=response.cached,
            )
        )

    def close(self) -> None:
        """Write what is queued; see `BackgroundWriter.close`."""
        self._writer.close()

    def _insert(self, connection: Connection, records: Sequence[RetrievalRecord]) -> None:
        """Write some questions, with the figures of this process at this moment."""
        pool = self._database.statistics()
        process = AnsweringProcess(
            tenant=self._tenant,
            process=self._process,
            caches={
                name: (counts.hits, counts.misses)
                for name, counts in self._caches.statistics().items()
            },
            pool={
                "size": pool.size,
                "in_use": pool.in_use - 1,  # This one is not of a question.
                "waiting": pool.waiting,
                "requests": pool.requests,
                "wait_ms_avg": pool.wait_ms_avg,
                "connections_lost": pool.connections_lost,
            },
        )
        insert_retrievals(connection, process, records, keep_days=KEPT_DAYS)
