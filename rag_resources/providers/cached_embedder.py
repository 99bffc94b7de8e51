"""An embedder with a cache of its vectors, and their encoding for Redis."""

import hashlib
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from rag_resources.providers.cache import Cache, MemoryCache
from rag_resources.providers.protocols import Embedder, ModelInfo, Vectors

_NORM_TOLERANCE = 1e-3


class CachedEmbedder(Embedder):
    """Embeds each distinct text once, and only if its vector is not cached.

    Args:
        embedder: The model.
        cache: Caches its vectors; other models may share it.
    """

    def __init__(self, embedder: Embedder, cache: Cache[Vectors]) -> None:
        self._embedder = embedder
        self._cache = cache
        self._info: ModelInfo | None = None

    @property
    def info(self) -> ModelInfo:
        """The model behind it. Asked for once, since a server may have to answer."""
        if self._info is None:
            self._info = self._embedder.info
        return self._info

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Embed passages. Same result and errors as `Embedder`."""
        return self._embed("passage", texts, self._embedder.embed_passages)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Embed questions. Same result and errors as `embed_passages`."""
        return self._embed("query", texts, self._embedder.embed_queries)

    def at_hand(self, texts: Sequence[str]) -> Vectors | None:
        """See `Remembering`; None with a cache outside this process, which may be slow."""
        # Without the model's details there are no keys; a server may have to be asked for them.
        if not isinstance(self._cache, MemoryCache) or self._info is None or not texts:
            return None
        keys = [self._key("query", text) for text in texts]
        vectors = self._cache.get_many(keys)
        shape = (self._info.dimension,)
        if any(key not in vectors or vectors[key].shape != shape for key in keys):
            return None
        return np.stack([vectors[key] for key in keys])

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
        """Leave out values that are not vectors of this model; others may have written to Redis."""
        shape = (self.info.dimension,)
        return {
            key: vector
            for key, vector in found.items()
            if vector.shape == shape and np.isclose(vector @ vector, 1, atol=_NORM_TOLERANCE)
        }


def _frozen(row: Vectors) -> Vectors:
    """A read-only copy, which does not keep the rest of its batch in memory."""
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
