"""Logs the progress of a long month in its run."""

from collections.abc import Callable
from logging import Logger
from time import perf_counter

from rag_resources.core.durations import duration
from rag_resources.core.types import TimeWindow
from rag_resources.languages.messages import _

TOLD_EVERY_S = 15.0


class MonthProgress:
    """Counts the processed notes of a month; logs from time to time how many are left.

    Args:
        log: The run's log.
        window: The month.
        count_left: Counts the notes that still need work; called only before a log message.
        clock: In seconds.
    """

    def __init__(
        self,
        log: Logger,
        window: TimeWindow,
        count_left: Callable[[], int],
        *,
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        self._log, self._window, self._clock = log, window, clock
        self._count_left = count_left
        self._done = 0
        self._started = self._told = clock()

    def __call__(self, notes: int) -> None:
        """Count processed notes."""
        self._done += notes
        now = self._clock()
        if not self._done or now - self._told < TOLD_EVERY_S:
            return
        self._told = now
        left = self._count_left()
        notes_per_second = self._done / (now - self._started)
        self._log.info(
            _(
                "{month}: {done} of {total} notes, {notes_per_second} notes/s, about {remaining} "
                "left"
            ).format(
                month=f"{self._window.start:%Y-%m}",
                done=_thousands(self._done),
                total=_thousands(self._done + left),
                notes_per_second=_rate(notes_per_second),
                remaining=duration(left / notes_per_second),
            )
        )


def _thousands(count: int) -> str:
    return f"{count:,}".replace(",", ".")


def _rate(per_second: float) -> str:
    if per_second >= 10:
        return _thousands(round(per_second))
    return f"{per_second:.1f}".replace(".", ",")
