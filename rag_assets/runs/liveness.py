"""Decides which runs are alive: those whose process holds their lock in the application's database.

The lock is implemented in `rag_resources.database.run_lock`. This module decides which runs take it
and ends runs that have lost it. Dagster cannot tell by itself: nothing reports that a machine or a
code server has died. Runs of other code locations take no lock and are left to Dagster.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import dagster as dg
from dagster import DagsterEvent, DagsterInstance, DagsterRun, DagsterRunStatus, DefaultRunLauncher
from dagster._core.execution.context.system import PlanOrchestrationContext
from dagster._core.execution.plan.plan import ExecutionPlan
from dagster._core.execution.retries import RetryMode
from dagster._core.executor.in_process import InProcessExecutor
from dagster._core.launcher.base import CheckRunHealthResult, WorkerStatus

from rag_assets.runs.storage import keep_connections
from rag_resources.database.locate import direct_url
from rag_resources.database.run_lock import held_run_locks, hold_run_lock, release_run_lock
from rag_resources.languages.messages import _
from rag_resources.settings import Settings, load_settings

RUN_LOCK = ".dagster/run_lock"
"""Tag of a run that takes its lock. The value is the run's id, because re-executions copy tags."""


def takes_lock(run: DagsterRun) -> bool:
    """Whether a run holds its lock as long as its process lives."""
    return run.tags.get(RUN_LOCK) == run.run_id


def lock_health(run: DagsterRun) -> CheckRunHealthResult | None:
    """Return whether a run lives, by its lock; None if it has not taken it yet.

    This is the same for every launcher, wherever the run is executed. Dagster's `run_monitoring`
    asks, and fails a run that takes longer than its start timeout to get its lock.

    Raises:
        DatabaseUnavailableError: The lock cannot be looked up now.
    """
    if not takes_lock(run):
        return None
    held = held_run_locks(direct_url(load_settings()), [run.run_id])
    return CheckRunHealthResult(WorkerStatus.RUNNING if held else WorkerStatus.NOT_FOUND)


class LocalRunLauncher(DefaultRunLauncher):
    """Dagster's own launcher; a run lives as long as it holds its lock in PostgreSQL."""

    @property
    def supports_check_run_worker_health(self) -> bool:
        """Tells the daemon to call `check_run_worker_health`."""
        return True

    def check_run_worker_health(self, run: DagsterRun) -> CheckRunHealthResult:
        """Return `NOT_FOUND` if a run has lost its lock."""
        return lock_health(run) or CheckRunHealthResult(WorkerStatus.RUNNING)


@contextmanager
def alive(run_id: str, settings: Settings) -> Iterator[Mapping[str, str]]:
    """Hold the lock of a run executed in this process, until its end is stored.

    Yields:
        The tags with which to create the run.
    """
    hold_run_lock(direct_url(settings), run_id)
    try:
        yield {RUN_LOCK: run_id}
    finally:
        release_run_lock(run_id)


class LockedExecutor(InProcessExecutor):
    """Dagster's in-process executor, for runs in their own process.

    The lock is kept after the last step, because the run's end is stored later. It is released when
    the process ends.

    Args:
        settings: Name the database of the lock.
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__(retries=RetryMode.ENABLED)
        self._settings = settings

    def execute(
        self, plan_context: PlanOrchestrationContext, execution_plan: ExecutionPlan
    ) -> Iterator[DagsterEvent]:
        """Execute the steps while holding the run's lock."""
        run_id = plan_context.run_id
        keep_connections(plan_context.instance)
        hold_run_lock(direct_url(self._settings), run_id)
        plan_context.instance.add_run_tags(run_id, {RUN_LOCK: run_id})
        yield from super().execute(plan_context, execution_plan)


def locked_executor(settings: Settings) -> dg.ExecutorDefinition:
    """Return the executor of all jobs: all steps in one process, which holds the run's lock."""

    @dg.executor(name="in_process")
    def in_process(_: dg.InitExecutorContext) -> LockedExecutor:
        """Execute all steps in one process."""
        return LockedExecutor(settings)

    return in_process


def end_dead_runs(instance: DagsterInstance) -> list[str]:
    """End runs that have lost their lock, which frees their pools; needed where no daemon runs.

    Those that a person canceled are marked as canceled, the others as failed.

    Returns:
        The ids of those runs.
    """
    begun = [DagsterRunStatus.NOT_STARTED, DagsterRunStatus.STARTED, DagsterRunStatus.CANCELING]
    listed = [run for run in instance.get_runs(dg.RunsFilter(statuses=begun)) if takes_lock(run)]
    held = held_run_locks(direct_url(load_settings()), [run.run_id for run in listed])
    ended = []
    for run in listed:
        # A run that ended since it was listed released its lock after its end was stored.
        now = instance.get_run_by_id(run.run_id)
        if run.run_id in held or now is None or now.status is not run.status:
            continue
        if run.status is DagsterRunStatus.CANCELING:
            instance.report_run_canceled(run)
        else:
            instance.report_run_failed(
                run,
                _(
                    "The process of this run is gone. Launch it again: only what is missing "
                    "is done."
                ),
            )
        ended.append(run.run_id)
    return ended
