"""In which order queued runs start. How many run at a time is said in `dagster.yaml`."""

from collections.abc import Sequence
from datetime import UTC, datetime

from dagster import (
    DagsterInstance,
    DagsterRun,
    DagsterRunStatus,
    QueuedRunCoordinator,
    RunsFilter,
    SubmitRunContext,
)

_BACKFILL, _PRIORITY = "dagster/backfill", "dagster/priority"
_LAST_MONTH, _MONTH = "dagster/asset_partition_range_end", "dagster/partition"


class NewestMonthsFirst(QueuedRunCoordinator[DagsterInstance]):
    """Starts the runs of a backfill with the newest months, which are searched most.

    Dagster submits the oldest first, some seconds apart: so they are held back until all of them
    are there, and queued with a priority by age. What is no backfill has priority 0 and goes before
    all of them; a priority that somebody gave stays.
    """

    def submit_run(self, context: SubmitRunContext) -> DagsterRun:
        """Queue a run, and with the last run of a backfill those held back."""
        run = context.dagster_run
        self._prioritise(run)
        name = run.tags.get(_BACKFILL)
        if not name:
            return super().submit_run(context)
        if run.run_id in self._followed(name):
            return run
        queued = super().submit_run(context)
        held = RunsFilter(statuses=[DagsterRunStatus.NOT_STARTED], tags={_BACKFILL: name})
        for other in self._instance.get_runs(held):
            super().submit_run(SubmitRunContext(other, context.workspace))
        return queued

    def _prioritise(self, run: DagsterRun) -> None:
        month = run.tags.get(_LAST_MONTH) or run.tags.get(_MONTH)
        if month and _BACKFILL in run.tags and _PRIORITY not in run.tags:
            priority = backfill_priority(month, datetime.now(UTC))
            self._instance.add_run_tags(run.run_id, {_PRIORITY: str(priority)})

    def _followed(self, name: str) -> Sequence[str]:
        """The runs of a backfill after which Dagster is to submit others.

        It notes what it is to submit before it begins, and goes on with it after a crash.
        """
        backfill = self._instance.get_backfill(name)
        return (backfill.reserved_run_ids or ())[:-1] if backfill else ()


def backfill_priority(month: str, now: datetime) -> int:
    """Return -1 for the present month, -2 for the one before, and so on.

    Args:
        month: A partition key, `YYYY-MM-DD`.
        now: In UTC.
    """
    age = (now.year - int(month[:4])) * 12 + now.month - int(month[5:7])
    return -1 - max(0, age)
