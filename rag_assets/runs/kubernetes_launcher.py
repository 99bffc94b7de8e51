"""Starts runs as Kubernetes jobs, and tells the daemon which runs are dead.

It needs the packages of `brain-sync-rag[kubernetes]`.
"""

from dagster import DagsterRun
from dagster._core.launcher.base import CheckRunHealthResult
from dagster_k8s import K8sRunLauncher

from rag_assets.runs.liveness import lock_health


class KubernetesRunLauncher(K8sRunLauncher):
    """Dagster's launcher for Kubernetes; a run lives as long as it holds its lock in PostgreSQL.

    Kubernetes takes five minutes to notice that a machine is gone, and may then still count its pod
    as active. The lock is lost within seconds. Before a run has its lock, the state of its job
    decides.
    """

    def check_run_worker_health(self, run: DagsterRun) -> CheckRunHealthResult:
        """Return `NOT_FOUND` if a run has lost its lock; before it has one, the state of its job.

        Raises:
            DatabaseUnavailableError: The lock of the run cannot be looked up now.
        """
        return lock_health(run) or super().check_run_worker_health(run)
