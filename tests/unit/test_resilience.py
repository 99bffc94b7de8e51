"""Circuit breakers and deadlines, with real threads and, for the breaker, a clock of the test's."""

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from functools import partial
from pathlib import Path

import httpx
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from rag_resources.core.deadline import Deadline
from rag_resources.core.errors import (
    DatabaseNotReadyError,
    DatabaseTimeoutError,
    DatabaseUnavailableError,
    DeadlineExceededError,
    DependencyOpenError,
    InvalidAnswerError,
    InvalidEmbeddingError,
    InvalidQueryError,
    ModelMissingError,
    ProviderError,
    ProviderUnavailableError,
)
from rag_resources.resilience.breakers import Breakers, CircuitBreaker, is_failure
from rag_resources.resilience.deadline_transport import DeadlineTransport
from rag_resources.resilience.deadlines import (
    call_within,
    current_deadline,
    deadline_scope,
    time_is_up,
)
from tests.waiting import PATIENCE_S

FAILURES = 3
RESET_S = 10.0
N_WORKERS = 32


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def after(milliseconds: float) -> Deadline:
    return Deadline.after(milliseconds, time.monotonic)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def breaker(clock: Clock) -> CircuitBreaker:
    return CircuitBreaker("embedding:e5_small", failures=FAILURES, reset_s=RESET_S, clock=clock)


def fail(breaker: CircuitBreaker, times: int = 1, error: BaseException | None = None) -> None:
    raised = error or ProviderUnavailableError("no responde")
    for _ in range(times):
        with pytest.raises(type(raised)), breaker.guard():
            raise raised


def succeed(breaker: CircuitBreaker) -> None:
    with breaker.guard():
        pass


def test_a_breaker_opens_after_failures_in_a_row_and_names_the_dependency(
    breaker: CircuitBreaker,
) -> None:
    fail(breaker, FAILURES - 1)
    succeed(breaker)
    fail(breaker, FAILURES - 1)
    assert breaker.is_closed
    fail(breaker)
    assert not breaker.is_closed
    with pytest.raises(DependencyOpenError, match=r"embedding:e5_small.* 10 s"):
        succeed(breaker)


@pytest.mark.parametrize("works", [True, False])
def test_the_outcome_of_the_trial_decides(
    breaker: CircuitBreaker, clock: Clock, works: bool
) -> None:
    fail(breaker, FAILURES)
    clock.now += RESET_S
    assert not breaker.is_closed
    if works:
        succeed(breaker)
        assert breaker.is_closed
        fail(breaker, FAILURES - 1)
        assert breaker.is_closed
    else:
        fail(breaker)
        with pytest.raises(DependencyOpenError):
            succeed(breaker)
        clock.now += RESET_S
        succeed(breaker)


def test_a_trial_that_never_ends_is_replaced_and_its_outcome_ignored(
    breaker: CircuitBreaker, clock: Clock
) -> None:
    fail(breaker, FAILURES)
    clock.now += RESET_S
    lost = breaker.guard()
    lost.__enter__()
    with pytest.raises(DependencyOpenError):
        succeed(breaker)
    clock.now += RESET_S
    fail(breaker)
    lost.__exit__(None, None, None)
    assert not breaker.is_closed


def test_a_call_from_before_it_opened_does_not_close_it(
    breaker: CircuitBreaker,
) -> None:
    early = breaker.guard()
    early.__enter__()
    fail(breaker, FAILURES)
    early.__exit__(None, None, None)
    assert not breaker.is_closed


@pytest.mark.parametrize(
    ("error", "counts"),
    [
        (ProviderUnavailableError(""), True),
        (InvalidEmbeddingError(""), True),
        (InvalidAnswerError(""), True),
        (DatabaseUnavailableError(""), True),
        (DatabaseTimeoutError(""), True),
        (time_is_up(), True),
        (OSError("nobody translated it"), True),
        (time_is_up(begun=False), False),
        (ModelMissingError(""), False),
        (ProviderError("refused"), False),
        (DatabaseNotReadyError(""), False),
        (InvalidQueryError(""), False),
        (DependencyOpenError(""), False),
    ],
)
def test_only_errors_of_the_dependency_count(
    breaker: CircuitBreaker, error: Exception, counts: bool
) -> None:
    assert is_failure(error) is counts
    fail(breaker, FAILURES, error)
    assert breaker.is_closed is not counts


def test_each_dependency_has_one_breaker_of_its_own() -> None:
    breakers = Breakers(partial(CircuitBreaker, failures=1))
    found: list[CircuitBreaker] = []
    start = threading.Barrier(20)

    def look_up(_: int) -> None:
        start.wait()
        found.append(breakers["a"])

    run_threads(20, look_up)
    assert len(set(map(id, found))) == 1
    fail(breakers["a"])
    assert not breakers["a"].is_closed
    assert breakers["b"].is_closed
    assert breakers["b"].name == "b"


class BreakerModel(RuleBasedStateMachine):
    """Calls that begin, end or are abandoned in any order, checked against the breaker's rules."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.breaker = CircuitBreaker("x", failures=FAILURES, reset_s=RESET_S, clock=self.clock)
        # Calls under way, and whether each was let through after the last opening or trial.
        self.calls: list[tuple[AbstractContextManager[None], bool]] = []
        self.row = 0
        self.closed = True
        self.trial: AbstractContextManager[None] | None = None
        self.due_at = 0.0

    @rule()
    def begin(self) -> None:
        call = self.breaker.guard()
        if not self.closed and self.clock.now < self.due_at:
            with pytest.raises(DependencyOpenError):
                call.__enter__()
            return
        call.__enter__()
        if not self.closed:
            self.calls = [(other, False) for other, _ in self.calls]
            self.trial = call
            self.due_at = self.clock.now + RESET_S
        self.calls.append((call, True))

    @precondition(lambda self: self.calls)
    @rule(data=st.data())
    def end_well(self, data: st.DataObject) -> None:
        call, current = self.take(data)
        call.__exit__(None, None, None)
        if current:
            self.row, self.closed, self.trial = 0, True, None

    @precondition(lambda self: self.calls)
    @rule(data=st.data())
    def fail(self, data: st.DataObject) -> None:
        call, current = self.take(data)
        end_with(call, ProviderUnavailableError("no responde"))
        if not current:
            return
        self.row += 1
        if self.row >= FAILURES:
            self.closed, self.trial = False, None
            self.due_at = self.clock.now + RESET_S
            self.calls = [(other, False) for other, _ in self.calls]

    @precondition(lambda self: self.calls)
    @rule(data=st.data())
    def tell_nothing(self, data: st.DataObject) -> None:
        call, current = self.take(data)
        end_with(call, InvalidQueryError("vacía"))
        if current and call is self.trial:
            self.trial, self.due_at = None, self.clock.now

    @rule(seconds=st.sampled_from([0.5, RESET_S / 2, RESET_S]))
    def wait(self, seconds: float) -> None:
        self.clock.now += seconds

    @invariant()
    def tells_its_state(self) -> None:
        assert self.breaker.is_closed is self.closed

    def take(self, data: st.DataObject) -> tuple[AbstractContextManager[None], bool]:
        return self.calls.pop(data.draw(st.integers(0, len(self.calls) - 1)))


TestBreakerModel = BreakerModel.TestCase


def end_with(call: AbstractContextManager[None], error: Exception) -> None:
    assert not call.__exit__(type(error), error, None)


def test_a_scope_is_over_where_it_ends_and_never_longer_than_the_one_around_it() -> None:
    assert current_deadline() is None
    outer, longer, shorter = after(60_000), after(90_000), after(30_000)
    with deadline_scope(outer):
        with deadline_scope(longer):
            assert current_deadline() is outer
        with deadline_scope(shorter):
            assert current_deadline() is shorter
        assert current_deadline() is outer
    assert current_deadline() is None


def test_a_call_gets_the_callers_context_and_the_deadline() -> None:
    variable = ContextVar("variable", default="")
    variable.set("de quien llama")
    deadline = after(60_000)

    def seen() -> tuple[str, Deadline | None, str]:
        return variable.get(), current_deadline(), threading.current_thread().name

    value, scope, thread = call_within(deadline, seen)
    assert (value, scope) == ("de quien llama", deadline)
    assert thread.startswith("call-within")


def test_a_call_without_time_is_not_begun() -> None:
    begun = threading.Event()
    with pytest.raises(DeadlineExceededError) as caught:
        call_within(after(0), begun.set)
    assert caught.value.context["begun"] is False
    assert not begun.is_set()


def test_calls_given_up_take_a_bounded_number_of_threads_and_give_them_back() -> None:
    """While all threads are stuck no caller hangs; afterwards all of them run calls again."""
    release = threading.Event()

    def stuck() -> None:
        release.wait(timeout=60)

    begun: list[bool] = []

    def give_up(_: int) -> None:
        with pytest.raises(DeadlineExceededError) as caught:
            call_within(after(200), stuck)
        begun.append(caught.value.context["begun"])

    run_threads(100, give_up)
    assert len(begun) == 100
    assert begun.count(True) <= N_WORKERS
    assert workers() <= N_WORKERS
    release.set()
    together = threading.Barrier(N_WORKERS)
    run_threads(N_WORKERS, lambda _: call_within(after(60_000), partial(together.wait, 30)))
    assert not together.broken
    assert workers() <= N_WORKERS


def workers() -> int:
    return sum(thread.name.startswith("call-within") for thread in threading.enumerate())


def test_a_forked_process_has_workers_of_its_own() -> None:
    """Also if the parent's were all made; and neither of them hangs when it exits."""
    code = """
import os, sys, threading, time
from rag_resources.core.deadline import Deadline
from rag_resources.resilience.deadlines import call_within

deadline = Deadline.after(60_000, time.monotonic)
assert call_within(deadline, lambda: 1) == 1
child = os.fork()
if child == 0:
    sys.exit(0 if call_within(deadline, lambda: 2) == 2 else 1)
_, status = os.waitpid(child, 0)
sys.exit(os.waitstatus_to_exitcode(status))
"""
    process = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code],
        cwd=Path(__file__).parents[2],
        check=False,
        timeout=60,
    )
    assert process.returncode == 0


def run_threads(number: int, work: Callable[[int], object]) -> None:
    """Run a function in threads of its own until all are done, and raise what any of them did."""
    errors: list[BaseException] = []

    def kept(index: int) -> None:
        try:
            work(index)
        except BaseException as error:  # noqa: BLE001 - raised again below
            errors.append(error)

    threads = [threading.Thread(target=kept, args=(index,)) for index in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def test_a_closed_client_also_closes_what_another_thread_was_only_opening() -> None:
    """The pool of connections does not know of it yet; here the whole of it comes later."""
    limits = dict.fromkeys(("connect", "read", "write", "pool"), PATIENCE_S)
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        transport = DeadlineTransport(proxy=None)
        transport.close()
        with pytest.raises(httpx.ConnectError):
            transport.handle_request(httpx.Request("GET", url, extensions={"timeout": limits}))
        accepted, _ = server.accept()
        with accepted:
            accepted.settimeout(PATIENCE_S)
            assert accepted.recv(1) == b""
