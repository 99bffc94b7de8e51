"""Latencies of a process's retrievals, stage by stage, in constant memory.

The times of one retrieval are in `retrieval.stages`. Showing a profile is left to its readers.
"""

import threading
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from rag_resources.core.evaluation import Percentiles, percentiles

WINDOW = 10_000
"""Latencies kept per stage; older ones are only counted."""


@dataclass(frozen=True, slots=True)
class LatencyProfile:
    """The latencies of a stage, or of whole retrievals.

    Attributes:
        count: How often it ran in the life of the process.
        average_ms: Over the last `WINDOW` runs.
        percentiles: Over the same runs.
    """

    count: int
    average_ms: float
    percentiles: Percentiles


@dataclass(frozen=True, slots=True)
class ProfileSummary:
    """A snapshot of a profile.

    Attributes:
        stages: In order of first appearance.
        total: Retrievals that were computed; None if there were none.
        cached: Retrievals answered from the cache; None if there were none.
        degraded: How many retrievals lacked each stage, most frequent first.
    """

    stages: Mapping[str, LatencyProfile]
    total: LatencyProfile | None
    cached: LatencyProfile | None
    degraded: Mapping[str, int]


@dataclass(slots=True)
class _Latencies:
    count: int = 0
    recent_ms: deque[float] = field(default_factory=lambda: deque(maxlen=WINDOW))

    def add(self, latency_ms: float) -> None:
        self.count += 1
        self.recent_ms.append(latency_ms)


class Profile:
    """Collects the latencies of retrievals; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stages: dict[str, _Latencies] = {}
        self._total = _Latencies()
        self._cached = _Latencies()
        self._degraded: Counter[str] = Counter()

    def record(
        self,
        latency_ms: float,
        stages: Mapping[str, float],
        *,
        degraded: Sequence[str],
        cached: bool,
    ) -> None:
        """Add a retrieval.

        Args:
            latency_ms: The whole retrieval's time.
            stages: Milliseconds per stage.
            degraded: The stages that were left out, without repeats.
            cached: Whether its answer came from the cache.
        """
        with self._lock:
            (self._cached if cached else self._total).add(latency_ms)
            for name, stage_ms in stages.items():
                self._stages.setdefault(name, _Latencies()).add(stage_ms)
            self._degraded.update(degraded)

    def summary(self) -> ProfileSummary:
        """Return the averages and percentiles at this moment."""
        with self._lock:
            stages = {name: _copied(latencies) for name, latencies in self._stages.items()}
            total, cached = _copied(self._total), _copied(self._cached)
            degraded = dict(self._degraded.most_common())
        return ProfileSummary(
            stages={name: _profiled(*copied) for name, copied in stages.items()},
            total=_profiled(*total) if total[0] else None,
            cached=_profiled(*cached) if cached[0] else None,
            degraded=degraded,
        )


def _copied(latencies: _Latencies) -> tuple[int, list[float]]:
    """Copy the latencies, so that they are sorted outside the lock that retrievals wait for."""
    return latencies.count, list(latencies.recent_ms)


def _profiled(count: int, recent_ms: Sequence[float]) -> LatencyProfile:
    return LatencyProfile(count, fmean(recent_ms), percentiles(recent_ms))
