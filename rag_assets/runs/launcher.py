"""Starts runs on this machine, and tells the daemon which runs are dead."""

import json
import os
import re
from pathlib import Path

from dagster import DagsterEventType, DagsterRun, DagsterRunStatus, DefaultRunLauncher
from dagster._core.errors import DagsterUserCodeUnreachableError
from dagster._core.launcher.base import CheckRunHealthResult, WorkerStatus
from dagster._core.storage.tags import GRPC_INFO_TAG
from dagster._grpc.client import DagsterGrpcClient
from dagster._grpc.types import GetCurrentRunsResult
from dagster._serdes import deserialize_value

from rag_assets.runs.liveness import lock_health

_PROCESS = re.compile(r"Started process for run \(pid: (\d+)\)")


class LocalRunLauncher(DefaultRunLauncher):
    """Dagster's own launcher, with detection of runs whose process is gone.

    Dagster's code server reports the end of a run's process. But nothing reports that the server or
    a main job has died, or that the database was down when a run ended. After a power failure such
    runs would be shown as running for ever, and would keep their pools.
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
        return lock_health(run) or self._check_start(run)

    def _check_start(self, run: DagsterRun) -> CheckRunHealthResult:
        """Check a run that has not reached its executor yet, and so holds no lock."""
        # Only a launcher sets the state "starting"; this one then also stores the code server.
        if GRPC_INFO_TAG not in run.tags:
            launched = run.status is DagsterRunStatus.STARTING
            return CheckRunHealthResult(
                WorkerStatus.NOT_FOUND if launched else WorkerStatus.RUNNING
            )
        client = self._get_grpc_client_for_termination(run.run_id)  # type: ignore[no-untyped-call]
        try:
            started = client is None or _is_known(client, run.run_id)
        except DagsterUserCodeUnreachableError as error:
            if "UNAVAILABLE" not in str(error):
                return CheckRunHealthResult(WorkerStatus.RUNNING)
            return CheckRunHealthResult(WorkerStatus.NOT_FOUND, str(error))
        alive = started and not self._has_lost_its_process(run)
        return CheckRunHealthResult(WorkerStatus.RUNNING if alive else WorkerStatus.NOT_FOUND)

    def _has_lost_its_process(self, run: DagsterRun) -> bool:
        """Whether a run had a process on this machine that is gone.

        A code server stops watching its processes if it fails to reach the database once.
        """
        if "socket" not in json.loads(run.tags[GRPC_INFO_TAG]):
            return False  # The code server may be on another machine.
        told = self._instance.all_logs(run.run_id, of_type=DagsterEventType.ENGINE_EVENT)
        pids = [int(found[1]) for entry in told if (found := _PROCESS.search(entry.message))]
        return bool(pids) and not _executes(pids[-1])


def _is_known(client: DagsterGrpcClient, run_id: str) -> bool:
    """Whether a code server has started a run and has not seen it end."""
    answer = deserialize_value(client.get_current_runs(), GetCurrentRunsResult)
    return run_id in answer.current_runs


def _executes(pid: int) -> bool:
    """Whether a process lives; a zombie does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    if not Path("/proc/self/cmdline").exists():
        return True
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except OSError:
        return False  # It ended meanwhile.
