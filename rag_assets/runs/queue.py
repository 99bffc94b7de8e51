"""The order in which queued runs start. How many run at once is set in `dagster.yaml`."""

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
    """Starts the newest months of a backfill first, because they are searched most.

    Dagster submits the oldest first, some seconds apart. So runs of a backfill are held back until
    all of them are submitted, and then queued with a priority by age. Other runs have priority 0
    and go first; a priority set by a person is kept.
    """

    def submit_run(self, context: SubmitRunContext) -> DagsterRun:
        """Queue a run; with a backfill's last run, also queue those held back."""
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
        """Return the runs of a backfill after which Dagster will submit more.

        Dagster stores which runs it will submit before it begins, and continues after a crash.
        """
        backfill = self._instance.get_backfill(name)
        return (backfill.reserved_run_ids or ())[:-1] if backfill else ()


def backfill_priority(month: str, now: datetime) -> int:
    """Return -1 for the current month, -2 for the previous one, and so on.

    Args:
        month: A partition key, `YYYY-MM-DD`.
        now: In UTC.
    """
    age = (now.year - int(month[:4])) * 12 + now.month - int(month[5:7])
    return -1 - max(0, age)
