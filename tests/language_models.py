"""Language models that answer from a script, and what makes answers of them."""

import json
import threading
from collections import deque
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from rag_resources.answers.checking import SupportChecker
from rag_resources.answers.language_model import AnswerOptions, LanguageModelAnswerer
from rag_resources.core.deadline import Deadline
from rag_resources.core.errors import DeadlineExceededError, InvalidAnswerError, RagError
from rag_resources.providers.protocols import DETERMINISTIC, Ending, LanguageModel, Sampling
from tests.embedders import HashEmbedder

AnswerT = TypeVar("AnswerT", bound=BaseModel)


@dataclass(frozen=True)
class Asked:
    """A call as received; `shape` is None for plain text."""

    prompt: str
    system: str
    shape: type[BaseModel] | None


class ScriptedModel:
    """Implements `LanguageModel` without a model; safe to use from several threads.

    Args:
        script: What to do at each call, repeating the last: raise an error, or answer
            with a mapping, validated against the shape asked for, or a text, for `stream`.
        name: What it is shown as.
    """

    def __init__(self, *script: Mapping[str, Any] | str | RagError, name: str = "scripted") -> None:
        self.name = name
        self.calls: list[Asked] = []
        self._script = deque(script)
        self._lock = threading.Lock()

    def answer(
        self, prompt: str, shape: type[AnswerT], *, system: str = "", deadline: Deadline
    ) -> AnswerT:
        """Answer the next of the script in the shape asked for."""
        scripted = self._next(Asked(prompt, system, shape), deadline)
        try:
            return shape.model_validate(scripted)
        except ValidationError as error:
            raise InvalidAnswerError("La respuesta no tiene la forma pedida.") from error

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
        """Answer the next of the script word by word."""
        scripted = self._next(Asked(prompt, system, shape), deadline)
        text = json.dumps(scripted) if isinstance(scripted, Mapping) else scripted
        for place, word in enumerate(text.split(" ")):
            yield word if place == 0 else f" {word}"
        on_end(Ending(len(prompt.split()), len(text.split())))

    def _next(self, asked: Asked, deadline: Deadline) -> Mapping[str, Any] | str:
        if deadline.expired:
            raise DeadlineExceededError("No queda tiempo.")
        with self._lock:
            self.calls.append(asked)
            scripted = self._script.popleft() if len(self._script) > 1 else self._script[0]
        if isinstance(scripted, RagError):
            raise scripted
        return scripted


def reply(*sentences: tuple[str, list[int]]) -> dict[str, Any]:
    """What a language model answers: sentences with the numbers of the passages."""
    return {"sentences": [{"text": text, "citations": numbers} for text, numbers in sentences]}


def answerer_of(
    model: LanguageModel, *, language: str = "es", **options: Any
) -> LanguageModelAnswerer:
    """An answerer whose check compares words and the vectors of `HashEmbedder`."""
    checker = SupportChecker(HashEmbedder, language)
    return LanguageModelAnswerer(model, checker, AnswerOptions(**options), language=language)
