"""Caches of recently computed values, in this process or in Redis.

What a key must contain is decided by the caller: for answers and sentences, by `retrieval.cache`.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from cachetools import TTLCache

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a cache keeps.

    Attributes:
        entries: Most entries; the least recently used is evicted first. Redis has its own
            `maxmemory` instead.
        lifetime_s: Lifetime of an entry, in seconds.
    """

    entries: int
    lifetime_s: float


ANSWERS = Limits(entries=1_000, lifetime_s=5 * 60)
EMBEDDINGS = Limits(entries=10_000, lifetime_s=60 * 60)
CONTEXTS = Limits(entries=5_000, lifetime_s=2 * 60 * 60)


@dataclass(frozen=True, slots=True)
class CacheStatistics:
    """Hits and misses of a cache in this process.

    Attributes:
        size: Current number of entries; None if other processes share the cache.
    """

    hits: int
    misses: int
    size: int | None

    @property
    def hit_rate(self) -> float | None:
        """Share of look-ups that found a value; None before the first."""
        total = self.hits + self.misses
        return self.hits / total if total else None


class Cache(Protocol[V]):
    """Keeps values for a while and may drop any of them at any time; never raises."""

    @property
    def statistics(self) -> CacheStatistics:
        """Its hits and misses so far."""
        ...

    def get_many(self, keys: Sequence[str]) -> dict[str, V]:
        """Return the values of those keys that have one."""
        ...

    def put_many(self, values: Mapping[str, V]) -> None:
        """Store values; they replace those of the same keys."""
        ...

    def reject(self) -> None:
        """Count a value that was found as a miss, since it cannot be used."""
        ...

    def get(self, key: str) -> V | None:
        """Return the value of a key, None if there is none."""
        return self.get_many([key]).get(key)

    def put(self, key: str, value: V) -> None:
        """Store a value."""
        self.put_many({key: value})


class MemoryCache(Cache[V]):
    """Keeps values in this process. All threads share the same objects.

    Args:
        limits: How many values to keep, and how long.
        clock: Monotonic, in seconds.
    """

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self._entries: TTLCache[str, V] = TTLCache(limits.entries, limits.lifetime_s, timer=clock)
        self._lock = threading.Lock()
        self._hits = 0
        self._misses = 0

    @property
    def statistics(self) -> CacheStatistics:
        """Its hits and misses so far."""
        with self._lock:
            return CacheStatistics(self._hits, self._misses, len(self._entries))

    def get_many(self, keys: Sequence[str]) -> dict[str, V]:
        """Return the values of those keys that have one."""
        found: dict[str, V] = {}
        with self._lock:
            for key in keys:
                value = self._entries.get(key)
                if value is not None:
                    found[key] = value
            hits = sum(key in found for key in keys)
            self._hits += hits
            self._misses += len(keys) - hits
        return found

    def reject(self) -> None:
        """Count a value that was found as a miss, since it cannot be used."""
        with self._lock:
            self._hits -= 1
            self._misses += 1

    def get_all(self, keys: Sequence[str]) -> dict[str, V] | None:
        """Return the values of the keys if each has one; otherwise None, which counts nowhere."""
        with self._lock:
            found = {key: self._entries.get(key) for key in keys}
            whole = {key: value for key, value in found.items() if value is not None}
            if len(whole) < len(found):
                return None
            self._hits += len(keys)
        return whole

    def put_many(self, values: Mapping[str, V]) -> None:
        """Store values; they replace those of the same keys."""
        with self._lock:
            self._entries.update(values)
