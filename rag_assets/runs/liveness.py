"""Decides which runs are alive: those whose process holds their lock in the application's database.

The lock is implemented in `rag_resources.database.run_lock`. This module decides which runs take it
and ends runs that have lost it. Runs of other code locations take no lock and are left to Dagster.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import dagster as dg
from dagster import DagsterEvent, DagsterInstance, DagsterRun, DagsterRunStatus, RunsFilter
from dagster._core.execution.api import ExecuteRunWithPlanIterable
from dagster._core.execution.context.system import PlanExecutionContext, PlanOrchestrationContext
from dagster._core.execution.context_creation_job import PlanExecutionContextManager
from dagster._core.execution.plan.plan import ExecutionPlan
from dagster._core.execution.retries import RetryMode
from dagster._core.executor.in_process import InProcessExecutor, inprocess_execution_iterator
from dagster._core.launcher.base import CheckRunHealthResult, WorkerStatus
from dagster._core.storage.dagster_run import IN_PROGRESS_RUN_STATUSES

from rag_assets.runs.failures import write_in_words
from rag_assets.runs.storage import keep_connections
from rag_resources.database.locate import direct_url
from rag_resources.database.run_lock import held_run_locks, hold_run_lock, release_run_lock
from rag_resources.languages.messages import _
from rag_resources.settings import Settings, load_settings

RUN_LOCK = ".dagster/run_lock"
"""Tag of a run that takes its lock. The value is the run's id, because re-executions copy tags."""

START_PATIENCE = timedelta(seconds=30)
"""Grace period before a starting run is checked, in which the code server learns of it."""


def takes_lock(run: DagsterRun) -> bool:
    """Whether a run holds its lock as long as its process lives."""
    return run.tags.get(RUN_LOCK) == run.run_id


def lock_health(run: DagsterRun) -> CheckRunHealthResult | None:
    """Return whether a run lives, by its lock; None if it has not taken it yet.

    This is the same for every launcher, wherever the run is executed.

    Raises:
        DatabaseUnavailableError: The lock cannot be looked up now.
    """
    if not takes_lock(run):
        return None
    held = held_run_locks(direct_url(load_settings()), [run.run_id])
    return CheckRunHealthResult(WorkerStatus.RUNNING if held else WorkerStatus.NOT_FOUND)


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
        # The end of the run; its steps have a log of their own.
        write_in_words(plan_context.log, plan_context.instance)
        yield from ExecuteRunWithPlanIterable(
            execution_plan=execution_plan,
            iterator=_steps,
            execution_context_manager=PlanExecutionContextManager(
                job=plan_context.job,
                retry_mode=plan_context.retry_mode,
                execution_plan=execution_plan,
                run_config=plan_context.run_config,
                dagster_run=plan_context.dagster_run,
                instance=plan_context.instance,
                raise_on_error=plan_context.raise_on_error,
                output_capture=plan_context.output_capture,
                step_dependency_config=self.step_dependency_config,
            ),
        )


def _steps(
    job_context: PlanExecutionContext, execution_plan: ExecutionPlan
) -> Iterator[DagsterEvent]:
    """Execute the steps one after another, as Dagster's in-process executor does."""
    write_in_words(job_context.log, job_context.instance)
    yield from inprocess_execution_iterator(job_context, execution_plan)


def locked_executor(settings: Settings) -> dg.ExecutorDefinition:
    """Return the executor of all jobs: all steps in one process, which holds the run's lock."""

    @dg.executor(name="in_process")
    def in_process(_: dg.InitExecutorContext) -> LockedExecutor:
        """Execute all steps in one process."""
        return LockedExecutor(settings)

    return in_process


def end_dead_runs(instance: DagsterInstance) -> list[str]:
    """Mark runs as failed if no process executes them, which frees their pools.

    Those that a person canceled are marked as canceled. The daemon does this for runs that have
    started. This function is for processes without a daemon, and for runs whose process died
    before they started. A main job holds the lock of a run before there is one.

    Returns:
        The ids of those runs.
    """
    launcher = instance.run_launcher
    if not launcher.supports_check_run_worker_health:
        return []
    ended = []
    not_started = DagsterRunStatus.NOT_STARTED
    statuses = [*IN_PROGRESS_RUN_STATUSES, DagsterRunStatus.CANCELING, not_started]
    for record in instance.get_run_records(RunsFilter(statuses=statuses)):
        run = record.dagster_run
        if run.status is not_started and not takes_lock(run):
            continue
        starting = run.status is DagsterRunStatus.STARTING
        if starting and datetime.now(UTC) - record.update_timestamp < START_PATIENCE:
            continue
        if launcher.check_run_worker_health(run).status is not WorkerStatus.NOT_FOUND:
            continue
        # A run that ended since it was listed released its lock after its end was stored.
        now = instance.get_run_by_id(run.run_id)
        if now and now.status is run.status:
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
