"""Metrics for Prometheus: requests, stages, the queue and the database's pool."""

import os

from prometheus_client import (
    REGISTRY,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector

from rag_resources.core.types import RetrievalResponse
from rag_resources.database.pool import PoolStatistics

MULTIPROCESS = "PROMETHEUS_MULTIPROC_DIR"
"""The variable that names the folder in which workers add up their numbers; read on import."""

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 5.0, 10.0, 30.0)

REQUESTS = Counter("rag_http_requests", "Requests answered", ["route", "method", "status"])
DURATION = Histogram(
    "rag_http_request_seconds",
    "Time from arrival to the end of the answer",
    ["route"],
    buckets=_SECONDS,
)
REFUSED = Counter("rag_http_refused", "Questions refused because the queue was full or too slow")
QUEUED = Gauge("rag_http_queued", "Questions that wait for a thread", multiprocess_mode="livesum")
STAGES = Histogram(
    "rag_stage_seconds", "Time of a stage of a retrieval", ["stage"], buckets=_SECONDS
)
DEGRADED = Counter("rag_degraded", "Retrievals that went on without a stage", ["stage"])
CACHED = Counter("rag_cached", "Retrievals answered from the cache")
POOL = Gauge(
    "rag_pool_connections", "Connections to the database", ["state"], multiprocess_mode="livesum"
)


def count_retrieval(response: RetrievalResponse) -> None:
    """Count the stages of a retrieval, and what degraded."""
    if response.cached:
        CACHED.inc()
    for stage, milliseconds in response.stages.items():
        STAGES.labels(stage).observe(milliseconds / 1000)
    for stage in response.degraded:
        DEGRADED.labels(stage).inc()


def written(pool: PoolStatistics) -> bytes:
    """Return all numbers in Prometheus' text format."""
    POOL.labels("open").set(pool.size)
    POOL.labels("in_use").set(pool.in_use)
    POOL.labels("waiting").set(pool.waiting)
    registry: CollectorRegistry = REGISTRY
    if MULTIPROCESS in os.environ:
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return generate_latest(registry)
