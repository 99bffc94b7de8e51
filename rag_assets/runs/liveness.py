"""Which runs are alive: those whose process holds their lock in the application's database.

The lock itself is `rag_resources.database.run_lock`. Here: which runs take it, and what becomes of
a run without its lock. Runs of other code locations, which take none, are left to Dagster.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import dagster as dg
from dagster import DagsterEvent, DagsterInstance, DagsterRun, DagsterRunStatus, RunsFilter
from dagster._core.execution.context.system import PlanOrchestrationContext
from dagster._core.execution.plan.plan import ExecutionPlan
from dagster._core.execution.retries import RetryMode
from dagster._core.executor.in_process import InProcessExecutor
from dagster._core.launcher.base import WorkerStatus
from dagster._core.storage.dagster_run import IN_PROGRESS_RUN_STATUSES

from rag_resources.core.messages import Message
from rag_resources.database.locate import database_url
from rag_resources.database.run_lock import hold_run_lock, release_run_lock
from rag_resources.settings import Settings

RUN_LOCK = ".dagster/run_lock"
"""Tag of a run that takes its lock: its own id, since a run executed again inherits the tags."""

START_PATIENCE = timedelta(minutes=2)
"""How long a run may be about to start before it is asked whether anything will start it."""


def takes_lock(run: DagsterRun) -> bool:
    """Whether a run holds its lock for as long as its process lives."""
    return run.tags.get(RUN_LOCK) == run.run_id


@contextmanager
def alive(run_id: str, settings: Settings) -> Iterator[Mapping[str, str]]:
    """Hold the lock of a run that this process executes from its creation to its stored end.

    Yields:
        The tags to create the run with.
    """
    hold_run_lock(database_url(settings), run_id)
    try:
        yield {RUN_LOCK: run_id}
    finally:
        release_run_lock(run_id)


class LockedExecutor(InProcessExecutor):
    """Dagster's in-process executor, for runs in a process of their own.

    The lock is not given up when the last step is done: the end of the run is stored after that.
    It ends with the process.

    Args:
        settings: Name the database of the lock.
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__(retries=RetryMode.ENABLED)
        self._settings = settings

    def execute(
        self, plan_context: PlanOrchestrationContext, execution_plan: ExecutionPlan
    ) -> Iterator[DagsterEvent]:
        """Execute the steps while the run holds its lock."""
        run_id = plan_context.run_id
        hold_run_lock(database_url(self._settings), run_id)
        plan_context.instance.add_run_tags(run_id, {RUN_LOCK: run_id})
        yield from super().execute(plan_context, execution_plan)


def locked_executor(settings: Settings) -> dg.ExecutorDefinition:
    """Return the executor of all jobs: every step in one process, which holds the run's lock."""

    @dg.executor(name="in_process")
    def in_process(_: dg.InitExecutorContext) -> LockedExecutor:
        """All steps in one process."""
        return LockedExecutor(settings)

    return in_process


def end_dead_runs(instance: DagsterInstance) -> list[str]:
    """Report runs that nothing executes as failed, which frees their pools.

    The daemon does so by itself for runs that have started; this is for whoever begins without a
    daemon, and for runs whose process was gone before they started.

    Returns:
        Their ids.
    """
    launcher = instance.run_launcher
    if not launcher.supports_check_run_worker_health:
        return []
    ended = []
    statuses = [*IN_PROGRESS_RUN_STATUSES, DagsterRunStatus.CANCELING]
    for record in instance.get_run_records(RunsFilter(statuses=statuses)):
        run = record.dagster_run
        starting = run.status is DagsterRunStatus.STARTING
        if starting and datetime.now(UTC) - record.update_timestamp < START_PATIENCE:
            continue
        if launcher.check_run_worker_health(run).status is WorkerStatus.NOT_FOUND:
            instance.report_run_failed(run, Message.RUN_DEAD)
            ended.append(run.run_id)
    return ended
