"""The protocols that providers implement; each implementation is its own file in this folder."""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar, runtime_checkable

from pydantic import BaseModel

from rag_resources.core.deadline import Deadline
from rag_resources.core.types import ModelInfo, Vectors

__all__ = [
    "DETERMINISTIC",
    "Embedder",
    "Ending",
    "LanguageModel",
    "ModelInfo",
    "Prefixes",
    "Remembering",
    "Reranker",
    "Sampling",
    "Vectors",
]

AnswerT = TypeVar("AnswerT", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a language model writes.

    Attributes:
        temperature: 0 writes the same again for the same prompt; higher values vary.
        max_tokens: Most tokens of an answer; None is the server's limit.
    """

    temperature: float = 0.0
    max_tokens: int | None = None


DETERMINISTIC = Sampling()


@dataclass(frozen=True, slots=True)
class Ending:
    """A server's report at the end of an answer.

    Attributes:
        prompt_tokens: Tokens of the prompt; None if the server does not count them.
        completion_tokens: Tokens of the answer; None likewise.
        is_cut: Whether the answer was cut at its limit of tokens.
    """

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    is_cut: bool = False


class Prefixes(NamedTuple):
    """The texts that a model puts before each question and passage; part of its digest."""

    query: str = ""
    passage: str = ""


class Embedder(Protocol):
    """Turns texts into vectors; adds the prefixes that its model needs."""

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


@runtime_checkable
class Remembering(Protocol):
    """An embedder that has cached some vectors in memory."""

    def at_hand(self, texts: Sequence[str]) -> Vectors | None:
        """Return the result of `Embedder.embed_queries` if all vectors are cached here; else None.

        Never fails, and takes microseconds.
        """
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

    def stream(
        self,
        prompt: str,
        *,
        shape: type[BaseModel] | None = None,
        system: str = "",
        sampling: Sampling = DETERMINISTIC,
        on_end: Callable[[Ending], None] = lambda _: None,
        deadline: Deadline,
    ) -> Generator[str, None, None]:
        """Answer piece by piece. Same errors as `answer`, also while iterating.

        Closing the generator early ends the request, so that the server stops.

        Args:
            prompt: The user's part of the prompt.
            shape: The pieces together are JSON of this shape; the caller validates it. None is
                plain text.
            system: The system prompt.
            sampling: Temperature and length.
            on_end: Called after the last piece.
            deadline: For the whole answer.
        """
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
