"""A cache in Redis, shared by the processes of a deployment. The in-process one is in `cache`."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar, cast

from redis import Redis, RedisError
from redis.backoff import NoBackoff
from redis.retry import Retry

from rag_resources.core.errors import DependencyOpenError, InvalidParameterError
from rag_resources.languages.messages import _
from rag_resources.providers.cache import Cache
from rag_resources.resilience.breakers import CircuitBreaker

V = TypeVar("V")

TIMEOUT_S = 0.1
"""Time limit of connecting and of each answer. It is short, since retrieval without the cache
takes little longer."""
FAILURES = 3
"""Consecutive failures after which the breaker opens, for a minute."""


class RedisCache(Cache[V]):
    """Keeps values in Redis until they expire or its `maxmemory-policy` evicts them.

    Any failure of Redis counts as a miss, and is logged when the breaker opens. Bytes that cannot
    be decoded are a miss, too. Set `maxmemory` and the policy `allkeys-lru` in Redis; otherwise the
    cache grows with every question asked within an entry's lifetime.

    Args:
        url: `redis://…`, `rediss://…` or `unix://…`; may contain a password.
        name: Keeps its keys apart from those of other caches.
        lifetime_s: Lifetime of an entry, in seconds.
        encode: Turns a value into bytes.
        decode: Turns bytes back into a value; raises ValueError for invalid bytes.
        breaker: None: a new one that opens after `FAILURES`.

    Raises:
        InvalidParameterError: The URL is invalid. The server is not contacted yet.
    """

    def __init__(
        self,
        url: str,
        name: str,
        *,
        lifetime_s: float,
        encode: Callable[[V], bytes],
        decode: Callable[[bytes], V],
        breaker: CircuitBreaker | None = None,
    ) -> None:
        try:
            self._redis = Redis.from_url(
                url,
                socket_timeout=TIMEOUT_S,
                socket_connect_timeout=TIMEOUT_S,
                retry=Retry(NoBackoff(), 0),
            )
        except ValueError:
            # The cause is dropped, since it may quote the password.
            raise InvalidParameterError(
                _(
                    "REDIS_URL is not valid: redis://…, rediss://… or unix://… is expected, with "
                    "a numeric port."
                )
            ) from None
        # The 2 is the version of the encoding: other versions use other keys.
        self._prefix = f"brain-sync-rag:2:{name}:"
        self._lifetime_ms = max(1, round(lifetime_s * 1000))
        self._encode = encode
        self._decode = decode
        self._breaker = breaker or CircuitBreaker(f"cache:{name}", failures=FAILURES)

    def get_many(self, keys: Sequence[str]) -> dict[str, V]:
        """Return the values of those keys that have one, in one round trip."""
        found = zip(keys, map(self._opened, self._fetch(keys)), strict=True)
        return {key: value for key, value in found if value is not None}

    def put_many(self, values: Mapping[str, V]) -> None:
        """Store values in one round trip; they replace those of the same keys."""
        try:
            with self._breaker.guard(), self._redis.pipeline(transaction=False) as commands:
                for key, value in values.items():
                    commands.set(self._prefix + key, self._encode(value), px=self._lifetime_ms)
                commands.execute()
        except (RedisError, DependencyOpenError):
            return

    def _fetch(self, keys: Sequence[str]) -> Sequence[bytes | None]:
        if not keys:
            return []
        try:
            with self._breaker.guard():
                stored = self._redis.mget([self._prefix + key for key in keys])
                return cast("list[bytes | None]", stored)
        except (RedisError, DependencyOpenError):
            return [None] * len(keys)

    def _opened(self, stored: bytes | None) -> V | None:
        if stored is None:
            return None
        try:
            return self._decode(stored)
        except ValueError:
            return None
