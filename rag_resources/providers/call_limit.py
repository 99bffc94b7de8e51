"""The limit of concurrent calls to the language models of one server, whoever makes them."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from rag_resources.core.deadline import Deadline
from rag_resources.resilience.deadlines import time_is_up

MAX_CALLS = 5
"""Calls in flight to one server, in the whole process."""


class CallLimit:
    """Admits a number of concurrent calls; the others wait, until their deadline at most.

    Args:
        calls: Most concurrent calls, >= 1.
    """

    def __init__(self, calls: int = MAX_CALLS) -> None:
        self._free = threading.BoundedSemaphore(calls)

    @contextmanager
    def admitted(self, deadline: Deadline) -> Iterator[None]:
        """Hold one of the places during a block.

        Raises:
            DeadlineExceededError: No place was free in time.
        """
        if not self._free.acquire(timeout=max(0.0, deadline.remaining_s)):
            raise time_is_up(begun=False)
        try:
            yield
        finally:
            self._free.release()


_lock = threading.Lock()
_limits: dict[str, CallLimit] = {}


def call_limit(server: str) -> CallLimit:
    """Return the limit of a server; the same address gives the same object."""
    with _lock:
        return _limits.setdefault(server, CallLimit())


def _forget() -> None:
    """Give a forked process limits of its own, since its parent's calls never end in it."""
    global _lock
    _lock = threading.Lock()
    _limits.clear()


os.register_at_fork(after_in_child=_forget)
