"""A fast deterministic embedder: texts that share words are near each other."""

import hashlib
from collections.abc import Sequence

import numpy as np

from rag_resources.core.errors import InvalidEmbeddingError
from rag_resources.core.types import ModelInfo, Vectors


class HashEmbedder:
    """Implements `Embedder` without a model.

    Args:
        name: Of the model.
        dimension: Of its vectors.
        refuses: A word no text may hold: such a batch fails, as a real model's can.
    """

    def __init__(self, name: str = "openai_hash", dimension: int = 32, refuses: str = "") -> None:
        self.info = ModelInfo(name, dimension, "test", "1", 0.0, 8192)
        self.refuses = refuses
        self.texts: list[str] = []

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Embed and remember the texts."""
        if self.refuses and any(self.refuses in text for text in texts):
            raise InvalidEmbeddingError("El texto no se puede representar.")
        self.texts.extend(texts)
        return np.stack([self._vector(text) for text in texts])

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Embed questions, without remembering them."""
        return np.stack([self._vector(text) for text in texts])

    def _vector(self, text: str) -> Vectors:
        vector = np.full(self.info.dimension, 0.01, dtype=np.float32)
        for word in text.lower().split():
            digest = hashlib.sha256(word.strip(".,;:¿?¡!«»()").encode()).digest()
            vector[digest[0] % self.info.dimension] += 1.0 + digest[1] / 256
        return vector / np.linalg.norm(vector)
