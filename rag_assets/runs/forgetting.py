"""Deletes Dagster's records of the runs of a deleted tenant: events, metadata and output."""

import dagster as dg

from rag_resources.resources import TENANT_TAG

_BATCH = 100
_ENDED = [
    dg.DagsterRunStatus.SUCCESS,
    dg.DagsterRunStatus.FAILURE,
    dg.DagsterRunStatus.CANCELED,
]


def forget_runs(instance: dg.DagsterInstance, tenant: str) -> int:
    """Delete the runs of a tenant that have ended, with everything that was logged about them.

    Their configuration, metadata and output contain questions, passages and names of files. Their
    materialisations are deleted too; the next run finds the work already done.

    Returns:
        The number of runs deleted.
    """
    ended = dg.RunsFilter(tags={TENANT_TAG: tenant}, statuses=_ENDED)
    deleted = 0
    while runs := instance.get_runs(ended, limit=_BATCH):
        for run in runs:
            instance.compute_log_manager.delete_logs(prefix=[run.run_id])
            instance.delete_run(run.run_id)
            deleted += 1
    return deleted
