"""Starts runs on Celery workers, and tells the daemon which runs are dead.

The worker is in `celery_worker`. Both need the packages of `brain-sync-rag[celery]`.
"""

from typing import Any

from dagster import DagsterRun, DagsterRunStatus
from dagster._core.launcher.base import CheckRunHealthResult, WorkerStatus
from dagster_celery.config import DEFAULT_CONFIG
from dagster_celery.launcher import CeleryRunLauncher
from dagster_celery.tags import DAGSTER_CELERY_QUEUE_TAG, DAGSTER_CELERY_TASK_ID_TAG
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from rag_assets.runs.liveness import lock_health

ENDED = ("SUCCESS", "FAILURE", "REVOKED")
"""States of tasks that no worker executes any more."""

TIMEOUT_S = 5
"""Time limit of each answer of the broker or of the workers."""

CONFIG = {
    # A worker takes a task only when it can execute it, so that no run waits behind another one.
    "worker_disable_prefetch": True,
    # In a process of its own for each run: memory is returned, and the run's lock ends with it.
    "worker_max_tasks_per_child": 1,
    # Runs that wait for a worker stay in the broker, and survive a restart of it.
    "broker_connection_retry_on_startup": True,
    "broker_transport_options": {
        # A task is confirmed when its execution begins, so this bounds only the moments before.
        "visibility_timeout": 30,
        "socket_timeout": TIMEOUT_S,
        "socket_connect_timeout": TIMEOUT_S,
        "max_retries": 3,
    },
    "redis_socket_timeout": TIMEOUT_S,
    "redis_socket_connect_timeout": TIMEOUT_S,
    "result_backend_transport_options": {"retry_policy": {"timeout": TIMEOUT_S}},
    "result_expires": 86_400,
}
"""Settings of Celery; `config_source` in `dagster.yaml` changes any of them."""


class FleetRunLauncher(CeleryRunLauncher):
    """Dagster's launcher for Celery, with detection of runs whose worker is gone.

    Dagster's own launcher trusts the broker. There, the task of a killed worker stays "started" for
    ever, and the run keeps its pools. Here a run lives as long as it holds its lock in PostgreSQL,
    as with every other launcher.
    """

    def app_args(self) -> dict[str, Any]:
        """Return the arguments of the Celery application: ours, under those of the user's file."""
        arguments: dict[str, Any] = super().app_args()
        given = arguments["config_source"].items()
        own = {name: value for name, value in given if value != DEFAULT_CONFIG.get(name)}
        return {**arguments, "config_source": {**DEFAULT_CONFIG, **CONFIG, **own}}

    def check_run_worker_health(self, run: DagsterRun) -> CheckRunHealthResult:
        """Return `NOT_FOUND` if no worker executes a run or ever will; a queued run is alive.

        Raises:
            DatabaseUnavailableError: The lock of the run cannot be looked up now.
        """
        return lock_health(run) or self._check_start(run)

    def terminate(self, run_id: str) -> bool:
        """Interrupt a run. Its worker stores its end; if the worker is gone, the daemon does."""
        run = self._instance.get_run_by_id(run_id)
        if run is None or run.is_finished or DAGSTER_CELERY_TASK_ID_TAG not in run.tags:
            return False
        self._instance.report_run_canceling(run)
        return bool(super().terminate(run_id))

    def _check_start(self, run: DagsterRun) -> CheckRunHealthResult:
        """Check a run that has not reached its executor yet, and so holds no lock."""
        task_id = run.tags.get(DAGSTER_CELERY_TASK_ID_TAG)
        if task_id is None:
            # A launcher that died before it sent the task; other runs are executed elsewhere.
            return _health(is_alive=run.status is not DagsterRunStatus.STARTING)
        try:
            return _health(is_alive=self._is_expected(task_id, run))
        except (OperationalError, RedisError, OSError) as error:
            # While the broker does not answer, the state of the run is unknown.
            return CheckRunHealthResult(WorkerStatus.RUNNING, type(error).__name__)

    def _is_expected(self, task_id: str, run: DagsterRun) -> bool:
        """Whether a task waits in its queue or is with a worker."""
        state = self.celery.AsyncResult(task_id).state
        if state in ENDED:
            return False
        answers = self.celery.control.inspect(timeout=TIMEOUT_S).query_task(task_id) or {}
        if any(task_id in tasks for tasks in answers.values()):
            return True
        queue = run.tags.get(DAGSTER_CELERY_QUEUE_TAG, self.default_queue)
        return state == "PENDING" and self._tasks_waiting(queue) > 0

    def _tasks_waiting(self, queue: str) -> int:
        with self.celery.connection_for_read() as connection:
            try:
                declared = connection.default_channel.queue_declare(queue, passive=True)
            except connection.channel_errors:  # Redis has no empty queues.
                return 0
            return int(declared.message_count)


def _health(*, is_alive: bool) -> CheckRunHealthResult:
    return CheckRunHealthResult(WorkerStatus.RUNNING if is_alive else WorkerStatus.NOT_FOUND)
