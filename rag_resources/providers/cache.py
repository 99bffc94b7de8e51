"""Caches of what was computed lately, in this process or in Redis, and an embedder that uses one.

What a key must hold is its user's business: for answers and sentences that is `retrieval.cache`.
"""

import hashlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from cachetools import TTLCache

from rag_resources.providers.protocols import Embedder, ModelInfo, Vectors

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


def build_cache(
    name: str,
    limits: Limits,
    *,
    redis_url: str | None,
    encode: Callable[[V], bytes],
    decode: Callable[[bytes], V],
) -> Cache[V]:
    """Make a cache in Redis if there is one, else in this process.

    Args:
        name: Keeps its keys apart from those of other caches in the same Redis.
        limits: How many, and how long.
        redis_url: `redis://…`, `rediss://…` or `unix://…`.
        encode: Makes the bytes that Redis keeps.
        decode: The way back; ValueError for bytes that are no value.

    Raises:
        InvalidParameterError: The URL is none.
    """
    if redis_url is None:
        return MemoryCache(limits)
    # Loads the client of Redis: not what everybody should wait for.
    from rag_resources.providers.cache_redis import RedisCache

    return RedisCache(redis_url, name, lifetime_s=limits.lifetime_s, encode=encode, decode=decode)


class CachedEmbedder(Embedder):
    """Embeds only the texts that were not embedded lately, each once.

    Args:
        embedder: The model.
        cache: Of its vectors, and perhaps those of other models.
    """

    def __init__(self, embedder: Embedder, cache: Cache[Vectors]) -> None:
        self._embedder = embedder
        self._cache = cache
        self._info: ModelInfo | None = None

    @property
    def info(self) -> ModelInfo:
        """The model behind it, asked for once: it may be a server's answer."""
        if self._info is None:
            self._info = self._embedder.info
        return self._info

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Embed passages. Same result and errors as `Embedder`."""
        return self._embed("passage", texts, self._embedder.embed_passages)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Embed questions. Same result and errors as `embed_passages`."""
        return self._embed("query", texts, self._embedder.embed_queries)

    def _embed(
        self, kind: str, texts: Sequence[str], embed: Callable[[Sequence[str]], Vectors]
    ) -> Vectors:
        if not texts:
            return embed(texts)
        keys = [self._key(kind, text) for text in texts]
        by_key = dict(zip(keys, texts, strict=True))
        vectors = self._whole(self._cache.get_many(list(by_key)))
        missing = {key: text for key, text in by_key.items() if key not in vectors}
        if missing:
            made = embed(list(missing.values()))
            fresh = {key: _frozen(row) for key, row in zip(missing, made, strict=True)}
            self._cache.put_many(fresh)
            vectors |= fresh
        return np.stack([vectors[key] for key in keys])

    def _key(self, kind: str, text: str) -> str:
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        return f"{self.info.name}:{self.info.digest}:{kind}:{digest}"

    def _whole(self, found: Mapping[str, Vectors]) -> dict[str, Vectors]:
        shape = (self.info.dimension,)
        return {key: vector for key, vector in found.items() if vector.shape == shape}


def _frozen(row: Vectors) -> Vectors:
    """A copy nobody can write to, which does not keep the rest of its batch in memory."""
    copy = row.copy()
    copy.flags.writeable = False
    return copy


def vector_to_bytes(vector: Vectors) -> bytes:
    """Encode a vector as little-endian float32."""
    return vector.astype("<f4").tobytes()


def vector_from_bytes(data: bytes) -> Vectors:
    """Decode what `vector_to_bytes` made; read-only.

    Raises:
        ValueError: These bytes are no vector.
    """
    vector: Vectors = np.frombuffer(data, dtype="<f4")
    return vector
