"""What every model on an OpenAI-compatible server shares: requests, retries, Spanish errors.

The requests themselves belong in `openai_embeddings` and `openai_chat`. The protocol is that of
llama-server, vLLM, LM Studio, OpenAI and others.
"""

from collections.abc import Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any, Self, TypeVar
from urllib.parse import SplitResult, urlsplit

import httpx
from httpx_sse import EventSource, ServerSentEvent, SSEError
from pydantic import BaseModel, SecretStr

from rag_resources.core.deadline import Deadline
from rag_resources.core.errors import (
    InvalidParameterError,
    ModelMissingError,
    ProviderError,
    ProviderUnavailableError,
)
from rag_resources.languages.messages import Text, _
from rag_resources.providers.server_calls import (
    SERVER_ERROR,
    TOO_MANY_REQUESTS,
    attempts,
    credentials,
    proxy,
    without_credentials,
)
from rag_resources.resilience.deadline_transport import DeadlineTransport
from rag_resources.resilience.deadlines import deadline_scope

CONNECT_TIMEOUT_S = 5.0

_UNAUTHORIZED = (401, 403)
_NOT_FOUND = 404
_ERROR_BYTES = 10_000
_CONTEXT_CODES = ("context_length_exceeded", "exceed_context_size_error")

_SHAPE = "response_format"

ShapeT = TypeVar("ShapeT", bound=BaseModel)


class ShapeRefusedError(ProviderError):
    """The server does not understand the form in which an answer's shape was given."""


class OpenAIClient:
    """Makes the requests of one model on an OpenAI-compatible server.

    Creating one contacts no server. Safe to use from several threads. No request outlasts the
    ambient deadline. Connection failures, timeouts, 5xx and 429 are retried, at most three attempts
    in all, while the deadline leaves time for another; a `Retry-After` of up to a minute is obeyed.
    Neither requests nor answers are ever logged or shown in errors.

    Args:
        model: Name on the server.
        base_url: Address up to the version, as "http://127.0.0.1:8080/v1"; credentials in it are
            sent to the server and never shown.
        api_key: Sent as a bearer token; None sends none.
        read_timeout_s: Longest silence of the server, in seconds.

    Attributes:
        host: The address without credentials.

    Raises:
        InvalidParameterError: `base_url` is not an HTTP address, or the key cannot be sent.
    """

    def __init__(
        self, model: str, *, base_url: str, api_key: SecretStr | None, read_timeout_s: float
    ) -> None:
        self.model = model
        key = _checked(api_key)
        shown = base_url.rpartition("@")[2]
        try:
            parts = urlsplit(base_url.rstrip("/"))
            self.host = without_credentials(parts)
            _check_is_http(parts)
            self._client = httpx.Client(
                base_url=f"{self.host}/",
                timeout=httpx.Timeout(read_timeout_s, connect=CONNECT_TIMEOUT_S),
                transport=DeadlineTransport(proxy=proxy(parts)),
                auth=None if key else credentials(parts),
                headers={"Authorization": f"Bearer {key}"} if key else {},
                follow_redirects=False,
            )
        except (ValueError, httpx.InvalidURL) as error:
            message = _(
                "OPENAI_BASE_URL is not valid: “{host}”. http://… or https://… is expected, up to "
                "the version, such as http://127.0.0.1:8080/v1."
            ).format(host=shown)
            raise InvalidParameterError(message, host=shown) from error

    def close(self) -> None:
        """Close the connections; the client cannot be used afterwards."""
        self._client.close()

    def post(self, path: str, body: Mapping[str, Any], shape: type[ShapeT]) -> ShapeT:
        """Make a request, retry it if that can help, and translate its errors.

        Raises:
            ProviderUnavailableError: The server does not answer, even after the retries.
            ModelMissingError: The server lacks the model.
            ProviderError: The server refuses the request.
            DeadlineExceededError: The ambient deadline passed.
        """
        with self._translated():
            for attempt in attempts(_is_transient, _requested_wait_s):
                with attempt:
                    answer = self._client.post(path, json=body)
                    answer.raise_for_status()
                    return shape.model_validate_json(answer.content)
        raise AssertionError("unreachable: the last attempt returns or raises")

    def stream(
        self, path: str, body: Mapping[str, Any], *, deadline: Deadline
    ) -> Generator[str, None, None]:
        """Make a request whose answer is streamed; it is retried only before the first part.

        Closing the generator closes the connection. Same errors as `post`, also while iterating.

        Yields:
            The data of each event, up to and without `[DONE]`.
        """
        with deadline_scope(deadline), self._translated():
            events, event = self._begun(path, body)
        with closing(events):
            while event is not None and event.data != "[DONE]":
                if event.data:
                    yield event.data
                with deadline_scope(deadline), self._translated():
                    event = next(events, None)

    def broke_off(self) -> ProviderUnavailableError:
        """Return the error for an answer that ended early."""
        message = _("The model server ({host}) broke off its answer before the end.").format(
            host=self.host
        )
        return ProviderUnavailableError(message, host=self.host, model=self.model)

    @contextmanager
    def understood(self) -> Iterator[None]:
        """Treat errors of reading in the block as an answer that violates the protocol.

        Raises:
            ProviderUnavailableError: Something could not be read.
        """
        with self._translated():
            yield

    def _begun(
        self, path: str, body: Mapping[str, Any]
    ) -> tuple[Generator[ServerSentEvent, None, None], ServerSentEvent | None]:
        """Return the events of a stream, and the first of them."""
        for attempt in attempts(_is_transient, _requested_wait_s):
            with attempt:
                events = self._events(path, body)
                return events, next(events, None)
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _events(self, path: str, body: Mapping[str, Any]) -> Generator[ServerSentEvent, None, None]:
        with self._client.stream("POST", path, json=body) as answer:
            if not answer.is_success:
                answer.read()
                answer.raise_for_status()
            yield from EventSource(answer).iter_sse()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except httpx.HTTPStatusError as error:
            # The cause is dropped: it holds the request.
            raise self._refusal(error.response) from None
        except SSEError as error:
            raise self._unavailable(
                _(
                    "The model server ({host}) gave an answer that cannot be understood. Check "
                    "that OPENAI_BASE_URL ends in the version, such as /v1."
                ),
                error,
            ) from None
        except (httpx.HTTPError, ConnectionError) as error:
            raise self._unavailable(
                _(
                    "The model server does not answer at {host}. Check that it is started, and "
                    "OPENAI_BASE_URL."
                ),
                error,
            ) from error
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            # Not JSON, or JSON of the wrong shape (pydantic's error is a ValueError). The cause is
            # dropped, since it would put the server's answer into the log.
            raise self._unavailable(
                _(
                    "The model server ({host}) gave an answer that cannot be understood. Check "
                    "that OPENAI_BASE_URL ends in the version, such as /v1."
                ),
                error,
            ) from None

    def _unavailable(self, message: Text, error: Exception) -> ProviderUnavailableError:
        return ProviderUnavailableError(
            message.format(host=self.host), host=self.host, reason=type(error).__name__
        )

    def _refusal(self, answer: httpx.Response) -> ProviderError:
        status = answer.status_code
        context = {"host": self.host, "model": self.model, "status": status}
        told = _told(answer)
        if _SHAPE in told:
            message = _(
                "The model server ({host}) refused the request for the model {model} (error "
                "{status}). Check LLM_MODEL, and that OPENAI_BASE_URL ends in the version, such "
                "as /v1."
            ).format(**context)
            return ShapeRefusedError(message, **context)
        if _is_passing(status):
            message = _("The model server ({host}) answered with an error {status}.").format(
                host=self.host, status=status
            )
            return ProviderUnavailableError(message, **context)
        # A server without the endpoint also answers 404, but its error does not mention a model.
        if status == _NOT_FOUND and "model" in told:
            message = _(
                "The model server ({host}) does not have the model {model}. Check its name; "
                "{host}/models lists those it has."
            ).format(model=self.model, host=self.host)
            return ModelMissingError(message, model=self.model, host=self.host)
        if status in _UNAUTHORIZED:
            return ProviderError(
                _(
                    "The model server ({host}) did not accept the key (error {status}). Check "
                    "OPENAI_API_KEY."
                ).format(**context),
                **context,
            )
        if any(code in told for code in _CONTEXT_CODES):
            return ProviderError(
                _(
                    "The request is longer than the context of the model {model} at {host}. Lower "
                    "ANSWER_CONTEXT_TOKENS or start the server with more context."
                ).format(**context),
                **context,
            )
        return ProviderError(
            _(
                "The model server ({host}) refused the request for the model {model} (error "
                "{status}). Check LLM_MODEL, and that OPENAI_BASE_URL ends in the version, such "
                "as /v1."
            ).format(**context),
            **context,
        )


class OpenAIModel:
    """A model of any kind on an OpenAI-compatible server; close it, or use it in a `with`.

    Args:
        client: Used by this model only.
    """

    def __init__(self, client: OpenAIClient) -> None:
        self._client = client

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; the model cannot be used afterwards."""
        self._client.close()


def _checked(api_key: SecretStr | None) -> str:
    """Return a key without surrounding white space; empty if there is none.

    Raises:
        InvalidParameterError: It has characters that no header can have. HTTP clients quote the
            whole header when they refuse one.
    """
    key = api_key.get_secret_value().strip() if api_key else ""
    if not (key.isascii() and key.isprintable()):
        raise InvalidParameterError(
            _("OPENAI_API_KEY has characters that a key cannot have, such as accents or line ends.")
        )
    return key


def _check_is_http(address: SplitResult) -> None:
    """Check that an address is one of an HTTP server.

    Raises:
        ValueError: It is not.
    """
    if address.scheme not in ("http", "https") or not address.hostname:
        raise ValueError(address.scheme)


def _told(answer: httpx.Response) -> str:
    """The text of an error, which is never shown, because it may quote the request."""
    return answer.content[:_ERROR_BYTES].decode("utf-8", "replace")


def _is_passing(status: int) -> bool:
    return status >= SERVER_ERROR or status == TOO_MANY_REQUESTS


def _is_transient(error: Exception) -> bool:
    if isinstance(error, httpx.HTTPStatusError):
        return _is_passing(error.response.status_code) and _SHAPE not in _told(error.response)
    if isinstance(error, SSEError):  # A TransportError too, but the next answer would be the same.
        return False
    return isinstance(error, (httpx.TransportError, ConnectionError))


def _requested_wait_s(error: Exception) -> float | None:
    """Return the seconds of a `Retry-After`; None without one, or for a date."""
    if not isinstance(error, httpx.HTTPStatusError):
        return None
    told = error.response.headers.get("Retry-After", "")
    return float(told) if told.isascii() and told.isdigit() else None
