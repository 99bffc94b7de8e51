"""Rows of `retrieval_log`: latencies, results and failures of questions, without their text.

They are written by `retrieval.log`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb
from pydantic_core import to_json

from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries


@dataclass(frozen=True, slots=True)
class RetrievalRecord:
    """The row of an answered question.

    Attributes:
        latency_ms: The whole retrieval's time.
        stage_latencies: Milliseconds per stage.
        results: How many passages it got.
        degraded: The stages that were left out.
        failed: Whether nothing could be searched.
        cached: Whether the answer came from the cache.
    """

    answered_at: datetime
    config_hash: str
    strategy: str
    model: str
    latency_ms: float
    stage_latencies: Mapping[str, float]
    results: int
    degraded: tuple[str, ...]
    failed: bool
    cached: bool


@dataclass(frozen=True, slots=True)
class AnsweringProcess:
    """What is kept of the process that answered, with each of its questions.

    Attributes:
        process: Identifies it.
        caches: Hits and misses of each cache, since its start.
        pool: Figures of its connections when the questions were written.
    """

    tenant: str
    process: UUID
    caches: Mapping[str, tuple[int, int]]
    pool: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class DayOfRetrievals:
    """The questions of a day, UTC; the latencies are of whole retrievals."""

    day: str
    questions: int
    cached: int
    degraded: int
    failed: int
    p50_ms: float
    p95_ms: float


@dataclass(frozen=True, slots=True)
class StageOfRetrievals:
    """The latency of a stage, over the questions that ran it."""

    stage: str
    count: int
    p50_ms: float
    p95_ms: float


@dataclass(frozen=True, slots=True)
class RetrievalHistory:
    """The logged questions of the last days.

    Attributes:
        days: Latest first; days without questions are left out.
        stages: Slowest first.
        caches: Hits and misses by cache, of the processes that answered, each since its start.
        pools: Figures of the connections of the processes that answered last.
    """

    days: tuple[DayOfRetrievals, ...]
    stages: tuple[StageOfRetrievals, ...]
    caches: Mapping[str, tuple[int, int]]
    pools: tuple[Mapping[str, Any], ...]


def insert_retrievals(
    connection: Connection,
    process: AnsweringProcess,
    records: Sequence[RetrievalRecord],
    *,
    keep_days: int,
) -> None:
    """Write some questions of a process, and delete those older than `keep_days`."""
    queries().insert_retrievals(
        connection,
        tenant=process.tenant,
        process=process.process,
        caches=Jsonb({name: list(counts) for name, counts in process.caches.items()}),
        pool=Jsonb(dict(process.pool)),
        records=to_json(records).decode(),
    )
    queries().delete_old_retrievals(connection, days=keep_days)


def read_retrievals(connection: Connection, tenant: str, *, days: int) -> RetrievalHistory:
    """Return the logged questions of a tenant, of the last days."""
    found = {"tenant": tenant, "days": days}
    return RetrievalHistory(
        tuple(DayOfRetrievals(*row) for row in queries().retrievals_by_day(connection, **found)),
        tuple(StageOfRetrievals(*row) for row in queries().retrieval_stages(connection, **found)),
        {
            row.cache: (row.hits, row.misses)
            for row in queries().retrieval_caches(connection, **found)
        },
        tuple(row.pool for row in queries().retrieval_pools(connection, **found)),
    )
