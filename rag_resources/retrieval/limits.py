"""Divides the time of a retrieval, and decides which timeouts count as failures."""

from collections.abc import Callable

from rag_resources.core.deadline import Deadline
from rag_resources.core.errors import (
    DatabaseTimeoutError,
    DatabaseUnavailableError,
    DeadlineExceededError,
)
from rag_resources.resilience.breakers import is_failure

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
