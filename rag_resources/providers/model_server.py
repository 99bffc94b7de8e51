"""Requests to the server of a model: retries, deadlines, refused parameters, errors for people.

What is asked and how answers are read belongs in `ollama` and `openai`.
"""

import json
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any, Self, TypeVar
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx
import stamina
from pydantic import SecretStr
from stamina import Attempt

from rag_resources.core.deadline import Deadline
from rag_resources.core.errors import (
    InvalidParameterError,
    ModelMissingError,
    ProviderError,
    ProviderUnavailableError,
)
from rag_resources.languages.messages import Text, _
from rag_resources.resilience.deadline_transport import DeadlineTransport
from rag_resources.resilience.deadlines import current_deadline, deadline_scope

MAX_CALLS = 5
"""Calls that a batch has in flight to a language model."""

Json = dict[str, Any]
Options = Mapping[str, tuple[Json, ...]]
"""Parameters that a server may refuse, by name: the forms in which each is sent, best first."""

_REFUSED = (400, 422)
_UNAUTHORIZED = (401, 403)
_NOT_FOUND = 404
_TOO_MANY_REQUESTS = 429
_SERVER_ERROR = 500
_CONTEXT_CODES = ("context_length_exceeded", "exceed_context_size_error")
# A server that understands one form of it only may answer 500 to the others.
_SHAPE = "response_format"
_PROMPT = "messages"
_ERROR_BYTES = 10_000

_ATTEMPTS = 3
_LONGEST_BACKOFF_S = 2.0
_LONGEST_REQUESTED_WAIT_S = 60.0

_T = TypeVar("_T")


class ModelServer:
    """Makes the requests of one model on a server.

    Creating one contacts no server. Safe to use from several threads. No request outlasts the
    ambient deadline. Connection failures, timeouts, 5xx and 429 are retried, at most three attempts
    in all, while the deadline leaves time for another; a `Retry-After` of up to a minute is obeyed.
    An option that the server refuses is sent in its next form, then not at all, and that is
    remembered. Neither requests nor answers are logged, and errors do not show the address.

    Args:
        model: Name on the server.
        address: Of the server; credentials in it are sent.
        setting: The setting that holds the address, for messages.
        advice: What to do if the server lacks the model.
        key: Sent as a bearer token; None sends none.
        connect_timeout_s: Longest wait for a connection, in seconds.
        read_timeout_s: Longest silence of the server, in seconds.

    Attributes:
        host: The address without credentials.

    Raises:
        InvalidParameterError: The address is none, or the key cannot be sent.
    """

    def __init__(
        self,
        model: str,
        *,
        address: str,
        setting: str,
        advice: Text,
        key: SecretStr | None = None,
        connect_timeout_s: float,
        read_timeout_s: float,
    ) -> None:
        self.model = model
        self._setting = setting
        self._advice = advice
        self._forms: dict[str, int] = {}
        self._given_up: set[str] = set()
        token = _checked(key)
        try:
            parts = urlsplit(address.rstrip("/"))
            self.host = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
            _check_is_http(parts)
            self._client = httpx.Client(
                base_url=f"{self.host}/",
                timeout=httpx.Timeout(read_timeout_s, connect=connect_timeout_s),
                transport=DeadlineTransport(proxy=_proxy(parts)),
                auth=None if token else _credentials(parts),
                headers={"Authorization": f"Bearer {token}"} if token else {},
            )
        except (ValueError, httpx.InvalidURL) as error:
            shown = address.rpartition("@")[2]
            message = _("{setting} is not a valid address: “{host}”.").format(
                setting=setting, host=shown
            )
            raise InvalidParameterError(message, host=shown) from error

    def close(self) -> None:
        """Close the connections; the server cannot be asked afterwards."""
        self._client.close()

    def get(self, path: str) -> Any:
        """Ask for something without parameters. Same errors as `post`."""
        return self._attempted(lambda: self._read(self._client.get(path)))

    def post(self, path: str, body: Json, options: Options | None = None) -> Any:
        """Make a request and return its JSON.

        Raises:
            ProviderUnavailableError: The server does not answer, even after the retries.
            ModelMissingError: The server lacks the model.
            ProviderError: The server refuses the request.
            DeadlineExceededError: The ambient deadline passed.
        """
        return self._attempted(
            lambda: self._adapted(
                lambda sent: self._read(self._client.post(path, json=sent)), body, options or {}
            )
        )

    def stream(
        self, path: str, body: Json, options: Options, *, deadline: Deadline
    ) -> Generator[Any, None, None]:
        """Make a request whose answer is streamed; it is retried only before the first part.

        Closing the generator closes the connection. Same errors as `post`, also while iterating.

        Yields:
            The JSON of each line or event; for `[DONE]` that text.
        """

        def begun(sent: Json) -> tuple[Generator[Any, None, None], Any]:
            parts = self._parts(path, sent)
            return parts, next(parts, None)

        with deadline_scope(deadline):
            parts, part = self._attempted(lambda: self._adapted(begun, body, options))
        with closing(parts):
            while part is not None:
                yield part
                with deadline_scope(deadline), self.understood():
                    part = next(parts, None)

    def give_up(self, option: str) -> bool:
        """Stop sending an option. Returns whether it was sent until now."""
        is_sent = option not in self._given_up
        self._given_up.add(option)
        return is_sent

    def missing(self) -> ModelMissingError:
        """Return the error for a model that the server lacks."""
        message = _("The model server does not have the model {model}. {advice}").format(
            model=self.model, advice=self._advice
        )
        return ModelMissingError(message, model=self.model, host=self.host)

    def broke_off(self) -> ProviderUnavailableError:
        """Return the error for an answer that ended early."""
        message = _("The model server broke off its answer before the end.")
        return ProviderUnavailableError(message, host=self.host, model=self.model)

    @contextmanager
    def understood(self) -> Iterator[None]:
        """Translate what goes wrong in a block that asks the server or reads its answer."""
        try:
            yield
        except httpx.HTTPStatusError as error:
            # The cause is dropped: it holds the request.
            raise self._refusal(error.response) from None
        except (httpx.HTTPError, ConnectionError) as error:
            raise ProviderUnavailableError(
                _(
                    "The model server does not answer. Check that it is started, and {setting}."
                ).format(setting=self._setting),
                host=self.host,
                reason=type(error).__name__,
            ) from error
        except (ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
            # The cause is dropped, since it would put the server's answer into the log.
            raise ProviderUnavailableError(
                _(
                    "The model server gave an answer that cannot be understood. Check {setting}."
                ).format(setting=self._setting),
                host=self.host,
                reason=type(error).__name__,
            ) from None

    def _attempted(self, request: Callable[[], _T]) -> _T:
        with self.understood():
            for attempt in _attempts():
                with attempt:
                    return request()
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _adapted(self, request: Callable[[Json], _T], body: Json, options: Options) -> _T:
        """Make a request with its options in the forms that the server takes."""
        while True:
            forms = dict(self._forms)
            sent = self._sent(body, options, forms)
            try:
                return request(sent)
            except httpx.HTTPStatusError as error:
                refused = _refused(error.response, sent, options)
                if refused is None:
                    raise
                if not refused:  # It does not say what.
                    return self._bare(request, body, options, error)
            self._forms |= {name: forms.get(name, 0) + 1 for name in refused}

    def _bare(
        self, request: Callable[[Json], _T], body: Json, options: Options, error: Exception
    ) -> _T:
        """Make a request without options, and remember that if it succeeds."""
        last = {name: len(forms) for name, forms in options.items()}
        try:
            answer = request(self._sent(body, options, last))
        except httpx.HTTPStatusError:
            raise error from None
        self._forms |= last
        return answer

    def _sent(self, body: Json, options: Options, forms: Mapping[str, int]) -> Json:
        sent = dict(body)
        for name, known in options.items():
            if name not in self._given_up:
                sent |= next(iter(known[forms.get(name, 0) :]), {})
        return sent

    def _read(self, answer: httpx.Response) -> Any:
        answer.raise_for_status()
        return json.loads(answer.content)

    def _parts(self, path: str, body: Json) -> Generator[Any, None, None]:
        with self._client.stream("POST", path, json=body) as answer:
            if not answer.is_success:
                answer.read()
                answer.raise_for_status()
            for line in _lines(answer):
                data = line.removeprefix(b"data:").strip()
                if data == b"[DONE]":
                    yield "[DONE]"
                    return
                if data and not line.startswith((b":", b"event:", b"id:", b"retry:")):
                    yield json.loads(data)

    def _refusal(self, answer: httpx.Response) -> ProviderError:
        status = answer.status_code
        context = {"host": self.host, "model": self.model, "status": status}
        told = _told(answer)
        if _is_passing(status):
            message = _("The model server answered with an error {status}.").format(status=status)
            return ProviderUnavailableError(message, **context)
        # A server without the endpoint also answers 404, but its error does not mention a model.
        if status == _NOT_FOUND and "model" in told:
            return self.missing()
        if status in _UNAUTHORIZED:
            message = _(
                "The model server did not accept the key (error {status}). Check OPENAI_API_KEY."
            )
        elif any(code in told for code in _CONTEXT_CODES):
            message = _(
                "The request is longer than the context of the model {model}. Lower "
                "ANSWER_CONTEXT_TOKENS or start the server with more context."
            )
        else:
            message = _(
                "The model server refused the request for the model {model} (error {status}). "
                "Check the model, and {setting}."
            )
        return ProviderError(message.format(setting=self._setting, **context), **context)


class ServerModel:
    """A model of any kind on a server; close it, or use it in a `with` statement.

    Args:
        server: Used by this model only.
    """

    def __init__(self, server: ModelServer) -> None:
        self._server = server

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; the model cannot be used afterwards."""
        self._server.close()


def _attempts() -> Iterator[Attempt]:
    """Return the attempts of a request; none can only start after the ambient deadline."""
    # Not a decorator: stamina would log the decorated function's arguments, the texts.
    deadline = current_deadline()
    longest_wait_s = _LONGEST_BACKOFF_S
    if deadline is not None:
        longest_wait_s = min(longest_wait_s, deadline.remaining_s / _ATTEMPTS)

    def next_wait(error: Exception) -> bool | float:
        if not _is_transient(error):
            return False
        wait_s = _requested_wait_s(error)
        needed_s = longest_wait_s if wait_s is None else wait_s
        if needed_s > _LONGEST_REQUESTED_WAIT_S:
            return False
        in_time = deadline is None or deadline.remaining_s > needed_s
        return in_time if wait_s is None else in_time and wait_s

    return iter(
        stamina.retry_context(
            on=next_wait,
            attempts=_ATTEMPTS,
            timeout=None,
            wait_initial=0.1,
            wait_max=longest_wait_s,
        )
    )


def _refused(answer: httpx.Response, sent: Json, options: Options) -> list[str] | None:
    """Return the options that an answer refuses; empty if it names none, None if it is no refusal.

    An option is named by a parameter in which it was sent.
    """
    told = _told(answer)
    if answer.status_code not in _REFUSED and not (
        answer.status_code >= _SERVER_ERROR and _SHAPE in told
    ):
        return None
    carried = [
        name
        for name, forms in options.items()
        if any(form and all(sent.get(key) == form[key] for key in form) for form in forms)
    ]
    if not carried or any(code in told for code in _CONTEXT_CODES):
        return None
    named = [
        name
        for name in carried
        if any(
            key in told for form in options[name] for key in form if key in sent and key != _PROMPT
        )
    ]
    return named if named or answer.status_code in _REFUSED else None


def _lines(answer: httpx.Response) -> Iterator[bytes]:
    """Yield the lines of a stream. httpx would also break them at a U+2028 within a text."""
    rest = b""
    for piece in answer.iter_bytes():
        *lines, rest = (rest + piece).split(b"\n")
        yield from lines
    yield rest


def _told(answer: httpx.Response) -> str:
    """The text of an error, which is never shown, because it may quote the request."""
    return answer.content[:_ERROR_BYTES].decode("utf-8", "replace")


def _is_passing(status: int) -> bool:
    return status >= _SERVER_ERROR or status == _TOO_MANY_REQUESTS


def _is_transient(error: Exception) -> bool:
    if isinstance(error, httpx.HTTPStatusError):
        return _is_passing(error.response.status_code)
    return isinstance(error, (httpx.TransportError, ConnectionError))


def _requested_wait_s(error: Exception) -> float | None:
    """Return the seconds of a `Retry-After`; None without one, or for a date."""
    if not isinstance(error, httpx.HTTPStatusError):
        return None
    told = error.response.headers.get("Retry-After", "")
    return float(told) if told.isascii() and told.isdigit() else None


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


def _credentials(address: SplitResult) -> httpx.BasicAuth | None:
    if address.username is None:
        return None
    return httpx.BasicAuth(unquote(address.username), unquote(address.password or ""))


def _proxy(address: SplitResult) -> str | None:
    """Return the environment's proxy for an address.

    httpx looks it up only for its own transport, not for `DeadlineTransport`.
    """
    if proxy_bypass(address.netloc.rpartition("@")[2]):
        return None
    proxies = getproxies()
    found = proxies.get(address.scheme) or proxies.get("all")
    return found if found is None or "://" in found else f"http://{found}"
