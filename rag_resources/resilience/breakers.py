"""Circuit breakers: how often what keeps failing is tried.

Retries belong to each provider, which knows what is worth one; how long a call may take is the
business of `deadlines`.
"""

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum

import structlog

from rag_resources.core.errors import (
    DatabaseTimeoutError,
    DatabaseUnavailableError,
    DeadlineExceededError,
    DependencyOpenError,
    InvalidAnswerError,
    InvalidEmbeddingError,
    ProviderUnavailableError,
    RagError,
)
from rag_resources.core.messages import Message

_log = structlog.get_logger()

# Everything else of ours says that the dependency answered, if only to refuse: a question or a
# parameter that is invalid, a model that is missing. A missing model in particular stays missing
# until a person pulls it, costs one quick request to find out, and says what to do about it,
# which an open breaker would hide, for a minute longer than needed.
_FAILURES = (
    DatabaseUnavailableError,
    InvalidAnswerError,
    InvalidEmbeddingError,
    ProviderUnavailableError,
)


def is_failure(error: Exception) -> bool:
    """Whether an error says that a dependency is down, broken or too slow.

    So do those that nobody translated into ours, and a deadline that passed during the call, but
    not one that passed before it was begun.
    """
    if isinstance(error, DeadlineExceededError | DatabaseTimeoutError):
        return bool(error.context.get("begun", True))
    return isinstance(error, _FAILURES) or not isinstance(error, RagError)


class BreakerState(StrEnum):
    """What a circuit breaker does with the next call."""

    CLOSED = "closed"
    """Lets it through."""
    OPEN = "open"
    """Refuses it."""
    HALF_OPEN = "half_open"
    """Lets it through as a trial, unless one is under way."""


class CircuitBreaker:
    """Keeps calls from a dependency that has failed several times in a row.

    After `reset_s` one call is let through as a trial, and its outcome closes the breaker or
    opens it again; a trial that never ends is replaced after as long again. Calls run outside the
    lock: that of `pybreaker` (1.4.1) is held for the whole of a call, so that all callers of a
    slow dependency queue, past their deadlines. Safe to use from any number of threads.

    Args:
        name: Of the dependency, such as "embedding:e5_small"; shown to users.
        failures: How many in a row open it, >= 1.
        reset_s: How long it stays open, in seconds.
        clock: Monotonic, in seconds.
    """

    def __init__(
        self,
        name: str,
        *,
        failures: int = 5,
        reset_s: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self._limit = failures
        self._reset_s = reset_s
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        # When the next trial is due; None while closed.
        self._retry_at: float | None = None
        self._on_trial = False
        # A call whose outcome comes after the breaker opened, or after its trial was replaced,
        # belongs to an earlier epoch and says nothing about now.
        self._epoch = 0

    @property
    def state(self) -> BreakerState:
        """What it does with the next call."""
        with self._lock:
            if self._retry_at is None:
                return BreakerState.CLOSED
            if self._on_trial or self._clock() >= self._retry_at:
                return BreakerState.HALF_OPEN
            return BreakerState.OPEN

    @property
    def is_closed(self) -> bool:
        """Whether every call is let through."""
        return self.state is BreakerState.CLOSED

    @contextmanager
    def guard(
        self, counts: Callable[[Exception], bool] = is_failure, *, insist: bool = False
    ) -> Iterator[None]:
        """Make the calls of a block count as one of the dependency.

        Args:
            counts: Whether an error is a failure of the dependency; one that is not is neither
                a failure nor a success.
            insist: Call it whatever its state, as a trial while it is open: for who has nothing
                else to turn to.

        Raises:
            DependencyOpenError: The dependency is not to be called; the block does not run.
        """
        epoch = self._admit(insist=insist)
        try:
            yield
        except BaseException as error:
            if isinstance(error, Exception) and counts(error):
                self._failed(epoch, error)
            else:
                self._abandoned(epoch)
            raise
        self._answered(epoch)

    def succeeded(self) -> None:
        """Note a success seen elsewhere; it ends a row of failures, but closes nothing."""
        with self._lock:
            if self._retry_at is None:
                self._failures = 0

    def _admit(self, *, insist: bool) -> int:
        with self._lock:
            if self._retry_at is not None:
                now = self._clock()
                is_due = now >= self._retry_at
                if not is_due and not insist:
                    raise self._refusal(self._retry_at - now)
                # Who insists while a trial is under way takes part in it.
                if is_due or not self._on_trial:
                    self._retry_at = now + self._reset_s
                    self._on_trial = True
                    self._epoch += 1
            return self._epoch

    def _answered(self, epoch: int) -> None:
        with self._lock:
            if epoch != self._epoch:
                return
            closed = self._on_trial
            self._failures = 0
            self._retry_at = None
            self._on_trial = False
        if closed:
            _log.info("breaker_closed", dependency=self.name)

    def _failed(self, epoch: int, error: Exception) -> None:
        with self._lock:
            if epoch != self._epoch:
                return
            self._failures += 1
            failures = self._failures
            if failures < self._limit:
                return
            self._retry_at = self._clock() + self._reset_s
            self._on_trial = False
            self._epoch += 1
        _log.warning(
            "breaker_opened",
            dependency=self.name,
            failures=failures,
            reset_s=self._reset_s,
            error=type(error).__name__,
        )

    def _abandoned(self, epoch: int) -> None:
        """Let the next call be the trial instead of one that has told nothing."""
        with self._lock:
            if epoch == self._epoch and self._on_trial:
                self._retry_at = self._clock()
                self._on_trial = False

    def _refusal(self, wait_s: float) -> DependencyOpenError:
        message = Message.DEPENDENCY_OPEN.format(dependency=self.name, seconds=math.ceil(wait_s))
        return DependencyOpenError(message, dependency=self.name)


class Breakers:
    """The circuit breakers of all dependencies, by name, each made when it is first asked for.

    Args:
        make: Makes the breaker of a name.
    """

    def __init__(self, make: Callable[[str], CircuitBreaker] = CircuitBreaker) -> None:
        self._make = make
        self._made: dict[str, CircuitBreaker] = {}
        self._lock = threading.Lock()

    def __getitem__(self, name: str) -> CircuitBreaker:
        with self._lock:
            if name not in self._made:
                self._made[name] = self._make(name)
            return self._made[name]
