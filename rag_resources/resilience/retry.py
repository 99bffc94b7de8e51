"""Trying again when the database cannot be reached, as long as there is time for it."""

from collections.abc import Callable
from typing import TypeVar

import stamina

from rag_resources.core.deadline import Deadline
from rag_resources.core.errors import DatabaseUnavailableError

WAITS_S = (0.05, 0.5)
"""Before the second attempt, and before the third and last."""

_Result = TypeVar("_Result")


def retried(operation: Callable[[], _Result], *, deadline: Deadline) -> _Result:
    """Call an operation, and again if the database was unavailable: three times in all.

    Only for what reads: a connection lost at a commit leaves open whether it was done. An attempt
    that could only start after the deadline is not waited for. Stamina logs each retry, with the
    error but, since the operation takes no arguments, nothing of what was asked.

    Args:
        operation: Opens its own snapshot, under the same deadline.
        deadline: Until when.

    Raises:
        DatabaseUnavailableError: The last attempt's.
    """
    waits_s = iter(WAITS_S)

    def pause(error: Exception) -> bool | float:
        if not isinstance(error, DatabaseUnavailableError):
            return False
        wait_s = next(waits_s, None)
        return wait_s if wait_s and wait_s < deadline.remaining_s else False

    return stamina.RetryingCaller(attempts=len(WAITS_S) + 1, timeout=None)(pause, operation)
