"""Answers from a language model on an Ollama server, as structured output or streamed text.

Requests and their errors belong in `ollama_client`; prompts in the stages that use the model.
"""

import math
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, closing

from ollama import Options
from pydantic import BaseModel

from rag_resources.core.deadline import Deadline
from rag_resources.providers.call_limit import call_limit
from rag_resources.providers.inputs import clean
from rag_resources.providers.ollama_client import (
    CONNECT_TIMEOUT_S,
    DEFAULT_HOST,
    OllamaClient,
    OllamaModel,
)
from rag_resources.providers.protocols import (
    DETERMINISTIC,
    AnswerT,
    Ending,
    LanguageModel,
    Sampling,
)
from rag_resources.providers.structured import chat_messages, parsed
from rag_resources.resilience.deadlines import deadline_scope

# A server may take a minute to load a model before it answers. Callers have deadlines.
_READ_TIMEOUT_S = 120.0
# Ollama loads a model anew for another context length, so there are few of them.
_CONTEXT_STEP_TOKENS = 4_096
_MAX_CONTEXT_TOKENS = 32_768
# Spanish has about four characters a token; tables and names have fewer.
_BYTES_PER_TOKEN = 3
_ROOM_TOKENS = 1_024


class OllamaChat(OllamaModel, LanguageModel):
    """A language model on an Ollama server.

    Creating one contacts no server. Safe to use from several threads; close it (or use it in a
    `with` statement) to release its connections. Neither prompts nor answers are ever logged.
    At most `MAX_CALLS` requests to one server are in flight in a process, whatever they are for;
    the others wait within their deadlines. Requests are retried as described in `OllamaClient`. An
    answer of the wrong shape is not retried: the model is deterministic and would repeat it.

    Args:
        model: Name on the server, such as "llama3.2" or "qwen3:8b".
        host: Address of the server; credentials in it are sent to the server and never shown.
        connect_timeout_s: Longest wait for a connection, in seconds.
        read_timeout_s: Longest silence of the server, in seconds.

    Raises:
        InvalidParameterError: `host` is not an address.
    """

    def __init__(
        self,
        model: str,
        *,
        host: str = DEFAULT_HOST,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        read_timeout_s: float = _READ_TIMEOUT_S,
    ) -> None:
        super().__init__(
            OllamaClient(
                model,
                host=host,
                connect_timeout_s=connect_timeout_s,
                read_timeout_s=read_timeout_s,
            )
        )
        self._digest: str | None = None

    @property
    def name(self) -> str:
        """The name that is stored and shown, such as `ollama:llama3.2`."""
        return f"ollama:{self._client.model}"

    @property
    def digest(self) -> str:
        """The hash of the model's weights, 16 hex digits; the server is asked once.

        Raises:
            ProviderUnavailableError: The server does not answer.
            ModelMissingError: The server lacks the model.
            ProviderError: The server refuses the request.
            DeadlineExceededError: The ambient deadline passed.
        """
        if self._digest is None:
            self._digest = self._client.digest()
        return self._digest

    def answer(
        self, prompt: str, shape: type[AnswerT], *, system: str = "", deadline: Deadline
    ) -> AnswerT:
        """Answer in the shape of a pydantic model (structured output), deterministically.

        Raises:
            ProviderUnavailableError: The server does not answer, even after the retries.
            ModelMissingError: The server lacks the model.
            ProviderError: The server refuses the request.
            InvalidAnswerError: The answer has another shape.
            DeadlineExceededError: There was not enough time.
        """
        model = self._client.model
        with self._admitted(deadline), deadline_scope(deadline):
            answer = self._client.ask(
                lambda client: client.chat(
                    model=model,
                    messages=chat_messages(prompt, system),
                    format=shape.model_json_schema(),
                    options=_options(DETERMINISTIC, prompt, system),
                )
            )
        return parsed(
            answer.message.content or "", shape, model=model, done_reason=answer.done_reason
        )

    def _admitted(self, deadline: Deadline) -> AbstractContextManager[None]:
        # Not kept: a forked process has other limits.
        return call_limit(self._client.host).admitted(deadline)

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
        model = self._client.model
        parts = self._client.stream(
            lambda client: client.chat(
                model=model,
                messages=chat_messages(prompt, system),
                format=shape.model_json_schema() if shape else None,
                options=_options(sampling, prompt, system),
                stream=True,
            ),
            deadline=deadline,
        )
        ending: Ending | None = None
        with self._admitted(deadline), closing(parts):
            for part in parts:
                if part.done:
                    is_cut = part.done_reason == "length"
                    ending = Ending(part.prompt_eval_count, part.eval_count, is_cut)
                if part.message.content:
                    yield clean(part.message.content)
        if ending is None:
            raise self._client.broke_off()
        on_end(ending)


def _options(sampling: Sampling, prompt: str, system: str) -> Options:
    """Return the options of a call, with room for the prompt and the answer.

    Ollama cuts a prompt that is longer than `num_ctx` without a word; its default is 4,096.
    """
    characters = len(prompt.encode("utf-8", "replace")) + len(system.encode("utf-8", "replace"))
    needed = math.ceil(characters / _BYTES_PER_TOKEN) + (sampling.max_tokens or _ROOM_TOKENS)
    steps = math.ceil((needed + _CONTEXT_STEP_TOKENS // 8) / _CONTEXT_STEP_TOKENS)
    return Options(
        temperature=sampling.temperature,
        seed=None if sampling.temperature else 0,
        num_predict=sampling.max_tokens,
        num_ctx=min(steps * _CONTEXT_STEP_TOKENS, _MAX_CONTEXT_TOKENS),
    )
