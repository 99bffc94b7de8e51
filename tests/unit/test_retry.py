"""Retries of what reads the database."""

import time

import pytest
from stamina.instrumentation import RetryDetails, get_on_retry_hooks, set_on_retry_hooks

from rag_resources.core.deadline import Deadline
from rag_resources.core.errors import DatabaseTimeoutError, DatabaseUnavailableError, RagError
from rag_resources.resilience.retry import WAITS_S, retried


class Operation:
    """Fails as told, then answers."""

    def __init__(self, *errors: Exception) -> None:
        self._errors = list(errors)
        self.calls = 0

    def __call__(self) -> str:
        self.calls += 1
        if self._errors:
            raise self._errors.pop(0)
        return "result"


def unavailable() -> RagError:
    return DatabaseUnavailableError("no connection")


def after(duration_ms: float) -> Deadline:
    return Deadline.after(duration_ms, time.monotonic)


def test_third_failure_is_the_callers() -> None:
    last = unavailable()
    operation = Operation(unavailable(), unavailable(), last, unavailable())
    with pytest.raises(DatabaseUnavailableError) as raised:
        retried(operation, deadline=after(60_000))
    assert raised.value is last
    assert operation.calls == len(WAITS_S) + 1


@pytest.mark.parametrize("error", [DatabaseTimeoutError("too slow"), ValueError("a bug")])
def test_other_errors_are_not_tried_again(error: Exception) -> None:
    operation = Operation(error)
    with pytest.raises(type(error)):
        retried(operation, deadline=after(60_000))
    assert operation.calls == 1


@pytest.mark.parametrize("left_ms", [0, WAITS_S[0] * 1000])
def test_no_retry_that_would_end_after_the_deadline(left_ms: float) -> None:
    now = 100.0
    operation = Operation(unavailable())
    with pytest.raises(DatabaseUnavailableError):
        retried(operation, deadline=Deadline.after(left_ms, lambda: now))
    assert operation.calls == 1


def test_retries_are_reported_without_what_was_asked() -> None:
    """The log of a retry names the error and the waits, and nothing of the operation."""
    reported: list[RetryDetails] = []

    def report(details: RetryDetails) -> None:
        reported.append(details)

    hooks = get_on_retry_hooks()
    set_on_retry_hooks([report])
    try:
        retried(Operation(unavailable()), deadline=after(60_000))
    finally:
        set_on_retry_hooks(hooks)

    (details,) = reported
    assert (details.args, details.kwargs, details.name) == ((), {}, "<context block>")
