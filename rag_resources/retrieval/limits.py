"""How the time of a retrieval is shared out, and who is to blame when a share was not enough."""

from collections.abc import Callable

from rag_resources.core.deadline import Deadline
from rag_resources.core.errors import (
    DatabaseTimeoutError,
    DatabaseUnavailableError,
    DeadlineExceededError,
)
from rag_resources.resilience.breakers import is_failure

FAIR_MS = 200.0
"""Whoever had less and was not done is not to blame: the caller was in a hurry."""

_FOR_WANT_OF_TIME = (DatabaseTimeoutError, DatabaseUnavailableError, DeadlineExceededError)
"""The second, too: a connection takes its time to be made, and a short deadline does not wait."""


def share(deadline: Deadline, part: float) -> Deadline:
    """Return the deadline of something that may take a part, in [0, 1], of the time left."""
    return deadline.within(deadline.remaining_ms * part)


def blames(deadline: Deadline) -> Callable[[Exception], bool]:
    """Return what counts, for its circuit breaker, as a failure of what has until a deadline.

    Otherwise a few callers with too short a deadline would close it to all others.
    """
    if deadline.remaining_ms >= FAIR_MS:
        return is_failure
    return lambda error: is_failure(error) and not isinstance(error, _FOR_WANT_OF_TIME)
