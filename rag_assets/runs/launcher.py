"""Starts runs on this machine, and tells the daemon which of them are no more."""

from pathlib import Path

from dagster import DagsterRun, DefaultRunLauncher
from dagster._core.errors import DagsterUserCodeUnreachableError
from dagster._core.launcher.base import CheckRunHealthResult, WorkerStatus
from dagster._core.storage.tags import GRPC_INFO_TAG

from rag_assets.runs.liveness import PROCESS_LOCK, lives


class LocalRunLauncher(DefaultRunLauncher):
    """Dagster's own, that also sees runs that ended with the server that started them.

    The server reports the end of a run's process, but nobody reports that of the server, nor that
    of a main job, which executes its runs itself: after a power failure those would be under way
    for ever and keep their pools.
    """

    @property
    def supports_check_run_worker_health(self) -> bool:
        """Whether the daemon is to ask."""
        return True

    def check_run_worker_health(self, run: DagsterRun) -> CheckRunHealthResult:
        """Return `NOT_FOUND` if the process or server of a run is gone; a slow one is not."""
        lock = run.tags.get(PROCESS_LOCK)
        # A run that somebody executes again has the tags of the first one, and a server.
        if lock and GRPC_INFO_TAG not in run.tags:
            alive = lives(Path(lock))
            return CheckRunHealthResult(WorkerStatus.RUNNING if alive else WorkerStatus.NOT_FOUND)
        client = self._get_grpc_client_for_termination(run.run_id)  # type: ignore[no-untyped-call]
        try:
            if client:
                client.ping("")
        except DagsterUserCodeUnreachableError as error:
            if "UNAVAILABLE" in str(error):
                return CheckRunHealthResult(WorkerStatus.NOT_FOUND, str(error))
        return CheckRunHealthResult(WorkerStatus.RUNNING)
