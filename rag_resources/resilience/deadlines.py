"""Deadlines: how long calls to what may be slow take; how often they are tried is `breakers`."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import TypeVar

from rag_resources.core.deadline import Deadline
from rag_resources.core.errors import DeadlineExceededError
from rag_resources.core.messages import Message

_T = TypeVar("_T")

_MAX_WORKERS = 32

_deadline: ContextVar[Deadline | None] = ContextVar("deadline", default=None)


def current_deadline() -> Deadline | None:
    """Return the deadline of the scope the caller is in; None if there is none."""
    return _deadline.get()


@contextmanager
def deadline_scope(deadline: Deadline) -> Iterator[None]:
    """Put the calls of a block under a deadline, which providers obey by themselves.

    A scope inside another one can only shorten it. Not to be held open over a `yield`: the scope
    would become that of whoever iterates.
    """
    outer = _deadline.get()
    if outer is not None and outer.remaining_s < deadline.remaining_s:
        deadline = outer
    token = _deadline.set(deadline)
    try:
        yield
    finally:
        _deadline.reset(token)


def time_is_up(*, begun: bool = True) -> DeadlineExceededError:
    """Return the error of a deadline that passed.

    Args:
        begun: Whether the dependency was called at all.
    """
    return DeadlineExceededError(Message.TIME_IS_UP, begun=begun)


# Has no threads until it gets work. They are not daemons, which Python ends in the middle of what
# they do: at exit it waits for calls under way, and the deadline bounds those.
_workers = ThreadPoolExecutor(_MAX_WORKERS, thread_name_prefix="call-within")


def _replace_workers() -> None:
    """Give a forked process workers of its own: the threads of its parent did not come along."""
    global _workers
    _workers = ThreadPoolExecutor(_MAX_WORKERS, thread_name_prefix="call-within")


os.register_at_fork(after_in_child=_replace_workers)


def call_within(deadline: Deadline, function: Callable[[], _T]) -> _T:
    """Call a function in a thread of a shared pool, and wait for it no longer than a deadline.

    The function sees the caller's context variables and runs in the deadline's scope, so that a
    call given up ends soon after by itself, if what it waits for is a provider that obeys. Not to
    be nested: a call waiting for another one occupies two of the pool's threads.

    Returns:
        What the function returns.

    Raises:
        DeadlineExceededError: Time is up; the function may not have been begun (`begun` in the
            error's context), for want of time or of a free thread.
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
