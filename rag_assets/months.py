"""Works through the months of a run so that a bad month fails alone."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import dagster as dg

from rag_assets.partitions import month_window
from rag_resources.core.errors import DatabaseUnavailableError, ProviderUnavailableError, RagError
from rag_resources.core.messages import Message
from rag_resources.core.types import TimeWindow

SHOWN_PROBLEMS = 5

MonthEvents = Iterator[dg.AssetMaterialization | dg.MaterializeResult[None]]


@dataclass(frozen=True)
class MonthOutcome:
    """What became of a month: its counts, and what went wrong in it, a line each."""

    counts: Mapping[str, Any]
    problems: list[str] = field(default_factory=list)


def _attempt(
    context: dg.AssetExecutionContext, work: Callable[[TimeWindow], MonthOutcome], key: str
) -> MonthOutcome:
    """Do the work of a month; only what would fail every month is raised."""
    try:
        return work(month_window(key))
    except (DatabaseUnavailableError, ProviderUnavailableError):
        raise
    except RagError as error:
        return MonthOutcome({}, [error.message])
    except Exception as error:  # a defect, too, costs its own month only
        context.log.exception("%s", key[:7])
        reason = str(error).partition("\n")[0]
        return MonthOutcome({}, [f"{type(error).__name__}: {reason}"])


def materialize_months(
    context: dg.AssetExecutionContext,
    work: Callable[[TimeWindow], MonthOutcome],
    finish: Callable[[], None] = lambda: None,
) -> MonthEvents:
    """Do the work of every month of a run, newest first.

    Good months are materialised with their counts; if any was bad the run fails and names the bad
    ones, so that a re-execution from failure runs only those. Once the database or a model does not
    answer, the months that are left are not tried.

    Args:
        context: Of the run.
        work: Does a month.
        finish: Does what comes once after the months, good or bad; not if the database is lost.

    Yields:
        What Dagster is to record. It loses what `context.log_event` was told by a step that fails.

    Raises:
        dagster.Failure: Some month was bad.
    """
    good: dict[str, Mapping[str, Any]] = {}
    bad: dict[str, str] = {}
    down: RagError | None = None
    for key in sorted(context.partition_keys, reverse=True):
        started = perf_counter()
        try:
            outcome = MonthOutcome({}, [down.message]) if down else _attempt(context, work, key)
        except (DatabaseUnavailableError, ProviderUnavailableError) as error:
            down = error
            outcome = MonthOutcome({}, [error.message])
        seconds = perf_counter() - started
        if outcome.problems:
            bad[key] = "; ".join(outcome.problems[:SHOWN_PROBLEMS])
            context.log.error("%s: %s", key[:7], bad[key])
        else:
            good[key] = {**outcome.counts, "seconds": seconds}
            context.log.info("%s: %s in %.1f s", key[:7], dict(outcome.counts), seconds)
    if bad:
        for key, counts in good.items():
            yield dg.AssetMaterialization(context.asset_key, partition=key, metadata=dict(counts))
    if not isinstance(down, DatabaseUnavailableError):
        finish()
    if bad:
        described = "\n".join(f"{key[:7]}: {problem}" for key, problem in bad.items())
        raise dg.Failure(
            Message.MONTHS_FAILED.format(count=len(bad), months=described), allow_retries=False
        )
    for key, counts in good.items():
        context.add_asset_metadata(dict(counts), partition_key=key)
    yield dg.MaterializeResult()
