"""Starts runs on this machine, and tells the daemon which of them are dead."""

from dagster import DagsterRun, DefaultRunLauncher
from dagster._core.errors import DagsterUserCodeUnreachableError
from dagster._core.launcher.base import CheckRunHealthResult, WorkerStatus

from rag_assets.runs.liveness import takes_lock
from rag_resources.database.locate import database_url
from rag_resources.database.run_lock import held_run_locks
from rag_resources.settings import load_settings


class LocalRunLauncher(DefaultRunLauncher):
    """Dagster's own, which also notices runs whose process is gone.

    Dagster's code server reports the end of a run's process, but nobody reports the end of that
    server, nor of a main job, nor an end at which the database was away: after a power failure such
    runs would be under way for ever and keep their pools.
    """

    @property
    def supports_check_run_worker_health(self) -> bool:
        """Whether the daemon is to ask."""
        return True

    def check_run_worker_health(self, run: DagsterRun) -> CheckRunHealthResult:
        """Return `NOT_FOUND` if nothing executes a run any more; a slow one is alive.

        Raises:
            DatabaseUnavailableError: A run that takes a lock cannot be asked for now.
        """
        if takes_lock(run):
            held = held_run_locks(database_url(load_settings()), [run.run_id])
            return CheckRunHealthResult(WorkerStatus.RUNNING if held else WorkerStatus.NOT_FOUND)
        # It has not come to its executor yet: its server will start it.
        client = self._get_grpc_client_for_termination(run.run_id)  # type: ignore[no-untyped-call]
        try:
            if client:
                client.ping("")
        except DagsterUserCodeUnreachableError as error:
            if "UNAVAILABLE" in str(error):
                return CheckRunHealthResult(WorkerStatus.NOT_FOUND, str(error))
        return CheckRunHealthResult(WorkerStatus.RUNNING)
