"""Gauges of the database and of this process, computed each time Prometheus reads them.

Counts of requests are in `api.metrics`.
"""

from collections.abc import Iterator
from datetime import UTC, datetime

import structlog
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from rag_resources.application import Application
from rag_resources.core.errors import RagError
from rag_resources.resilience.breakers import BreakerState

_BREAKER_VALUES = {BreakerState.CLOSED: 0, BreakerState.HALF_OPEN: 1, BreakerState.OPEN: 2}
_GATES = {"pass": 1, "inconclusive": 0, "fail": -1}

_log = structlog.get_logger()


def read_gauges(application: Application) -> bytes:
    """Return the present values in Prometheus' text format."""
    registry = CollectorRegistry()
    registry.register(_Now(application))
    return generate_latest(registry)


class _Now(Collector):
    def __init__(self, application: Application) -> None:
        self._application = application

    def collect(self) -> Iterator[GaugeMetricFamily]:
        up = GaugeMetricFamily("rag_database_up", "Whether the database answers")
        try:
            found = [*self._indexing(), *self._evaluations()]
            up.add_metric([], 1)
        except RagError as error:
            _log.warning("gauges_unavailable", error=type(error).__name__)
            found = []
            up.add_metric([], 0)
        yield up
        yield from found
        yield self._breakers()
        yield from self._standbys()

    def _standbys(self) -> Iterator[GaugeMetricFamily]:
        readers = self._application.readers
        if readers is None:
            return
        used = GaugeMetricFamily(
            "rag_standby_used", "Whether a standby is fresh enough to be read", labels=["standby"]
        )
        staleness = GaugeMetricFamily(
            "rag_standby_staleness_seconds",
            "How much older than the primary a standby is at most; none for one that is lost",
            labels=["standby"],
        )
        for address, is_used, seconds in zip(
            readers.addresses, readers.used, readers.staleness_s, strict=True
        ):
            used.add_metric([address], is_used)
            if seconds is not None:
                staleness.add_metric([address], seconds)
        yield from (used, staleness)

    def _indexing(self) -> Iterator[GaugeMetricFamily]:
        pending = GaugeMetricFamily(
            "rag_pending_embeddings", "Notes whose vectors wait", labels=["model"]
        )
        for model, notes in self._application.indexing.pending().items():
            pending.add_metric([model], notes)
        yield pending
        uploads = len(self._application.documents.waiting_uploads())
        yield _single("rag_pending_uploads", "Uploaded documents that nobody has read", uploads)

    def _evaluations(self) -> Iterator[GaugeMetricFamily]:
        families = {
            name: GaugeMetricFamily(name, words, labels=["configuration"])
            for name, words in (
                ("rag_hit_rate_at_10", "Hit_Rate@10 of the latest evaluation"),
                ("rag_served_hit_rate", "Share of questions with a relevant note that is served"),
                ("rag_gate", "Gate of the latest evaluation: 1 pass, 0 inconclusive, -1 fail"),
                ("rag_evaluation_p95_seconds", "p95 latency of the latest evaluation"),
                ("rag_evaluation_age_seconds", "How long ago that was"),
            )
        }
        now = datetime.now(tz=UTC)
        for evaluation in self._application.evaluations.latest_of_each():
            label = [evaluation.configuration]
            families["rag_hit_rate_at_10"].add_metric(label, evaluation.hit_rate_at_10)
            families["rag_served_hit_rate"].add_metric(label, evaluation.served_hit_rate)
            if evaluation.gate in _GATES:  # A disturbed evaluation has no verdict.
                families["rag_gate"].add_metric(label, _GATES[evaluation.gate])
            p95 = evaluation.latency_p95_ms / 1_000
            families["rag_evaluation_p95_seconds"].add_metric(label, p95)
            age = (now - evaluation.created_at).total_seconds()
            families["rag_evaluation_age_seconds"].add_metric(label, age)
        yield from families.values()

    def _breakers(self) -> GaugeMetricFamily:
        family = GaugeMetricFamily(
            "rag_breaker",
            "Circuit breakers of the process that answers: 0 closed, 1 on trial, 2 open",
            labels=["dependency"],
        )
        for name, state in self._application.pipeline.breaker_states().items():
            family.add_metric([name], _BREAKER_VALUES[state])
        return family


def _single(name: str, words: str, value: float) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, words)
    family.add_metric([], value)
    return family
