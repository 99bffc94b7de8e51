"""What every model on an Ollama server shares: connections, retries, Spanish errors.

The requests themselves belong in `ollama` (embeddings) and `ollama_chat`.
"""

from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from typing import Self, TypeVar, cast
from urllib.parse import urlsplit

import httpx
from ollama import Client, ResponseError

from rag_resources.core.deadline import Deadline
from rag_resources.core.errors import (
    InvalidParameterError,
    ModelMissingError,
    ProviderError,
    ProviderUnavailableError,
)
from rag_resources.languages.messages import _
from rag_resources.providers.inputs import clean
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

DEFAULT_HOST = "http://127.0.0.1:11434"
CONNECT_TIMEOUT_S = 2.0

_NOT_FOUND = 404
# The status code that the client gives an error in the middle of a stream.
_STATUS_IN_STREAM = -1

_T = TypeVar("_T")


class OllamaClient:
    """Makes the requests of one model on an Ollama server.

    Creating one contacts no server. Safe to use from several threads. No request outlasts the
    ambient deadline. Connection failures, timeouts, 5xx and 429 are retried with exponential
    waits, at most three attempts in all, while the deadline leaves time for another. Neither
    requests nor answers are ever logged or shown in errors.

    Args:
        model: Name on the server.
        host: Address of the server; credentials in it are sent to the server and never shown.
        connect_timeout_s: Longest wait for a connection, in seconds.
        read_timeout_s: Longest silence of the server, in seconds.

    Attributes:
        host: The address without credentials.

    Raises:
        InvalidParameterError: `host` is not an address.
    """

    def __init__(
        self, model: str, *, host: str, connect_timeout_s: float, read_timeout_s: float
    ) -> None:
        self.model = model
        try:
            parts = urlsplit(host if "://" in host else f"http://{host}")
            self.host = without_credentials(parts)
            self._client = Client(
                host=host,
                timeout=httpx.Timeout(read_timeout_s, connect=connect_timeout_s),
                transport=DeadlineTransport(proxy=proxy(parts)),
                auth=credentials(parts),
            )
        except (ValueError, httpx.InvalidURL) as error:
            shown = host.rpartition("@")[2]
            message = _("The address of Ollama is not valid: “{host}”").format(host=shown)
            raise InvalidParameterError(message, host=shown) from error

    def close(self) -> None:
        """Close the connections; the client cannot be used afterwards."""
        self._client.close()  # type: ignore[no-untyped-call]

    def ask(self, request: Callable[[Client], _T]) -> _T:
        """Make a request, retry it if that can help, and translate its errors.

        Raises:
            ProviderUnavailableError: The server does not answer, even after the retries.
            ModelMissingError: The server lacks the model.
            ProviderError: The server refuses the request.
            DeadlineExceededError: The ambient deadline passed.
        """
        with self._translated():
            for attempt in attempts(_is_transient):
                with attempt:
                    return request(self._client)
        raise AssertionError("unreachable: the last attempt returns or raises")

    def stream(
        self, request: Callable[[Client], Iterator[_T]], *, deadline: Deadline
    ) -> Generator[_T, None, None]:
        """Make a request whose answer is streamed; it is retried only before the first part.

        Closing the generator closes the connection. Same errors as `ask`, also while iterating.
        """

        def first(client: Client) -> tuple[Generator[_T, None, None], _T | None]:
            # Declared as an iterator, but it is a generator, which can be closed.
            parts = cast(Generator[_T, None, None], request(client))
            return parts, next(parts, None)

        with deadline_scope(deadline):
            parts, part = self.ask(first)
        with closing(parts):
            while part is not None:
                yield part
                with deadline_scope(deadline), self._translated():
                    part = next(parts, None)

    def digest(self) -> str:
        """Ask for the hash of the model's weights: 16 hex digits. Same errors as `ask`."""
        wanted = self.model if ":" in self.model.rpartition("/")[2] else f"{self.model}:latest"
        for entry in self.ask(lambda client: client.list()).models:
            if entry.model == wanted and entry.digest:
                return clean(entry.digest).removeprefix("sha256:")[:16]
        raise self._missing()

    def broke_off(self) -> ProviderUnavailableError:
        """Return the error for an answer that ended early."""
        message = _("The model server ({host}) broke off its answer before the end.").format(
            host=self.host
        )
        return ProviderUnavailableError(message, host=self.host, model=self.model)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except ResponseError as error:
            raise self._refusal(error) from error
        except (httpx.HTTPError, ConnectionError) as error:
            raise self._unavailable(
                _("Ollama does not answer at {host}. Check that it is started."), error
            ) from error
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            # Not JSON, or JSON of the wrong shape (pydantic's error is a ValueError). The cause is
            # dropped, since it would put the server's answer into the log.
            raise self._unavailable(
                _("Ollama ({host}) gave an answer that cannot be understood."), error
            ) from None

    def _unavailable(self, message: str, error: Exception) -> ProviderUnavailableError:
        return ProviderUnavailableError(
            message.format(host=self.host), host=self.host, reason=type(error).__name__
        )

    def _refusal(self, error: ResponseError) -> ProviderError:
        status = error.status_code
        # A server without the endpoint also answers 404, but its error does not mention a model.
        if status == _NOT_FOUND and "model" in str(error.error):
            return self._missing()
        if status == _STATUS_IN_STREAM:
            return self.broke_off()
        context = {"host": self.host, "model": self.model, "status": status}
        if _is_transient(error):
            message = _("The model server ({host}) answered with an error {status}.").format(
                host=self.host, status=status
            )
            return ProviderUnavailableError(message, **context)
        message = _(
            "Ollama ({host}) refused the request for the model {model} (error {status})."
        ).format(**context)
        return ProviderError(message, **context)

    def _missing(self) -> ModelMissingError:
        message = _(
            "Ollama does not have the model {model}. Download it with: ollama pull {model}"
        ).format(model=self.model)
        return ModelMissingError(message, model=self.model, host=self.host)


class OllamaModel:
    """A model of any kind on an Ollama server; close it, or use it in a `with` statement.

    Args:
        client: Used by this model only.
    """

    def __init__(self, client: OllamaClient) -> None:
        self._client = client

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; the model cannot be used afterwards."""
        self._client.close()


def _is_transient(error: Exception) -> bool:
    if isinstance(error, ResponseError):
        status = error.status_code
        return status >= SERVER_ERROR or status in (TOO_MANY_REQUESTS, _STATUS_IN_STREAM)
    return isinstance(error, (httpx.TransportError, ConnectionError))
