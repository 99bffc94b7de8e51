"""Executes runs that `celery_launcher` sends, each in a process of its own, until SIGTERM."""

import os
import signal
import socket
from typing import Any

import dagster as dg
from celery import Celery, signals
from dagster_celery.tasks import create_execute_job_task

from rag_assets.runs.celery_launcher import FleetRunLauncher
from rag_resources.core.errors import InvalidParameterError
from rag_resources.languages.messages import _


def work(*, runs: int) -> None:
    """Execute runs until the process is told to end; those under way are finished first.

    Args:
        runs: How many at once.

    Raises:
        InvalidParameterError: The instance file names another launcher.
    """
    app = application()
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


def application() -> Celery:
    """Return the Celery application that the instance file describes.

    Raises:
        InvalidParameterError: The instance file names another launcher.
    """
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
