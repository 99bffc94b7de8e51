"""Starts runs on this machine, and tells the daemon which of them are no more."""

from dagster import DagsterRun, DefaultRunLauncher
from dagster._core.errors import DagsterUserCodeUnreachableError
from dagster._core.launcher.base import CheckRunHealthResult, WorkerStatus


class LocalRunLauncher(DefaultRunLauncher):
    """Dagster's own, that also sees runs that ended with the server that started them.

    The server reports the end of a run's process, but nobody reports that of the server: after a
    power failure its runs would be under way for ever and keep their pools.
    """

    @property
    def supports_check_run_worker_health(self) -> bool:
        """Whether the daemon is to ask."""
        return True

    def check_run_worker_health(self, run: DagsterRun) -> CheckRunHealthResult:
        """Return `NOT_FOUND` if the server of a run is gone; one that is only slow is not."""
        client = self._get_grpc_client_for_termination(run.run_id)  # type: ignore[no-untyped-call]
        try:
            if client:
                client.ping("")
        except DagsterUserCodeUnreachableError as error:
            if "UNAVAILABLE" in str(error):
                return CheckRunHealthResult(WorkerStatus.NOT_FOUND, str(error))
        return CheckRunHealthResult(WorkerStatus.RUNNING)
