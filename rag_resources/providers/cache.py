"""Caches of what was computed lately, in this process or in Redis.

What a key must hold is its user's business: for answers and sentences that is `retrieval.cache`.
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
        entries: At most, the least recently used goes first; Redis has its own `maxmemory` instead.
        lifetime_s: Of an entry, in seconds.
    """

    entries: int
    lifetime_s: float


ANSWERS = Limits(entries=1_000, lifetime_s=5 * 60)
EMBEDDINGS = Limits(entries=10_000, lifetime_s=60 * 60)
CONTEXTS = Limits(entries=5_000, lifetime_s=2 * 60 * 60)


@dataclass(frozen=True, slots=True)
class CacheStatistics:
    """How well a cache did in this process.

    Attributes:
        size: Entries now; None where others share the cache.
    """

    hits: int
    misses: int
    size: int | None

    @property
    def hit_rate(self) -> float | None:
        """Share of look-ups that were answered; None before the first."""
        total = self.hits + self.misses
        return self.hits / total if total else None


class Cache(Protocol[V]):
    """Keeps values for a while and may forget any of them at any time; never raises."""

    @property
    def statistics(self) -> CacheStatistics:
        """How well it did so far."""
        ...

    def get_many(self, keys: Sequence[str]) -> dict[str, V]:
        """Return the values of those keys that have one."""
        ...

    def put_many(self, values: Mapping[str, V]) -> None:
        """Keep values, in place of what was kept under their keys."""
        ...

    def get(self, key: str) -> V | None:
        """Return the value of a key, None if there is none."""
        return self.get_many([key]).get(key)

    def put(self, key: str, value: V) -> None:
        """Keep a value."""
        self.put_many({key: value})


class MemoryCache(Cache[V]):
    """Keeps values in this process, for all of its threads, which share the very same objects.

    Args:
        limits: How many, and how long.
        clock: Monotonic, in seconds.
    """

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self._entries: TTLCache[str, V] = TTLCache(limits.entries, limits.lifetime_s, timer=clock)
        self._lock = threading.Lock()
        self._hits = 0
        self._misses = 0

    @property
    def statistics(self) -> CacheStatistics:
        """How well it did so far."""
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

    def put_many(self, values: Mapping[str, V]) -> None:
        """Keep values, in place of what was kept under their keys."""
        with self._lock:
            self._entries.update(values)
