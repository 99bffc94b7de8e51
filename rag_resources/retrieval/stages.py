"""Runs the stages of one retrieval and records their times and failures.

The work of the stages is in the pipeline.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import structlog

from rag_resources.core.errors import RagError

_log = structlog.get_logger()


@dataclass
class Attempt:
    """The outcome of an optional stage.

    Attributes:
        error: What the stage raised; None while it runs or if it succeeded.
    """

    error: Exception | None = None

    @property
    def failed(self) -> bool:
        """Whether the retrieval continues without this stage."""
        return self.error is not None


class Stages:
    """The stages of one retrieval; may be shared by its threads.

    Args:
        config_hash: Returns its configuration's hash, for the log; called only after a failure.
        query: Its question, which is logged only at level DEBUG.
    """

    def __init__(self, *, config_hash: Callable[[], str], query: str) -> None:
        self._config_hash = config_hash
        self._query = query
        self._started = time.perf_counter()
        self._timings: dict[str, float] = {}
        self._failures: dict[str, BaseException] = {}
        self._lock = threading.Lock()

    @property
    def timings(self) -> dict[str, float]:
        """Return the milliseconds of each stage so far, in order of first completion."""
        with self._lock:
            return dict(self._timings)

    @property
    def degraded(self) -> tuple[str, ...]:
        """Return the stages that have failed so far, in order of failure, without repeats."""
        with self._lock:
            return tuple(self._failures)

    @property
    def failures(self) -> dict[str, BaseException]:
        """Return the first error of each stage that has failed so far."""
        with self._lock:
            return dict(self._failures)

    @property
    def elapsed_ms(self) -> float:
        """Milliseconds since the retrieval began."""
        return (time.perf_counter() - self._started) * 1000

    @contextmanager
    def run(self, stage: str) -> Iterator[None]:
        """Add the duration of a block to a stage; errors are passed on to the caller."""
        started = time.perf_counter()
        try:
            yield
        finally:
            elapsed_ms = (time.perf_counter() - started) * 1000
            with self._lock:
                self._timings[stage] = self._timings.get(stage, 0.0) + elapsed_ms

    @contextmanager
    def optional(self, stage: str, *, component: str | None = None) -> Iterator[Attempt]:
        """Run a stage that the retrieval can do without; an error is recorded and not raised.

        Args:
            stage: Its name in `timings` and `degraded`.
            component: Its dependency, such as `database`; None if it depends on nothing else.

        Yields:
            The attempt, which says after the block whether it failed.

        Property: 35.
        """
        attempt = Attempt()
        try:
            with self.run(stage):
                yield attempt
        except Exception as error:  # noqa: BLE001 -- the other stages run after any error
            attempt.error = error
            self.degrade(stage, error, component=component or stage)

    def degrade(self, stage: str, error: BaseException, *, component: str) -> None:
        """Record a stage as failed, and log that the first time.

        The message of an error is logged only if the error is our own: a driver's message contains
        SQL, and a library's may contain the question.
        """
        with self._lock:
            if stage in self._failures:
                return
            self._failures[stage] = error
        known = {"message": error.message} if isinstance(error, RagError) else {}
        failure = {
            "component": component,
            "stage": stage,
            "config_hash": self._config_hash(),
            "elapsed_ms": round(self.elapsed_ms, 1),
        }
        _log.warning("retrieval_degraded", error=type(error).__name__, **known, **failure)
        _log.debug("retrieval_degraded_query", query=self._query, **failure)
