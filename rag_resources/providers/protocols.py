"""The protocols providers implement. Implementations: `embedded_e5`, `embedded_use`, `ollama`."""

from collections.abc import Sequence
from typing import Protocol

from rag_resources.core.types import ModelInfo, Vectors

__all__ = ["Embedder", "ModelInfo", "Vectors"]


class Embedder(Protocol):
    """Turns texts into vectors; knows the prefixes its model wants."""

    @property
    def info(self) -> ModelInfo:
        """The model behind it."""
        ...

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Embed passages.

        Returns:
            `(n_texts, dimension)` float32, rows finite and L2-normalised.

        Raises:
            ProviderError: The model cannot be used.
        """
        ...

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Embed questions. Same result and errors as `embed_passages`."""
        ...
