"""Retries of database reads when the connection fails, within a deadline."""

from collections.abc import Callable
from typing import TypeVar

import stamina

from rag_resources.core.deadline import Deadline
from rag_resources.core.errors import DatabaseUnavailableError

WAITS_S = (0.05, 0.5)
"""Waits before the second attempt and before the third, which is the last."""

_Result = TypeVar("_Result")


def retried(operation: Callable[[], _Result], *, deadline: Deadline) -> _Result:
    """Call an operation, and retry it if the database was unavailable: at most three attempts.

    Use it for reads only: after a connection is lost during a commit, nobody knows whether the
    commit succeeded. There is no retry if it could only start after the deadline. Stamina logs
    each retry with its error. The log never contains the question, because the operation takes no
    arguments.

    Args:
        operation: Opens its own snapshot, under the same deadline.
        deadline: Latest time at which a retry may start.

    Raises:
        DatabaseUnavailableError: The last attempt failed too.
    """
    try:
        return operation()
    except DatabaseUnavailableError as error:
        return _retried(operation, error, deadline)


def _retried(
    operation: Callable[[], _Result], first: DatabaseUnavailableError, deadline: Deadline
) -> _Result:
    """Retry an operation whose first attempt failed; apart, since Stamina is slow to set up."""
    waits_s = iter(WAITS_S)
    failed: list[DatabaseUnavailableError] = [first]

    def attempt() -> _Result:
        if failed:
            raise failed.pop()
        return operation()

    def pause(error: Exception) -> bool | float:
        if not isinstance(error, DatabaseUnavailableError):
            return False
        wait_s = next(waits_s, None)
        return wait_s if wait_s and wait_s < deadline.remaining_s else False

    return stamina.RetryingCaller(attempts=len(WAITS_S) + 1, timeout=None)(pause, attempt)
