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


class Cache(Protocol[V]):
    """Keeps values for a while and may drop any of them at any time; never raises."""

    def get_many(self, keys: Sequence[str]) -> dict[str, V]:
        """Return the values of those keys that have one."""
        ...

    def put_many(self, values: Mapping[str, V]) -> None:
        """Store values; they replace those of the same keys."""
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

    def get_many(self, keys: Sequence[str]) -> dict[str, V]:
        """Return the values of those keys that have one."""
        with self._lock:
            found = {key: self._entries.get(key) for key in keys}
        return {key: value for key, value in found.items() if value is not None}

    def put_many(self, values: Mapping[str, V]) -> None:
        """Store values; they replace those of the same keys."""
        with self._lock:
            self._entries.update(values)
