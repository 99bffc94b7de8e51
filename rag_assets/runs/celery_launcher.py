"""Starts runs on Celery workers, and executes them there.

It needs the packages of `brain-sync-rag[celery]`.
"""

import os
import signal
import socket
from typing import Any

import dagster as dg
from celery import Celery, signals
from dagster._core.launcher.base import CheckRunHealthResult
from dagster_celery.launcher import CeleryRunLauncher
from dagster_celery.tags import DAGSTER_CELERY_TASK_ID_TAG
from dagster_celery.tasks import create_execute_job_task

from rag_assets.runs.liveness import lock_health
from rag_resources.core.errors import InvalidParameterError
from rag_resources.languages.messages import _


class FleetRunLauncher(CeleryRunLauncher):
    """Dagster's launcher for Celery; a run lives as long as it holds its lock in PostgreSQL.

    Dagster's own trusts the broker, where the task of a killed worker stays "started" for ever.
    """

    def check_run_worker_health(self, run: dg.DagsterRun) -> CheckRunHealthResult:
        """Return `NOT_FOUND` if a run has lost its lock; before it has one, its task's state."""
        return lock_health(run) or super().check_run_worker_health(run)

    def terminate(self, run_id: str) -> bool:
        """Interrupt a run. Its worker stores its end; if the worker is gone, the daemon does."""
        run = self._instance.get_run_by_id(run_id)
        if run is None or run.is_finished or DAGSTER_CELERY_TASK_ID_TAG not in run.tags:
            return False
        self._instance.report_run_canceling(run)
        return bool(super().terminate(run_id))


def work(*, runs: int) -> None:
    """Execute runs until the process is told to end; those under way are finished first.

    Dagster's own worker command reads another file for the broker, and its runs cannot be canceled.

    Args:
        runs: How many at once.

    Raises:
        InvalidParameterError: The instance file names another launcher.
    """
    app = _application()
    create_execute_job_task(app)
    # Once, before the processes of the runs are forked: a run then starts in a moment.
    import rag_assets.definitions  # noqa: F401

    signals.worker_process_init.connect(_interruptible)
    app.worker_main(
        [
            "--quiet",
            "worker",
            *("--hostname", f"rag-{os.getpid()}@{socket.gethostname()}"),
            *("--queues", app.conf.task_default_queue),
            *("--concurrency", str(runs)),
            *("--loglevel", "WARNING"),
            "--without-gossip",
            "--without-mingle",
        ]
    )


def _application() -> Celery:
    with dg.DagsterInstance.get() as instance:
        launcher = instance.run_launcher
        if not isinstance(launcher, FleetRunLauncher):
            name = type(launcher).__name__
            raise InvalidParameterError(
                _(
                    "The dagster.yaml of this instance does not use Celery (it uses {name}). Copy "
                    "deploy/celery/dagster.yaml to the folder of DAGSTER_HOME, on this machine "
                    "and on that of the UI."
                ).format(name=name),
                launcher=name,
            )
        return launcher.celery


def _interruptible(**_: Any) -> None:
    """Let a canceled run end like an interrupted one; Celery's processes would die at once."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
