"""What retrieval keeps for later, and what makes two requests the same.

Where and how long it is kept is `providers.cache`.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from pydantic import TypeAdapter

from rag_resources.core.configuration import canonical_hash
from rag_resources.core.text import Span, content_sha256, sentences
from rag_resources.core.types import RetrievalResponse, Vectors
from rag_resources.providers.cache import (
    ANSWERS,
    CONTEXTS,
    EMBEDDINGS,
    Cache,
    CacheStatistics,
    Limits,
    MemoryCache,
)
from rag_resources.providers.cached_embedder import vector_from_bytes, vector_to_bytes
from rag_resources.retrieval.request import Request
from rag_resources.store.index_state import IndexVersion

V = TypeVar("V")

_RESPONSE = TypeAdapter(RetrievalResponse)
# In every key: a process of another release reads its own answers only.
_SHAPE = canonical_hash(_RESPONSE.json_schema())


@dataclass(frozen=True)
class Caches:
    """The caches of a process.

    Attributes:
        answers: By `query_key`.
        embeddings: Vectors of questions and of short texts, for `CachedEmbedder`.
        contexts: Sentences of notes, by the hash of their content.
    """

    answers: Cache[RetrievalResponse]
    embeddings: Cache[Vectors]
    contexts: Cache[tuple[Span, ...]]

    def sentences(self, content: str) -> tuple[Span, ...]:
        """Cut a note into sentences as `core.text.sentences` does, unless it was cut lately."""
        key = content_sha256(content).hex()
        spans = self.contexts.get(key)
        if spans is None:
            spans = tuple(sentences(content))
            self.contexts.put(key, spans)
        return spans

    def statistics(self) -> dict[str, CacheStatistics]:
        """How well each did, by name."""
        return {
            "answers": self.answers.statistics,
            "embeddings": self.embeddings.statistics,
            "contexts": self.contexts.statistics,
        }


def build_caches(redis_url: str | None) -> Caches:
    """Make the caches in Redis if there is one, else in this process.

    Raises:
        InvalidParameterError: The URL is none.
    """
    return Caches(
        answers=build_cache(
            "answers",
            ANSWERS,
            redis_url=redis_url,
            encode=response_to_bytes,
            decode=response_from_bytes,
        ),
        embeddings=build_cache(
            "embeddings",
            EMBEDDINGS,
            redis_url=redis_url,
            encode=vector_to_bytes,
            decode=vector_from_bytes,
        ),
        contexts=build_cache(
            "contexts",
            CONTEXTS,
            redis_url=redis_url,
            encode=spans_to_bytes,
            decode=spans_from_bytes,
        ),
    )


def query_key(request: Request, version: IndexVersion, models: Mapping[str, str]) -> str:
    """Return the key of everything that changes the answer to a request, but for its deadline.

    An answer that a deadline cut short is not to be kept.

    Args:
        request: The request.
        version: Of the index, read before the search. The registered embedding models are part of
            it, with their thresholds and digests.
        models: What else answers, by its part in it: the model of the notes, the language model.

    Returns:
        64 hex digits: SHA-256, since who could make two requests of one key could read another
        tenant's answers.
    """
    parts = {
        "shape": _SHAPE,
        "lineage": version.lineage,
        "number": version.number,
        "next_expiry": version.next_expiry,
        "tenant": request.tenant,
        "query": request.query,
        "config": request.config.model_dump(mode="json"),
        "filters": request.filters.model_dump(),
        "top_k": request.top_k,
        "distinct_notes": request.distinct_notes,
        "models": dict(models),
    }
    canonical = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(canonical.encode()).hexdigest()


def response_to_bytes(response: RetrievalResponse) -> bytes:
    """Encode a response as JSON."""
    return _RESPONSE.dump_json(response)


def response_from_bytes(data: bytes) -> RetrievalResponse:
    """Decode what `response_to_bytes` made, exactly.

    Raises:
        ValueError: These bytes are no response.
    """
    return _RESPONSE.validate_json(data)


def spans_to_bytes(spans: tuple[Span, ...]) -> bytes:
    """Encode spans as little-endian int32: start, end, start, end and so on."""
    return np.array([(span.start, span.end) for span in spans], dtype="<i4").tobytes()


def spans_from_bytes(data: bytes) -> tuple[Span, ...]:
    """Decode what `spans_to_bytes` made.

    Raises:
        ValueError: These bytes are no spans.
    """
    return tuple(Span(*pair) for pair in np.frombuffer(data, dtype="<i4").reshape(-1, 2).tolist())


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
