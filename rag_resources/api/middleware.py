"""Gives every request an id, a limit of its body's size, a log record and counts."""

import re
import time
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from uuid import uuid4

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rag_resources.api.language import preferred_language
from rag_resources.api.metrics import DURATION, REQUESTS
from rag_resources.api.problems import INTERNAL, ProblemError, problem_response
from rag_resources.languages.messages import _

MAX_BODY_KB = 1_024
"""Longest body of a request that is no upload."""

_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_WATCHED = frozenset(("/healthz", "/readyz", "/metrics"))
"""Asked every few seconds by what watches the server: only their failures are logged."""

_log = structlog.get_logger()


class EveryRequest:
    """ASGI middleware around the whole application.

    Args:
        app: The application.
        max_body_kb: Longest body; a longer one is refused with 413 while it arrives.
        longer: The longest body of some paths, by path.
    """

    def __init__(
        self, app: ASGIApp, *, max_body_kb: int, longer: Mapping[str, int] | None = None
    ) -> None:
        self._app = app
        self._max_body_kb = max_body_kb
        self._longer = longer or {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["method"] == "HEAD":  # Answered as GET; the server sends no body.
            scope = {**scope, "method": "GET"}
        max_body_kb = self._longer.get(scope["path"], self._max_body_kb)
        await _Exchange(scope, receive, send, max_body_kb).run(self._app)


class _TooLargeError(Exception):
    """The body is longer than allowed."""


class _Exchange:
    """One request and its answer."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, max_body_kb: int) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send
        self._max_body_kb = max_body_kb
        self._received = 0
        self._is_too_large = False
        self._status = 0
        self._headers = dict(scope["headers"])
        given = self._headers.get(b"x-request-id", b"")
        named = _REQUEST_ID.fullmatch(given) is not None
        self._request_id = given.decode() if named else uuid4().hex
        self._arrived_at = time.monotonic()

    async def run(self, app: ASGIApp) -> None:
        state = self._scope.setdefault("state", {})
        state |= {"request_id": self._request_id, "arrived_at": self._arrived_at}
        with structlog.contextvars.bound_contextvars(request_id=self._request_id):
            try:
                await self._answered(app)
            except Exception as error:
                self._log_failure(error)
                if self._status:
                    raise  # The answer has begun: a cut connection shows that it is not whole.
                await self._refuse(ProblemError(HTTPStatus.INTERNAL_SERVER_ERROR, INTERNAL))
            finally:
                self._record()

    async def _answered(self, app: ASGIApp) -> None:
        length = self._headers.get(b"content-length", b"0")
        self._is_too_large = length.isdigit() and int(length) > self._max_body_kb * 1024
        if not self._is_too_large:
            with suppress(_TooLargeError):
                await app(self._scope, self._limited, self._sent_by_app)
        if self._is_too_large and not self._status:
            message = _("The body of the request is longer than {maximum} kB.").format(
                maximum=self._max_body_kb
            )
            headers = {"Connection": "close"}
            status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
            await self._refuse(ProblemError(status, message, headers=headers))

    async def _limited(self) -> Message:
        message = await self._receive()
        self._received += len(message.get("body", b""))
        if self._received > self._max_body_kb * 1024:
            self._is_too_large = True
            raise _TooLargeError
        return message

    async def _sent_by_app(self, message: Message) -> None:
        # FastAPI takes the interrupted body for an invalid one and answers 400, which is dropped.
        if not self._is_too_large or self._status:
            await self._noted(message)

    async def _noted(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = int(message["status"])
            message["headers"] = [
                *message.get("headers", ()),
                (b"x-request-id", self._request_id.encode()),
            ]
        await self._send(message)

    async def _refuse(self, problem: ProblemError) -> None:
        header = self._headers.get(b"accept-language", b"").decode("latin-1")
        language = preferred_language(header)
        path = self._scope["path"]
        response = problem_response(problem, self._request_id, language=language, path=path)
        await response(self._scope, self._receive, self._noted)

    def _log_failure(self, error: Exception) -> None:
        # Only the type: a message may quote the question. The trace holds no values.
        _log.error("request_crashed", error=type(error).__qualname__, where=_place(error))

    def _record(self) -> None:
        seconds = time.monotonic() - self._arrived_at
        route = getattr(self._scope.get("route"), "path", "unknown")
        method = self._scope["method"] if route != "unknown" else "any"
        REQUESTS.labels(route, method, str(self._status)).inc()
        DURATION.labels(route).observe(seconds)
        if route in _WATCHED and self._status < HTTPStatus.BAD_REQUEST:
            return
        _log.info(
            "request",
            method=method,
            route=route,
            status=self._status,
            ms=round(seconds * 1000, 1),
            key=self._scope["state"].get("key_id"),
        )


def _place(error: Exception) -> str:
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if traceback is None:
        return ""
    return f"{traceback.tb_frame.f_code.co_qualname}:{traceback.tb_lineno}"
