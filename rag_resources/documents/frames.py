"""Messages over a pipe: a length of four bytes, then JSON. Reading is limited in time and size."""

import json
import os
import selectors
import struct
from collections.abc import Callable
from typing import Any, BinaryIO

_LENGTH = struct.Struct(">I")
_READ_BYTES = 1 << 16


class FramesTooLargeError(Exception):
    """The sender has sent more than is allowed."""


class FramesLateError(Exception):
    """The sender did not finish in time."""


class FramesCutError(Exception):
    """The sender ended before its last message, or sent something else."""


def write_frame(pipe: BinaryIO, value: Any) -> None:
    """Send a message."""
    data = json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode("ascii")
    pipe.write(_LENGTH.pack(len(data)) + data)
    pipe.flush()


class FrameReader:
    """Receives messages.

    Args:
        descriptor: The reading end of a pipe.
        clock: Monotonic, in seconds.
        end_at: When the sender must have finished, by that clock.
        max_bytes: Most bytes of all messages together.
    """

    def __init__(
        self, descriptor: int, *, clock: Callable[[], float], end_at: float, max_bytes: int
    ) -> None:
        self._descriptor = descriptor
        self._clock = clock
        self._end_at = end_at
        self._left = max_bytes
        self._buffer = bytearray()

    def read(self) -> Any:
        """Return the next message.

        Raises:
            FramesTooLargeError: There was more than `max_bytes`.
            FramesLateError: The time is up.
            FramesCutError: The sender is gone, or sent something else than a message.
        """
        length = _LENGTH.unpack(self._take(_LENGTH.size))[0]
        self._left -= length
        if self._left < 0:
            raise FramesTooLargeError
        try:
            return json.loads(self._take(length))
        except (ValueError, RecursionError) as error:
            raise FramesCutError from error

    def _take(self, size: int) -> bytes:
        while len(self._buffer) < size:
            self._fill()
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken

    def _fill(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._descriptor, selectors.EVENT_READ)
            left = self._end_at - self._clock()
            if left <= 0 or not selector.select(left):
                raise FramesLateError
        data = os.read(self._descriptor, _READ_BYTES)
        if not data:
            raise FramesCutError
        self._buffer += data
