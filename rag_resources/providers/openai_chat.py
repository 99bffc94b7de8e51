"""Answers from a language model on an OpenAI-compatible server, as structured output or as text.

Requests and their errors belong in `openai_client`; prompts in the stages that use the model.
"""

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, closing
from typing import Any

from pydantic import BaseModel, Field, SecretStr

from rag_resources.core.deadline import Deadline
from rag_resources.providers.call_limit import call_limit
from rag_resources.providers.inputs import clean
from rag_resources.providers.openai_client import OpenAIClient, OpenAIModel, ShapeRefusedError
from rag_resources.providers.protocols import (
    DETERMINISTIC,
    AnswerT,
    Ending,
    LanguageModel,
    Sampling,
)
from rag_resources.providers.structured import chat_messages, parsed, strict_schema
from rag_resources.resilience.deadlines import deadline_scope

# A server may take a minute to read a long prompt before it answers. Callers have deadlines.
_READ_TIMEOUT_S = 120.0
_PATH = "chat/completions"


class _Message(BaseModel):
    content: str | None = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None


class _Usage(BaseModel):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Completion(BaseModel):
    choices: list[_Choice] = Field(min_length=1)


class _Delta(BaseModel):
    delta: _Message
    finish_reason: str | None = None


class _Chunk(BaseModel):
    """A part of a streamed answer; the last one may have nothing but the usage."""

    choices: list[_Delta]
    usage: _Usage | None = None


class OpenAIChat(OpenAIModel, LanguageModel):
    """A language model on an OpenAI-compatible server.

    Creating one contacts no server. Safe to use from several threads; close it (or use it in a
    `with` statement) to release its connections. Neither prompts nor answers are ever logged. At
    most `MAX_CALLS` requests to one server are in flight in a process, whatever they are for; the
    others wait within their deadlines. Requests are retried as described in `OpenAIClient`. An
    answer of the wrong shape is not retried: the model is deterministic and would repeat it.

    The shape is requested with `json_schema`, or, if the server understands only that, with
    `json_object` and a schema, as for llama-cpp-python.

    Args:
        model: Name on the server.
        base_url: Address of the server, up to the version.
        api_key: The server's key, if it requires one.
        read_timeout_s: Longest silence of the server, in seconds.

    Raises:
        InvalidParameterError: `base_url` is not an HTTP address.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str,
        api_key: SecretStr | None = None,
        read_timeout_s: float = _READ_TIMEOUT_S,
    ) -> None:
        super().__init__(
            OpenAIClient(model, base_url=base_url, api_key=api_key, read_timeout_s=read_timeout_s)
        )
        # The form that the server has understood before is tried first.
        self._forms = _as_json_schema, _as_json_object

    @property
    def name(self) -> str:
        """The name that is stored and shown, such as `openai:gpt-4o-mini`."""
        return f"openai:{self._client.model}"

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
        body = self._body(prompt, system, DETERMINISTIC)
        form, other = self._forms
        with self._admitted(deadline), deadline_scope(deadline):
            try:
                answer = self._client.post(_PATH, body | form(shape), _Completion)
            except ShapeRefusedError:
                answer = self._client.post(_PATH, body | other(shape), _Completion)
                self._forms = other, form
        choice = answer.choices[0]
        return parsed(
            choice.message.content or "",
            shape,
            model=self._client.model,
            done_reason=choice.finish_reason,
        )

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
        body = self._body(prompt, system, sampling)
        body |= {"stream": True, "stream_options": {"include_usage": True}}
        reason: str | None = None
        usage = _Usage()
        events = self._events(body, shape, deadline)
        with self._admitted(deadline), closing(events):
            for data in events:
                with self._client.understood():
                    part = _Chunk.model_validate_json(data)
                usage = part.usage or usage
                for choice in part.choices[:1]:
                    reason = choice.finish_reason or reason
                    if choice.delta.content:
                        yield clean(choice.delta.content)
        if reason is None:
            raise self._client.broke_off()
        on_end(Ending(usage.prompt_tokens, usage.completion_tokens, reason == "length"))

    def _events(
        self, body: dict[str, Any], shape: type[BaseModel] | None, deadline: Deadline
    ) -> Generator[str, None, None]:
        """Yield the data of each event; a shape that is refused is asked for in the other form."""
        if shape is None:
            yield from self._client.stream(_PATH, body, deadline=deadline)
            return
        form, other = self._forms
        try:
            # A refusal comes before the first event.
            yield from self._client.stream(_PATH, body | form(shape), deadline=deadline)
        except ShapeRefusedError:
            yield from self._client.stream(_PATH, body | other(shape), deadline=deadline)
            self._forms = other, form

    def _admitted(self, deadline: Deadline) -> AbstractContextManager[None]:
        # Not kept: a forked process has other limits.
        return call_limit(self._client.host).admitted(deadline)

    def _body(self, prompt: str, system: str, sampling: Sampling) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self._client.model,
            "messages": chat_messages(prompt, system),
            "temperature": sampling.temperature,
        }
        if not sampling.temperature:
            body["seed"] = 0
        if sampling.max_tokens is not None:
            # Its successor, `max_completion_tokens`, is not known to every server.
            body["max_tokens"] = sampling.max_tokens
        return body


def _as_json_schema(shape: type[BaseModel]) -> dict[str, Any]:
    named = {"name": shape.__name__.lstrip("_"), "schema": strict_schema(shape), "strict": True}
    return {"response_format": {"type": "json_schema", "json_schema": named}}


def _as_json_object(shape: type[BaseModel]) -> dict[str, Any]:
    return {"response_format": {"type": "json_object", "schema": strict_schema(shape)}}
