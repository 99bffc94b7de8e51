"""Circuit breakers: stop calling a dependency that keeps failing.

Retries belong to each provider, which knows which errors are worth one. Time limits belong in
`deadlines`.
"""

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

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
from rag_resources.languages.messages import _

_log = structlog.get_logger()

# Any other error of this product means that the dependency answered, even if it refused: for
# example because a question is invalid or a model is missing. A missing model must not open the
# breaker: finding out costs one quick request, its error says what to do, and an open breaker
# would hide that and outlast the repair by up to a minute.
_FAILURES = (
    DatabaseUnavailableError,
    InvalidAnswerError,
    InvalidEmbeddingError,
    ProviderUnavailableError,
)


def is_failure(error: Exception) -> bool:
    """Whether an error means that a dependency is down, broken or too slow.

    That includes errors that are not a `RagError`, and a deadline that passed during the call. A
    deadline that passed before the call began does not count.
    """
    if isinstance(error, DeadlineExceededError | DatabaseTimeoutError):
        return bool(error.context.get("begun", True))
    return isinstance(error, _FAILURES) or not isinstance(error, RagError)


class CircuitBreaker:
    """Stops calls to a dependency that has failed several times in a row.

    After `reset_s` one call is let through as a trial, and its outcome closes the breaker or
    opens it again. If the trial has not ended after another `reset_s`, a new one is allowed.

    Calls run outside the lock. (`pybreaker` 1.4.1 holds its lock during a call, so all callers of
    a slow dependency queue past their deadlines.) Safe to use from any number of threads.

    Args:
        name: The dependency's name, such as "embedding:e5_small"; shown to users.
        failures: Consecutive failures that open it, >= 1.
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
        # Incremented when the breaker opens and when a trial starts. The outcome of a call from
        # an earlier epoch is ignored.
        self._epoch = 0

    @property
    def is_closed(self) -> bool:
        """Whether every call is let through."""
        with self._lock:
            return self._retry_at is None

    @contextmanager
    def guard(
        self, counts: Callable[[Exception], bool] = is_failure, *, insist: bool = False
    ) -> Iterator[None]:
        """Treat the block as one call to the dependency, and count its outcome.

        Args:
            counts: Whether an error is a failure of the dependency. Any other error counts as
                neither failure nor success.
            insist: Run the block even if the breaker is open; it is then a trial. For callers
                without a fallback.

        Raises:
            DependencyOpenError: The breaker is open; the block does not run.
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
        """Record a success seen elsewhere: it resets the failure count, but closes no breaker."""
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
                # A caller that insists while a trial is under way joins that trial.
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
        """Let the next call be the trial, since this one ended without an outcome."""
        with self._lock:
            if epoch == self._epoch and self._on_trial:
                self._retry_at = self._clock()
                self._on_trial = False

    def _refusal(self, wait_s: float) -> DependencyOpenError:
        message = _(
            "“{dependency}” has failed several times in a row; it will be tried again in less "
            "than {seconds} s."
        ).format(dependency=self.name, seconds=math.ceil(wait_s))
        return DependencyOpenError(message, dependency=self.name)


class Breakers:
    """The circuit breakers of all dependencies, by name, each created at its first use.

    Args:
        make: Creates the breaker of a name.
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

    def close(self) -> None:
        """Forget all failures, so that every dependency is tried again."""
        with self._lock:
            self._made.clear()
