"""What models on servers share: batches of vectors, structured and streamed answers.

Requests belong in `model_server`; what each protocol sends and answers in `ollama` and `openai`.
"""

import json
import re
import threading
from abc import abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ValidationError

from rag_resources.core.deadline import Deadline
from rag_resources.core.errors import InvalidAnswerError
from rag_resources.languages.messages import _
from rag_resources.providers.inputs import batches, clean, unit_vectors
from rag_resources.providers.model_server import (
    Json,
    ModelServer,
    Options,
    ServerModel,
)
from rag_resources.providers.protocols import (
    DETERMINISTIC,
    AnswerT,
    Embedder,
    Ending,
    LanguageModel,
    Prefixes,
    Sampling,
    Vectors,
)
from rag_resources.resilience.deadlines import deadline_scope

# Servers answer nothing, NaN or an error for a text without tokens.
BLANK_STAND_IN = "."

_THINKING, _THOUGHT = "<think>", "</think>"
_OBJECT = re.compile(r"\{\s*\"")
_MOST_OBJECTS = 20


class ServerEmbedder(ServerModel, Embedder):
    """An embedding model on a server, of any dimension.

    Creating one contacts no server. Safe to use from several threads; close it (or use it in a
    `with` statement) to release its connections. Blank texts are embedded as ".". Texts are never
    logged. Calls obey the ambient deadline, and are retried as described in `ModelServer`.

    Args:
        server: Used by this model only.
        prefixes: Put before each question and each passage.
        batch_texts: Most texts of a request.
    """

    def __init__(self, server: ModelServer, *, prefixes: Prefixes, batch_texts: int) -> None:
        super().__init__(server)
        self._prefixes = prefixes
        self._batch_texts = batch_texts
        self._dimension: int | None = None
        self._dimension_lock = threading.Lock()

    @abstractmethod
    def _requested(self, inputs: list[str]) -> npt.ArrayLike:
        """Ask the server for the vectors of some texts."""

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Embed passages.

        Returns:
            `(n_texts, dimension)` float32, rows finite and L2-normalised.

        Raises:
            ProviderUnavailableError: The server does not answer, even after the retries.
            ModelMissingError: The server lacks the model.
            ProviderError: The server refuses the request.
            InvalidEmbeddingError: The number of vectors is wrong, or a vector is not finite, is
                zero, or has another dimension than before.
            DeadlineExceededError: The ambient deadline passed.
        """
        return self._embed(self._prefixes.passage, texts)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Embed questions. Same result and errors as `embed_passages`."""
        return self._embed(self._prefixes.query, texts)

    def _embed(self, prefix: str, texts: Sequence[str]) -> Vectors:
        cleaned = [prefix + clean(text) for text in texts]
        inputs = [text if text.strip() else BLANK_STAND_IN for text in cleaned]
        parts = [self._embed_batch(list(batch)) for batch in batches(inputs, self._batch_texts)]
        if not parts:
            return np.empty((0, self._dimension or 0), dtype=np.float32)
        return np.concatenate(parts)

    def _embed_batch(self, inputs: list[str]) -> Vectors:
        with self._server.understood():
            values = self._requested(inputs)
        # Two concurrent first calls must agree on one dimension, even if the server changes the
        # model between their batches.
        with self._dimension_lock:
            vectors = unit_vectors(
                values, n_texts=len(inputs), dimension=self._dimension, model=self._server.model
            )
            self._dimension = vectors.shape[1]
        return vectors


@dataclass(frozen=True, slots=True)
class Part:
    """A part of an answer.

    Attributes:
        text: What it adds.
        is_end: Whether the answer is complete with it.
        ending: What the server reports with it; all parts together make its report.
    """

    text: str = ""
    is_end: bool = False
    ending: Ending = Ending()  # noqa: RUF009 - immutable


class ServerChat(ServerModel, LanguageModel):
    """A language model on a server.

    Creating one contacts no server. Safe to use from several threads; close it (or use it in a
    `with` statement) to release its connections. Neither prompts nor answers are ever logged.
    Requests are retried as described in `ModelServer`. An answer of the wrong shape is not retried:
    the model is deterministic and would repeat it.

    What a model thinks aloud (`<think>…</think>`) is no part of an answer, nor does it count as
    written; nor is anything around the JSON of an answer in a shape.
    """

    _PATH: str

    @abstractmethod
    def _body(
        self, prompt: str, system: str, shape: type[BaseModel] | None, sampling: Sampling
    ) -> tuple[Json, Options]:
        """Return a request and its options, but for those of `_streaming`."""

    def _streaming(self) -> Options:
        """Return the options of a request whose answer is streamed."""
        return {}

    @abstractmethod
    def _part(self, data: Any) -> Part:
        """Read a part of an answer, or a whole one."""

    def answer(
        self, prompt: str, shape: type[AnswerT], *, system: str = "", deadline: Deadline
    ) -> AnswerT:
        """Answer in the shape of a pydantic model (structured output), deterministically.

        Raises:
            ProviderUnavailableError: The server does not answer, even after the retries.
            ModelMissingError: The server lacks the model.
            ProviderError: The server refuses the request, also because it is too long.
            InvalidAnswerError: The answer has another shape.
            DeadlineExceededError: There was not enough time.
        """
        body, options = self._body(prompt, system, shape, DETERMINISTIC)
        with deadline_scope(deadline):
            data = self._server.post(self._PATH, body | {"stream": False}, options)
        with self._server.understood():
            part = self._part(data)
        return parsed(part.text, shape, model=self._server.model)

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
        """Answer piece by piece; see `LanguageModel`.

        The request is sent when the first piece is requested. Same errors as `answer`, also while
        iterating; an answer that ends too early is a `ProviderUnavailableError`.
        """
        body, options = self._body(prompt, system, shape, sampling)
        options = {**options, **self._streaming()}
        while True:
            written, ending = 0, Ending(is_cut=True)
            parts = self._parts(body | {"stream": True}, options, deadline)
            with closing(parts):
                for part in _without_thoughts(parts):
                    if part.text:
                        yield part.text
                        written += 1
                    if part.is_end:
                        ending = part.ending
                    if written == sampling.max_tokens:
                        break
            # A server counts what a model thinks as written.
            if written or not ending.is_cut or not self._server.give_up("max_tokens"):
                break
        on_end(ending)

    def _parts(
        self, body: Json, options: Options, deadline: Deadline
    ) -> Generator[Part, None, None]:
        """Yield the parts of an answer; the last one has the whole report."""
        is_whole, prompt, completion, is_cut = False, None, None, False
        found = self._server.stream(self._PATH, body, options, deadline=deadline)
        with closing(found):
            for data in found:
                with self._server.understood():
                    part = self._part(data)
                is_whole = is_whole or part.is_end
                is_cut = is_cut or part.ending.is_cut
                prompt = part.ending.prompt_tokens or prompt
                completion = part.ending.completion_tokens or completion
                if part.text:
                    yield Part(clean(part.text))
        if not is_whole:
            raise self._server.broke_off()
        yield Part(is_end=True, ending=Ending(prompt, completion, is_cut))


def chat_messages(prompt: str, *systems: str) -> list[dict[str, str]]:
    """Return the messages of a chat of one question."""
    system = "\n\n".join(text for text in systems if text)
    instructions = [{"role": "system", "content": clean(system)}] if system else []
    return [*instructions, {"role": "user", "content": clean(prompt)}]


def parsed(content: str, shape: type[AnswerT], *, model: str) -> AnswerT:
    """Validate a language model's answer.

    Args:
        content: JSON as the model wrote it: perhaps after its thoughts, a sentence or a fence.
        shape: The requested shape.
        model: Name of the model, for the error.

    Raises:
        InvalidAnswerError: It has another shape.
    """
    text = content.rpartition(_THOUGHT)[2]
    for candidate in (text, *_objects(text)):
        try:
            return shape.model_validate_json(candidate)
        except ValidationError:
            continue
    # Raised without a cause, which would hold the answer, which may quote the question.
    raise InvalidAnswerError(
        _("The model {model} did not answer in the form that was asked for.").format(model=model),
        model=model,
        shape=shape.__name__,
    )


def _objects(text: str) -> Iterator[str]:
    decoder = json.JSONDecoder()
    for _count, found in zip(range(_MOST_OBJECTS), _OBJECT.finditer(text), strict=False):
        try:
            _value, end = decoder.raw_decode(text, found.start())
        except (ValueError, RecursionError):
            continue
        yield text[found.start() : end]


def _without_thoughts(parts: Iterator[Part]) -> Iterator[Part]:
    """Leave out what a model thinks aloud before it answers."""
    begun = ""
    for part in parts:
        begun += part.text
        text = begun.lstrip()
        if text.startswith(_THINKING) and _THOUGHT in text:
            begun = text = text.partition(_THOUGHT)[2].lstrip()
        if not part.is_end and (text.startswith(_THINKING) or _THINKING.startswith(text)):
            continue
        yield replace(part, text="" if text.startswith(_THINKING) else text)
        break
    yield from parts


def strict_schema(shape: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON schema of a shape that allows no other fields and requires all of its own.

    OpenAI accepts no other schemas in its strict mode.
    """
    schema: dict[str, Any] = _strict(shape.model_json_schema())
    return schema


def _strict(part: Any) -> Any:
    if isinstance(part, list):
        return [_strict(item) for item in part]
    if not isinstance(part, Mapping):
        return part
    made = {key: _strict(value) for key, value in part.items()}
    if made.get("type") == "object" and isinstance(made.get("properties"), dict):
        made |= {"additionalProperties": False, "required": list(made["properties"])}
    return made
