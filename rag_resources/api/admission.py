"""A bounded queue in front of the models; requests that would be late are refused at once."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from http import HTTPStatus
from typing import TypeVar

from rag_resources.api.metrics import REFUSED
from rag_resources.api.problems import ProblemError, later, unavailable
from rag_resources.core.deadline import Deadline
from rag_resources.languages.messages import _
from rag_resources.retrieval.pipeline import DEADLINE_MS

PATIENCE = 0.5
"""Largest share of its deadline that a request may be expected to wait, as searching takes time."""

_WEIGHT = 0.1
"""Weight of the latest request in the moving average of the time that a request takes."""

ResultT = TypeVar("ResultT")


class Admission:
    """The threads that search, and the requests that wait for one.

    A request that would probably be late is refused at once: work on it would only make others
    late. The expected wait follows from the length of the queue and the time that requests take.

    Args:
        threads: Requests worked on at once.
        waiting: Requests that may wait, at most.
        has_database: Whether the database answers; what waited for it is told so.
    """

    def __init__(
        self, *, threads: int, waiting: int, has_database: Callable[[], bool] = lambda: True
    ) -> None:
        self._has_database = has_database
        self._threads = threads
        self._limit = threads + waiting
        self._admitted = 0
        self._usual_s = 0.0
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="search")

    async def run(self, arrived_at: float, work: Callable[[float], ResultT]) -> ResultT:
        """Run work in one of the threads.

        Args:
            arrived_at: When the request arrived, by `time.monotonic`; its deadline counts from it.
            work: Called with the milliseconds that are left.

        Raises:
            ProblemError: 503: the queue is full or too slow, or the deadline passed in it.
        """
        deadline = Deadline(arrived_at + DEADLINE_MS / 1000, time.monotonic)
        is_late = self._expected_wait_s() > PATIENCE * deadline.remaining_s
        if self._admitted >= self._limit or is_late:
            raise self._refusal()
        context = copy_context()

        def begun() -> ResultT:
            if deadline.expired:
                raise self._refusal()
            begun_at = time.monotonic()
            try:
                return context.run(work, deadline.remaining_ms)
            finally:
                self._usual_s += _WEIGHT * (time.monotonic() - begun_at - self._usual_s)

        self._admitted += 1
        future = asyncio.get_running_loop().run_in_executor(self._executor, begun)
        future.add_done_callback(self._done)
        return await future

    def _refusal(self) -> ProblemError:
        REFUSED.inc()
        if not self._has_database():
            return unavailable()
        return later(
            _("The service is busy. Try again in {seconds} s."),
            status=HTTPStatus.SERVICE_UNAVAILABLE,
        )

    def _expected_wait_s(self) -> float:
        waiting = self._admitted + 1 - self._threads
        return max(0, waiting) * self._usual_s / self._threads

    def _done(self, _: "asyncio.Future[ResultT]") -> None:
        self._admitted -= 1

    def close(self) -> None:
        """Wait for running work, and refuse further work."""
        self._executor.shutdown(wait=True, cancel_futures=True)
