"""The caches of retrieval, and the keys under which answers are stored.

Where entries are stored and for how long is decided in `providers.cache`.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from pydantic import TypeAdapter

from rag_resources.core.configuration import canonical_hash
from rag_resources.core.sentences import sentences
from rag_resources.core.text import Span, content_sha256
from rag_resources.core.types import RetrievalResponse, Vectors
from rag_resources.providers.cache import (
    ANSWERS,
    CONTEXTS,
    EMBEDDINGS,
    Cache,
    Limits,
    MemoryCache,
)
from rag_resources.providers.cached_embedder import vector_from_bytes, vector_to_bytes
from rag_resources.retrieval.request import Request
from rag_resources.store.index_state import IndexVersion

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """A response, and the version of the index that it is valid for."""

    response: RetrievalResponse
    version: IndexVersion


_ANSWER = TypeAdapter(KeptAnswer)
# Part of every key, so that a process reads only answers written by its own release.
_SHAPE = canonical_hash(_ANSWER.json_schema())


@dataclass(frozen=True)
class Caches:
    """The caches of a process.

    Attributes:
        answers: Whole responses with their versions, by `query_key`.
        embeddings: Vectors of questions and of short texts, for `CachedEmbedder`.
        contexts: Sentences of notes, by the hash of their content; in this process only.
    """

    answers: Cache[KeptAnswer]
    embeddings: Cache[Vectors]
    contexts: MemoryCache[tuple[Span, ...]]

    def sentences(self, content: str) -> tuple[Span, ...]:
        """Cut a note into sentences with `core.text.sentences`, or return the cached result."""
        key = content_sha256(content).hex()
        spans = self.contexts.get(key)
        if spans is None:
            spans = tuple(sentences(content))
            self.contexts.put(key, spans)
        return spans


def build_caches(redis_url: str | None) -> Caches:
    """Build the caches of answers and vectors: in Redis if a URL is given.

    Raises:
        InvalidParameterError: The URL is not a Redis URL.
    """
    return Caches(
        answers=build_cache(
            "answers",
            ANSWERS,
            redis_url=redis_url,
            encode=answer_to_bytes,
            decode=answer_from_bytes,
        ),
        embeddings=build_cache(
            "embeddings",
            EMBEDDINGS,
            redis_url=redis_url,
            encode=vector_to_bytes,
            decode=vector_from_bytes,
        ),
        contexts=MemoryCache(CONTEXTS),
    )


def query_key(request: Request, models: Mapping[str, str]) -> str:
    """Return the cache key of a request: all that changes its answer except index and deadline.

    The answer is kept with the version of the index, which covers the registered embedding models
    with their thresholds and digests. An answer that the deadline cut short must not be cached.

    Args:
        request: The request.
        models: The other models that contribute (of the notes, the language model), by their role.

    Returns:
        64 hex digits of SHA-256. A weaker hash would not do: whoever can make two requests
        collide can read another tenant's answers.
    """
    parts = {
        "shape": _SHAPE,
        "tenant": request.tenant,
        "query": request.query,
        "language": request.language,
        "config": request.config.dumped,
        "filters": request.filters.model_dump(),
        "top_k": request.top_k,
        "distinct_notes": request.distinct_notes,
        "models": dict(models),
    }
    canonical = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(canonical.encode()).hexdigest()


def answer_to_bytes(answer: KeptAnswer) -> bytes:
    """Encode a kept answer as JSON."""
    return _ANSWER.dump_json(answer)


def answer_from_bytes(data: bytes) -> KeptAnswer:
    """Decode what `answer_to_bytes` made, exactly.

    Raises:
        ValueError: The bytes are not a kept answer.
    """
    return _ANSWER.validate_json(data)


def build_cache(
    name: str,
    limits: Limits,
    *,
    redis_url: str | None,
    encode: Callable[[V], bytes],
    decode: Callable[[bytes], V],
) -> Cache[V]:
    """Build a cache: in Redis if a URL is given, otherwise in this process.

    Args:
        name: Keeps its keys apart from those of other caches in the same Redis.
        limits: How many entries, and for how long.
        redis_url: `redis://…`, `rediss://…` or `unix://…`.
        encode: Turns a value into the bytes that Redis stores.
        decode: The inverse; raises ValueError for bytes that are not a value.

    Raises:
        InvalidParameterError: The URL is not a Redis URL.
    """
    if redis_url is None:
        return MemoryCache(limits)
    # Imported here so that only users of Redis wait for its client to load.
    from rag_resources.providers.cache_redis import RedisCache

    return RedisCache(redis_url, name, lifetime_s=limits.lifetime_s, encode=encode, decode=decode)
