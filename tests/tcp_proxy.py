"""A small TCP proxy for tests: it sits in front of any server and imitates bad networks.

It does not interpret what it forwards. It works for PostgreSQL, HTTP and Redis, but not for TLS
with checked names.
"""

import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

_CHUNK_BYTES = 65536
_TICK_S = 0.05
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class _Link:
    """A client's connection and the one to the server that belongs to it."""

    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self.client = client
        self.server = server
        self.flowing = threading.Event()
        self._severed = False
        self._directions = 2
        self._lock = threading.Lock()

    def sever(self) -> None:
        """End both connections, which wakes their readers and writers."""
        self._severed = True
        for end in (self.client, self.server):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def leave(self) -> bool:
        """Close both connections when both directions are done; return whether they are."""
        with self._lock:
            self._directions -= 1
            if self._directions:
                return False
        for end in (self.client, self.server):
            if self._severed:
                with suppress(OSError):
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            end.close()
        return True


class TcpProxy:
    """Forwards a loopback port to a server, until told to misbehave.

    Args:
        host: Where the server listens.
        port: Its port.
    """

    def __init__(self, host: str, port: int) -> None:
        self.host = "127.0.0.1"
        self.upstream = (host, port)
        self._delay_s = 0.0
        self._answer_bytes: int | None = None
        self._stalls_new = False
        self._held = threading.Event()
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._links: set[_Link] = set()
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server((self.host, 0))
        self.port: int = self._listener.getsockname()[1]
        self._accept_from(self._listener)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def open_connections(self) -> int:
        """Number of connected clients that the proxy knows of."""
        with self._lock:
            return len(self._links)

    def delay(self, seconds: float) -> None:
        """Hold each chunk that long, in both directions."""
        self._delay_s = seconds

    def stall(self, *, new: bool = True) -> None:
        """Accept connections and bytes but forward nothing, not even the closing of a side.

        Args:
            new: Whether new connections stall as well as existing ones.
        """
        self._held.clear()
        with self._lock:
            self._stalls_new = new
            for link in self._links:
                link.flowing.clear()

    def wait_held(self, seconds: float = 20) -> None:
        """Wait until a stall holds something back.

        Raises:
            TimeoutError: Nothing came.
        """
        if not self._held.wait(seconds):
            raise TimeoutError("nothing reached the stalled proxy")

    def cut(self) -> None:
        """Reset every connection now."""
        with self._lock:
            for link in self._links:
                link.sever()

    def cut_after(self, answer_bytes: int) -> None:
        """Reset one connection after this many response bytes, in the middle of a response."""
        self._answer_bytes = answer_bytes

    def refuse(self) -> None:
        """Stop listening: new connections are refused, existing ones stay."""
        # A mere close would leave it listening until the thread that accepts looks again.
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def heal(self) -> None:
        """Forward again without delay, including what was held back."""
        self._delay_s = 0.0
        self._answer_bytes = None
        if self._listener.fileno() == -1:
            self._listener = socket.create_server((self.host, self.port))
            self._accept_from(self._listener)
        self._release()

    def stop(self) -> None:
        """Close everything and wait for every thread."""
        self._stopping.set()
        self.refuse()
        self._release()
        self.cut()
        while self._threads:
            self._threads.pop().join()

    def _release(self) -> None:
        with self._lock:
            self._stalls_new = False
            for link in self._links:
                link.flowing.set()

    def _start(self, target: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, name="tcp-proxy", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept_from(self, listener: socket.socket) -> None:
        listener.settimeout(_TICK_S)
        self._start(self._accept, listener)

    def _accept(self, listener: socket.socket) -> None:
        while not self._stopping.is_set():
            try:
                client, _ = listener.accept()
            except TimeoutError:
                continue
            except OSError:
                return
            client.settimeout(None)
            try:
                server = socket.create_connection(self.upstream)
            except OSError:
                client.close()
                continue
            link = _Link(client, server)
            with self._lock:
                self._links.add(link)
                if not self._stalls_new:
                    link.flowing.set()
            if self._stopping.is_set():
                link.sever()
            self._start(self._pump, link, client, server)
            self._start(self._pump, link, server, client)

    def _pump(self, link: _Link, source: socket.socket, target: socket.socket) -> None:
        try:
            while chunk := self._received(link, source):
                if source is link.server and self._cuts(len(chunk)):
                    target.sendall(chunk[: self._answer_bytes])
                    self._answer_bytes = None
                    link.sever()
                    break
                target.sendall(chunk)
            else:
                target.shutdown(socket.SHUT_WR)
        except OSError:
            link.sever()
        if link.leave():
            with self._lock:
                self._links.discard(link)

    def _received(self, link: _Link, source: socket.socket) -> bytes:
        """Read the next bytes, or the end, and return them when they may pass."""
        try:
            chunk = source.recv(_CHUNK_BYTES)
        finally:
            if self._delay_s:
                self._stopping.wait(self._delay_s)
            if not link.flowing.is_set():
                self._held.set()
                link.flowing.wait()
        return chunk

    def _cuts(self, length: int) -> bool:
        with self._lock:
            if self._answer_bytes is None:
                return False
            if self._answer_bytes < length:
                return True
            self._answer_bytes -= length
            return False
