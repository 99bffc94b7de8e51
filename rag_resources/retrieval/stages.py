"""Runs the stages of one retrieval: their time, their span, and what failed of them.

What the stages do is the pipeline's; percentiles over many retrievals are `retrieval.profile`.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import structlog

from rag_resources.core.errors import RagError
from rag_resources.telemetry import Attribute, span

_log = structlog.get_logger()


@dataclass
class Attempt:
    """How an optional stage went.

    Attributes:
        error: What it raised; None while it runs and if it worked.
    """

    error: Exception | None = None

    @property
    def failed(self) -> bool:
        """Whether the retrieval goes on without it."""
        return self.error is not None


class Stages:
    """The stages of one retrieval; may be shared by the threads that work for it.

    Args:
        config_hash: Of its configuration, for the log.
        query: Its question, which only a DEBUG record ever holds.
    """

    def __init__(self, *, config_hash: str, query: str) -> None:
        self._config_hash = config_hash
        self._query = query
        self._started = time.perf_counter()
        self._timings: dict[str, float] = {}
        self._failures: dict[str, BaseException] = {}
        self._lock = threading.Lock()

    @property
    def timings(self) -> dict[str, float]:
        """Milliseconds per stage as of now, in the order in which they first ended."""
        with self._lock:
            return dict(self._timings)

    @property
    def degraded(self) -> tuple[str, ...]:
        """The stages that failed as of now, in that order, none twice."""
        with self._lock:
            return tuple(self._failures)

    @property
    def failures(self) -> dict[str, BaseException]:
        """The first error of each stage that failed, as of now."""
        with self._lock:
            return dict(self._failures)

    @property
    def elapsed_ms(self) -> float:
        """Milliseconds since the retrieval began."""
        return (time.perf_counter() - self._started) * 1000

    @contextmanager
    def run(self, stage: str, **attributes: Attribute) -> Iterator[None]:
        """Add the time of a block to a stage, and trace it with some attributes.

        An error goes on to the caller.
        """
        started = time.perf_counter()
        try:
            with span(f"retrieval.{stage}", **attributes):
                yield
        finally:
            elapsed_ms = (time.perf_counter() - started) * 1000
            with self._lock:
                self._timings[stage] = self._timings.get(stage, 0.0) + elapsed_ms

    @contextmanager
    def optional(
        self, stage: str, *, component: str | None = None, **attributes: Attribute
    ) -> Iterator[Attempt]:
        """Run a stage that the retrieval can do without: an error degrades it and ends here.

        Args:
            stage: Its name in `timings` and `degraded`.
            component: What it depends on, as `database`; None if on nothing but the stage itself.
            attributes: Of its span.

        Yields:
            Whether it failed, once the block is left.

        Property: 35.
        """
        attempt = Attempt()
        try:
            with self.run(stage, **attributes):
                yield attempt
        except Exception as error:  # noqa: BLE001 -- whatever one stage raises, the others go on
            attempt.error = error
            self.degrade(stage, error, component=component or stage)

    def degrade(self, stage: str, error: BaseException, *, component: str) -> None:
        """Note a stage as failed, and log it the first time.

        The log tells an error's message only if it is ours: a driver's holds SQL, a library's
        may hold the question.
        """
        with self._lock:
            if stage in self._failures:
                return
            self._failures[stage] = error
        known = {"message": error.message} if isinstance(error, RagError) else {}
        failure = {
            "component": component,
            "stage": stage,
            "config_hash": self._config_hash,
            "elapsed_ms": round(self.elapsed_ms, 1),
        }
        _log.warning("retrieval_degraded", error=type(error).__name__, **known, **failure)
        _log.debug("retrieval_degraded_query", query=self._query, **failure)
