"""The protocols that providers implement; each implementation is its own file in this folder."""

from collections.abc import Iterator, Sequence
from typing import Protocol, TypeVar

from pydantic import BaseModel

from rag_resources.core.deadline import Deadline
from rag_resources.core.types import ModelInfo, Vectors

__all__ = ["Embedder", "LanguageModel", "ModelInfo", "Reranker", "Vectors"]

AnswerT = TypeVar("AnswerT", bound=BaseModel)


class Embedder(Protocol):
    """Turns texts into vectors; adds the prefixes that its model needs."""

    @property
    def info(self) -> ModelInfo:
        """The model behind it."""
        ...

    @property
    def runtime(self) -> str:
        """What computes the vectors on this machine; only for display."""
        return self.info.provider

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


class LanguageModel(Protocol):
    """Writes text."""

    @property
    def name(self) -> str:
        """The name that is stored and shown, such as `ollama:llama3.2`."""
        ...

    def answer(
        self, prompt: str, shape: type[AnswerT], *, system: str = "", deadline: Deadline
    ) -> AnswerT:
        """Answer in the shape of a pydantic model (structured output), deterministically.

        Raises:
            ProviderError: The model cannot be used.
            InvalidAnswerError: The answer has another shape.
            DeadlineExceededError: There was not enough time.
        """
        ...

    def stream(self, prompt: str, *, system: str = "", deadline: Deadline) -> Iterator[str]:
        """Answer in plain text, piece by piece. Same errors as `answer`, also while iterating."""
        ...


class Reranker(Protocol):
    """Scores how well passages answer a question."""

    def score(self, query: str, passages: Sequence[str], *, deadline: Deadline) -> list[float]:
        """Score passages.

        Returns:
            One score per passage, finite, in [0, 1], higher is better, comparable only within the
            call.

        Raises:
            ProviderError: It cannot be used.
            DeadlineExceededError: There was not enough time for all passages.
        """
        ...
