"""Starts runs on this machine, and tells the daemon which runs are dead."""

from dagster import DagsterRun, DefaultRunLauncher
from dagster._core.errors import DagsterUserCodeUnreachableError
from dagster._core.launcher.base import CheckRunHealthResult, WorkerStatus

from rag_assets.runs.liveness import takes_lock
from rag_resources.database.locate import database_url
from rag_resources.database.run_lock import held_run_locks
from rag_resources.settings import load_settings


class LocalRunLauncher(DefaultRunLauncher):
    """Dagster's own launcher, with detection of runs whose process is gone.

    Dagster's code server reports the end of a run's process. Nobody reports that the server or a
    main job has died, or that the database was down when a run ended. After a power failure such
    runs would seem to be running for ever, and would keep their pools.
    """

    @property
    def supports_check_run_worker_health(self) -> bool:
        """Tells the daemon to call `check_run_worker_health`."""
        return True

    def check_run_worker_health(self, run: DagsterRun) -> CheckRunHealthResult:
        """Return `NOT_FOUND` if no process executes a run any more; a slow run counts as alive.

        Raises:
            DatabaseUnavailableError: The lock of the run cannot be checked now.
        """
        if takes_lock(run):
            held = held_run_locks(database_url(load_settings()), [run.run_id])
            return CheckRunHealthResult(WorkerStatus.RUNNING if held else WorkerStatus.NOT_FOUND)
        # The run has not reached its executor yet: the code server will start it.
        client = self._get_grpc_client_for_termination(run.run_id)  # type: ignore[no-untyped-call]
        try:
            if client:
                client.ping("")
        except DagsterUserCodeUnreachableError as error:
            if "UNAVAILABLE" in str(error):
                return CheckRunHealthResult(WorkerStatus.NOT_FOUND, str(error))
        return CheckRunHealthResult(WorkerStatus.RUNNING)
