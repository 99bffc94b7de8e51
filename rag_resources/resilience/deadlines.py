"""Deadlines for calls to slow dependencies. Deciding whether to call at all is `breakers`."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from threading import Event
from typing import TypeVar

from rag_resources.core.deadline import Deadline
from rag_resources.core.errors import (
    DatabaseTimeoutError,
    DatabaseUnavailableError,
    DeadlineExceededError,
)
from rag_resources.languages.messages import _
from rag_resources.resilience.breakers import is_failure

_T = TypeVar("_T")

_MAX_WORKERS = 32

_deadline: ContextVar[Deadline | None] = ContextVar("deadline", default=None)
_left: ContextVar[Event | None] = ContextVar("left", default=None)


def current_deadline() -> Deadline | None:
    """Return the deadline of the scope the caller is in; None if there is none."""
    return _deadline.get()


@contextmanager
def deadline_scope(deadline: Deadline) -> Iterator[None]:
    """Apply a deadline to all calls in a block; providers read it and obey it.

    A nested scope can only shorten the deadline. Do not keep a scope open across a `yield`: it
    would apply to the code that iterates.
    """
    outer = _deadline.get()
    if outer is not None and outer.remaining_s < deadline.remaining_s:
        deadline = outer
    token = _deadline.set(deadline)
    try:
        yield
    finally:
        _deadline.reset(token)


@contextmanager
def while_waited_for(left: Event) -> Iterator[None]:
    """End the calls in a block soon after an event, as if their deadline had passed.

    Unlike `deadline_scope`, the block may contain a `yield`.

    Args:
        left: Set, from any thread, when nobody waits for the result any more.
    """
    token = _left.set(left)
    try:
        yield
    finally:
        _left.reset(token)


def current_left() -> Event | None:
    """Return the event of the block that the caller is in; None if there is none."""
    return _left.get()


def time_is_up(*, begun: bool = True) -> DeadlineExceededError:
    """Return the error for a deadline that has passed.

    Args:
        begun: Whether the call had started.
    """
    return DeadlineExceededError(
        _("There is no time left for this part of the search."), begun=begun
    )


# Starts threads only when it gets work. They are not daemon threads, which Python kills in the
# middle of their work: at exit Python waits for running calls, which their deadline bounds.
_workers = ThreadPoolExecutor(_MAX_WORKERS, thread_name_prefix="call-within")


def _replace_workers() -> None:
    """Give a forked process its own workers, since threads do not survive a fork."""
    global _workers
    _workers = ThreadPoolExecutor(_MAX_WORKERS, thread_name_prefix="call-within")


os.register_at_fork(after_in_child=_replace_workers)


def call_within(deadline: Deadline, function: Callable[[], _T]) -> _T:
    """Call a function in a thread of a shared pool, and wait for it until a deadline at most.

    The function sees the caller's context variables and runs in the deadline's scope. So a call
    that the caller has given up on ends soon after, if it waits for a provider that obeys the
    deadline. Do not nest calls: one that waits for another occupies two of the pool's threads.

    Returns:
        The function's result.

    Raises:
        DeadlineExceededError: The deadline passed. `begun` in the error's context tells whether
            the function had started; it has not if no time or no free thread was left.
        BaseException: Whatever the function raises, unchanged.
    """
    if deadline.expired:
        raise time_is_up(begun=False)

    def scoped() -> _T:
        with deadline_scope(deadline):
            return function()

    future = _workers.submit(copy_context().run, scoped)
    try:
        wait([future], timeout=deadline.remaining_s)
    except BaseException:
        future.cancel()
        raise
    if future.cancel():
        raise time_is_up(begun=False)
    if not future.done():
        raise time_is_up()
    return future.result()


FAIR_MS = 200.0
"""A timeout of a dependency that had less time than this does not count as a failure."""

_FOR_WANT_OF_TIME = (DatabaseTimeoutError, DatabaseUnavailableError, DeadlineExceededError)
"""Includes "unavailable", because a short deadline may end while a connection is opened."""


def share(deadline: Deadline, part: float) -> Deadline:
    """Return the deadline of a step that may use this fraction, in [0, 1], of the time left."""
    return deadline.within(deadline.remaining_ms * part)


def blames(deadline: Deadline) -> Callable[[Exception], bool]:
    """Return which errors of a call with this deadline count as failures for its circuit breaker.

    Timeouts of very short deadlines do not count. Otherwise a few hurried callers would open the
    breaker for everybody.
    """
    if deadline.remaining_ms >= FAIR_MS:
        return is_failure
    return lambda error: is_failure(error) and not isinstance(error, _FOR_WANT_OF_TIME)
