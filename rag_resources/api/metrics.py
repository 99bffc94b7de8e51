"""Metrics for Prometheus: requests, stages, the database's pool, and the work that waits."""

import os
from collections.abc import Iterator

from prometheus_client import (
    REGISTRY,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from rag_resources.application import Application
from rag_resources.core.errors import RagError
from rag_resources.core.types import RetrievalResponse

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
STAGES = Histogram(
    "rag_stage_seconds", "Time of a stage of a retrieval", ["stage"], buckets=_SECONDS
)
DEGRADED = Counter("rag_degraded", "Retrievals that went on without a stage", ["stage"])
POOL = Gauge(
    "rag_pool_connections", "Connections to the database", ["state"], multiprocess_mode="livesum"
)


def count_retrieval(response: RetrievalResponse) -> None:
    """Count the stages of a retrieval, and what degraded."""
    for stage, milliseconds in response.stages.items():
        STAGES.labels(stage).observe(milliseconds / 1000)
    for stage in response.degraded:
        DEGRADED.labels(stage).inc()


def written(application: Application) -> bytes:
    """Return all numbers in Prometheus' text format; those of the database as they are now."""
    pool = application.database.statistics()
    POOL.labels("open").set(pool.size)
    POOL.labels("in_use").set(pool.in_use)
    POOL.labels("waiting").set(pool.waiting)
    registry: CollectorRegistry = REGISTRY
    if MULTIPROCESS in os.environ:
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    now = CollectorRegistry()
    now.register(_Now(application))
    return generate_latest(registry) + generate_latest(now)


class _Now(Collector):
    def __init__(self, application: Application) -> None:
        self._application = application

    def collect(self) -> Iterator[GaugeMetricFamily]:
        pending = GaugeMetricFamily(
            "rag_pending_embeddings", "Notes whose vectors wait", labels=["model"]
        )
        is_up = True
        try:
            for model, notes in self._application.indexing.pending().items():
                pending.add_metric([model], notes)
        except RagError:
            is_up = False
        yield pending
        yield GaugeMetricFamily("rag_database_up", "Whether the database answers", is_up)
