"""An httpx transport that enforces the ambient deadline of `deadlines` at the socket."""

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from typing import Any
from weakref import WeakSet

import httpcore
import httpx

from rag_resources.resilience.deadlines import current_deadline, current_left, time_is_up

_LOOK_EVERY_S = 0.25
_SHORTEST_S = 0.001  # A timeout of 0 would be no waiting at all.


class DeadlineTransport(httpx.HTTPTransport):
    """The httpx transport, except that no wait outlasts the ambient deadline.

    httpx's timeouts bound a single wait for bytes, so a server that sends one byte a second never
    exceeds them. The deadline is therefore enforced at the socket, for connecting, TLS, and every
    read and write, including those of headers.

    Args:
        proxy: Address of the proxy to go through, if any.
    """

    def __init__(self, *, proxy: str | None) -> None:
        super().__init__(proxy=proxy)
        # httpcore takes the backend when its pool is created, but httpx creates the pool.
        self._backend = _DeadlineBackend()
        self._pool._network_backend = self._backend  # noqa: SLF001

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request.

        Raises:
            DeadlineExceededError: The ambient deadline passed.
            httpx.TransportError: No answer.
        """
        deadline = current_deadline()
        if deadline is not None and deadline.expired:
            raise time_is_up(begun=False)
        timeouts: dict[str, Any] = request.extensions["timeout"]
        with _shortened(timeouts["pool"]) as pool_s:
            request.extensions["timeout"] = {**timeouts, "pool": pool_s}
            return super().handle_request(request)

    def close(self) -> None:
        """Close every connection, including those that other threads are only opening."""
        super().close()
        self._backend.close()


class _DeadlineBackend(httpcore.SyncBackend):
    """Opens connections, and keeps track of them so that `close` also ends those being opened."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_closed = False
        self._streams: WeakSet[_DeadlineStream] = WeakSet()

    def connect_tcp(
        self, host: str, port: int, timeout: float | None = None, *args: Any, **options: Any
    ) -> httpcore.NetworkStream:
        with _shortened(timeout) as limit_s:
            inner = super().connect_tcp(host, port, limit_s, *args, **options)
        return _DeadlineStream(inner, self)

    def add(self, stream: "_DeadlineStream") -> None:
        """Remember a stream.

        Raises:
            httpcore.ConnectError: The backend has been closed, and so is the stream.
        """
        with self._lock:
            self._streams.add(stream)
            is_closed = self._is_closed
        if is_closed:
            stream.close()
            raise httpcore.ConnectError

    def close(self) -> None:
        """Close the streams, and those that will still be opened."""
        with self._lock:
            self._is_closed = True
            streams = list(self._streams)
        for stream in streams:
            stream.close()


class _DeadlineStream(httpcore.NetworkStream):
    def __init__(self, inner: httpcore.NetworkStream, backend: _DeadlineBackend) -> None:
        self._inner = inner
        self._backend = backend
        backend.add(self)

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        with _shortened(timeout) as limit_s:
            left = current_left()
            if left is None:
                return self._inner.read(max_bytes, limit_s)
            return self._read_until(left, max_bytes, limit_s)

    def _read_until(self, left: Event, max_bytes: int, limit_s: float | None) -> bytes:
        """Read, with waits short enough to notice the event soon."""
        end = math.inf if limit_s is None else time.monotonic() + limit_s
        while not left.is_set():
            remaining_s = end - time.monotonic()
            try:
                return self._inner.read(
                    max_bytes, max(_SHORTEST_S, min(_LOOK_EVERY_S, remaining_s))
                )
            except httpcore.ReadTimeout:
                if remaining_s <= _LOOK_EVERY_S:
                    raise
        raise time_is_up()

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        with _shortened(timeout) as limit_s:
            self._inner.write(buffer, limit_s)

    def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        with _shortened(timeout) as limit_s:
            inner = self._inner.start_tls(ssl_context, server_hostname, limit_s)
        return _DeadlineStream(inner, self._backend)

    def close(self) -> None:
        self._inner.close()

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


@contextmanager
def _shortened(timeout_s: float | None) -> Iterator[float | None]:
    """Yield the shorter of a timeout and the time left until the ambient deadline.

    If the deadline was the shorter one, a timeout in the block becomes `DeadlineExceededError`.

    Raises:
        DeadlineExceededError: No time is left, or the deadline passed in the block.
    """
    deadline = current_deadline()
    if deadline is None:
        yield timeout_s
        return
    remaining_s = deadline.remaining_s
    if remaining_s == 0.0:
        raise time_is_up()
    if timeout_s is not None and timeout_s <= remaining_s:
        yield timeout_s
        return
    try:
        yield remaining_s
    except (httpcore.TimeoutException, httpx.PoolTimeout) as error:
        raise time_is_up() from error
