"""A language model that answers from a script."""

import threading
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from rag_resources.core.deadline import Deadline
from rag_resources.core.errors import DeadlineExceededError, InvalidAnswerError, RagError

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

    def stream(self, prompt: str, *, system: str = "", deadline: Deadline) -> Iterator[str]:
        """Answer the next of the script word by word."""
        yield from str(self._next(Asked(prompt, system, None), deadline)).split(" ")

    def _next(self, asked: Asked, deadline: Deadline) -> Mapping[str, Any] | str:
        if deadline.expired:
            raise DeadlineExceededError("No queda tiempo.")
        with self._lock:
            self.calls.append(asked)
            scripted = self._script.popleft() if len(self._script) > 1 else self._script[0]
        if isinstance(scripted, RagError):
            raise scripted
        return scripted
