"""The limits of every fuzzed call: time, memory, and errors that a user can read."""

import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import chain
from pathlib import Path
from string import Formatter
from typing import TypeVar

import pytest

from rag_resources.core.errors import ProblemsError, RagError
from rag_resources.languages.messages import catalogue

T = TypeVar("T")

_CPU_S = 5.0
_WALL_S = 120.0
_MEMORY_BYTES = 1 << 30
_MESSAGE_CHARS = 20_000


@contextmanager
def bounded() -> Iterator[None]:
    """Fail if the block takes too much time of processor or clock, or too much memory.

    The processor's time tells a slow expression from a busy machine; the clock's, a wait for ever.
    """
    handlers = {
        number: signal.signal(number, _hang) for number in (signal.SIGVTALRM, signal.SIGALRM)
    }
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_address_space() + _MEMORY_BYTES, limits[1]))
    signal.setitimer(signal.ITIMER_VIRTUAL, _CPU_S)
    signal.setitimer(signal.ITIMER_REAL, _WALL_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        resource.setrlimit(resource.RLIMIT_AS, limits)
        for number, handler in handlers.items():
            signal.signal(number, handler)


def outcome(call: Callable[[], T]) -> T | RagError:
    """Return a call's result, or our own error with a message of the catalogue."""
    try:
        with bounded():
            return call()
    except RagError as error:
        if isinstance(error, ProblemsError):
            for problem in error.problems:
                assert_told(problem)
        assert_told(error.message)
        return error


def assert_told(text: str) -> None:
    """Check that a text is fit for a person: of the catalogue, printable, not endless."""
    assert len(text) <= _MESSAGE_CHARS
    assert text.encode()
    assert "Traceback" not in text
    assert any(_holds(text, pieces) for pieces in _templates()), text


def _hang(number: int, frame: object) -> None:
    # Not an exception that the code under test could take for one of its own.
    pytest.fail(f"it hangs ({signal.Signals(number).name})")


def _address_space() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()


@cache
def _templates() -> list[tuple[str, ...]]:
    """The literal pieces of every message with some words of its own."""
    messages = list(chain.from_iterable(catalogue("es").values()))
    pieces = [tuple(piece[0] for piece in Formatter().parse(message)) for message in messages]
    return [each for each in pieces if any(len(piece.split()) > 1 for piece in each)]


def _holds(text: str, pieces: tuple[str, ...]) -> bool:
    position = 0
    for piece in pieces:
        position = text.find(piece, position)
        if position < 0:
            return False
        position += len(piece)
    return True
