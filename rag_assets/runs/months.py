"""Processes the months of a run, so that a bad month fails alone and its page says why."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from logging import Logger
from time import perf_counter
from typing import Any, Protocol
from uuid import UUID

import dagster as dg

from rag_assets.metadata import labelled
from rag_assets.partitions import month_window
from rag_resources.application.indexing import Indexing
from rag_resources.core.durations import duration
from rag_resources.core.errors import DatabaseUnavailableError, ProviderUnavailableError, RagError
from rag_resources.core.tables import markdown_table
from rag_resources.core.types import TimeWindow
from rag_resources.languages.labels import label
from rag_resources.languages.messages import _
from rag_resources.store.failures import Failure

NAMED_NOTES = 5


LISTED_NOTES = 100


FAILED_NOTES = label("failed_notes")
"""The metadata field of a failed run or month in which only notes failed."""


MonthEvents = Iterator[dg.AssetMaterialization | dg.AssetObservation | dg.MaterializeResult[None]]


@dataclass(frozen=True)
class MonthOutcome:
    """The outcome of a month.

    Attributes:
        counts: By name; the UI plots them.
        per_second: Amounts whose speed is shown, by unit.
        failures: The notes that failed, one entry each, by their names for people.
        reason: Why the month was not processed; empty if it was.
        seconds: How long it took; None stands for the time measured around the work.
    """

    counts: Mapping[str, Any]
    per_second: Mapping[str, int] = field(default_factory=dict)
    failures: Sequence[Failure] = ()
    reason: str = ""
    seconds: float | None = None

    @property
    def is_good(self) -> bool:
        """Whether the month is completely done."""
        return not self.failures and not self.reason

    @property
    def problem(self) -> str:
        """Return what went wrong, in one line that names the first notes."""
        if self.reason:
            return self.reason
        shown = "; ".join(
            f"{failure.external_id}: {failure.error}" for failure in self.failures[:NAMED_NOTES]
        )
        more = len(self.failures) - NAMED_NOTES
        return _("{shown}; and {more} more").format(shown=shown, more=more) if more > 0 else shown

    def metadata(self) -> dict[str, Any]:
        """Return the metadata of the month's page; work not done has no speed."""
        seconds = self.seconds or 0.0
        speeds = {
            f"{unit}_per_second": amount / seconds
            for unit, amount in self.per_second.items()
            if amount and seconds
        }
        return labelled({**self.counts, "seconds": seconds, **speeds})


class Indexed(Protocol):
    """The attributes common to the reports of chunking and embedding."""

    notes: int
    failed: list[Failure]


def indexed_month(
    indexing: Indexing,
    window: TimeWindow,
    report: Indexed,
    counts: Mapping[str, Any],
    per_second: Mapping[str, int],
) -> MonthOutcome:
    """Return the outcome of a month: failed notes, and notes that needed no work.

    Args:
        indexing: Reads the month's notes.
        window: The month.
        report: The report of the work on the month.
        counts: The amounts of work done, by name.
        per_second: Amounts whose speed is shown, by unit.
    """
    failed: dict[UUID, Failure] = {}
    for failure in report.failed:
        failed.setdefault(failure.note_id, failure)
    total, names = indexing.count_notes(window), indexing.external_ids(failed)
    # A note deleted in the meantime needs no more work.
    failures = [
        replace(failure, external_id=names[note])
        for note, failure in failed.items()
        if note in names
    ]
    # An edited note may have been processed twice, so the difference can be negative.
    unchanged = max(0, total - report.notes - len(failures))
    counted = {**counts, "unchanged": unchanged, "failed": len(failures)}
    return MonthOutcome(counted, per_second, failures)


def materialize_months(
    context: dg.AssetExecutionContext,
    work: Callable[[TimeWindow], MonthOutcome],
    finish: Callable[[], None] = lambda: None,
) -> MonthEvents:
    """Process every month of a run, newest first.

    Good months are materialised with their counts. If a month is bad, the run fails and names it,
    so that re-execution from failure runs only the bad months. A bad month is recorded as an
    observation with its counts and failed notes. When the database or a model is down, the
    remaining months are not tried.

    Args:
        context: The context of the run.
        work: Processes one month.
        finish: Runs once after the months, unless the database is lost. If it fails the run fails,
            but the good months stay good.

    Yields:
        Dagster's events. They are not sent to `context.log_event`, because those of a failing step
        would be lost.

    Raises:
        dagster.Failure: A month was bad. If only notes failed, its metadata `FAILED_NOTES`
            has their number.
    """
    outcomes: dict[str, MonthOutcome] = {}
    down: RagError | None = None
    for key in sorted(context.partition_keys, reverse=True):
        try:
            outcome = (
                MonthOutcome({}, reason=down.message) if down else _attempt(context, work, key)
            )
        except (DatabaseUnavailableError, ProviderUnavailableError) as error:
            down = error
            outcome = MonthOutcome({}, reason=error.message)
        outcomes[key] = outcome
        _tell(context, key, outcome)
    bad = {key: outcome for key, outcome in outcomes.items() if not outcome.is_good}
    problems = [f"{key[:7]}: {outcome.problem}" for key, outcome in bad.items()]
    unfinished = "" if isinstance(down, DatabaseUnavailableError) else _attempt_end(context, finish)
    if unfinished:
        problems.append(
            _("What comes after the months could not be done: {reason}").format(reason=unfinished)
        )
    if problems:
        # Newest last, because the asset's page shows the last one.
        for key, outcome in sorted(outcomes.items()):
            yield _event(context.asset_key, key, outcome)
        notes = sum(len(outcome.failures) for outcome in bad.values())
        only_notes = not unfinished and all(outcome.failures for outcome in bad.values())
        raise dg.Failure(
            _("Months that are not complete: {count}. The others are done.\n{months}").format(
                count=len(bad), months="\n".join(problems)
            ),
            metadata={FAILED_NOTES: notes} if only_notes else None,
            allow_retries=False,
        )
    for key, outcome in outcomes.items():
        context.add_asset_metadata(outcome.metadata(), partition_key=key)
    yield dg.MaterializeResult()


def _attempt(
    context: dg.AssetExecutionContext, work: Callable[[TimeWindow], MonthOutcome], key: str
) -> MonthOutcome:
    """Process a month and time it; raise only errors that would hit every month."""
    started = perf_counter()
    try:
        outcome = work(month_window(key))
    except (DatabaseUnavailableError, ProviderUnavailableError):
        raise
    except RagError as error:
        outcome = MonthOutcome({}, reason=error.message)
    except Exception as error:  # a bug fails only its own month, too
        context.log.exception("%s", key[:7])
        outcome = MonthOutcome({}, reason=_unforeseen(error))
    if outcome.seconds is None:
        outcome = replace(outcome, seconds=perf_counter() - started)
    return outcome


def _attempt_end(context: dg.AssetExecutionContext, finish: Callable[[], None]) -> str:
    """Run the work after the months; return why it failed, or an empty text."""
    try:
        finish()
    except RagError as error:
        return error.message
    except Exception as error:  # a bug there fails no month
        context.log.exception("%s", context.asset_key.to_user_string())
        return _unforeseen(error)
    return ""


def _unforeseen(error: Exception) -> str:
    """Describe an error that is not ours in one line."""
    first, *_ = str(error).splitlines() or [""]
    return f"{type(error).__name__}: {first}"


def _tell(context: dg.AssetExecutionContext, key: str, outcome: MonthOutcome) -> None:
    """Log how a month ended."""
    if outcome.is_good:
        counts = ", ".join(
            f"{name}: {count:g}" if isinstance(count, float) else f"{name}: {count}"
            for name, count in labelled(outcome.counts).items()
            if isinstance(count, int | float)  # Not the tables, which the UI shows.
        )
        context.log.info(
            _("{month}: done in {seconds:.1f} s ({counts})").format(
                month=key[:7], seconds=outcome.seconds, counts=counts
            )
        )
    else:
        context.log.error("%s: %s", key[:7], outcome.problem)


def _event(
    asset: dg.AssetKey, key: str, outcome: MonthOutcome
) -> dg.AssetMaterialization | dg.AssetObservation:
    """Return a materialisation for a good month, an observation with the problem for a bad one."""
    if outcome.is_good:
        return dg.AssetMaterialization(asset, partition=key, metadata=outcome.metadata())
    metadata = outcome.metadata()
    if outcome.failures:
        metadata[FAILED_NOTES] = dg.MetadataValue.md(_table(outcome.failures[:LISTED_NOTES]))
    return dg.AssetObservation(asset, partition=key, description=outcome.problem, metadata=metadata)


def _table(failures: Sequence[Failure]) -> str:
    rows = ((failure.external_id, failure.note_id, failure.error) for failure in failures)
    return markdown_table(_("| note | identifier | reason |"), rows)


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
