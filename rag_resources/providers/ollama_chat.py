"""Answers from a language model on an Ollama server, as structured output or streamed text.

Requests and their errors belong in `ollama_client`; prompts in the stages that use the model.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, closing

from ollama import Options
from pydantic import ValidationError

from rag_resources.core.deadline import Deadline
from rag_resources.core.errors import InvalidAnswerError
from rag_resources.core.messages import Message
from rag_resources.providers.call_limit import call_limit
from rag_resources.providers.inputs import clean
from rag_resources.providers.ollama_client import (
    CONNECT_TIMEOUT_S,
    DEFAULT_HOST,
    OllamaClient,
    OllamaModel,
)
from rag_resources.providers.protocols import AnswerT, LanguageModel
from rag_resources.resilience.deadlines import deadline_scope

# A server may take a minute to load a model before it answers. Callers have deadlines.
_READ_TIMEOUT_S = 120.0
_DETERMINISTIC = Options(temperature=0.0, seed=0)


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
                    messages=_messages(prompt, system),
                    format=shape.model_json_schema(),
                    options=_DETERMINISTIC,
                )
            )
        try:
            return shape.model_validate_json(answer.message.content or "")
        except ValidationError as error:
            # The cause is dropped: it holds the answer, which may quote the question.
            raise InvalidAnswerError(
                Message.OLLAMA_INVALID_ANSWER.format(model=model),
                model=model,
                shape=shape.__name__,
                problems=sorted({problem["type"] for problem in error.errors()}),
                done_reason=answer.done_reason,
            ) from None

    def _admitted(self, deadline: Deadline) -> AbstractContextManager[None]:
        # Not kept: a forked process has other limits.
        return call_limit(self._client.host).admitted(deadline)

    def stream(self, prompt: str, *, system: str = "", deadline: Deadline) -> Iterator[str]:
        """Answer in plain text, piece by piece, deterministically.

        The request is sent when the first piece is requested. Closing the iterator early closes
        the connection, so that the server stops. Same errors as `answer`, also while iterating.
        """
        model = self._client.model
        parts = self._client.stream(
            lambda client: client.chat(
                model=model,
                messages=_messages(prompt, system),
                options=_DETERMINISTIC,
                stream=True,
            ),
            deadline=deadline,
        )
        done = False
        with self._admitted(deadline), closing(parts):
            for part in parts:
                done = bool(part.done)
                if part.message.content:
                    yield clean(part.message.content)
        if not done:
            raise self._client.broke_off()


def _messages(prompt: str, system: str) -> list[dict[str, str]]:
    instructions = [{"role": "system", "content": clean(system)}] if system else []
    return [*instructions, {"role": "user", "content": clean(prompt)}]
