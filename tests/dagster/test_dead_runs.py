"""Which runs are ended: those that have lost their lock in PostgreSQL."""

import dagster as dg
import pytest
from dagster_project import Project, definitions

from rag_assets.runs import liveness
from rag_assets.runs.liveness import RUN_LOCK, alive, end_dead_runs
from rag_resources.database.run_lock import held_run_locks
from rag_resources.settings import load_settings


def test_a_run_whose_main_job_died_before_it_started_is_ended(project: Project) -> None:
    """A main job holds the lock before there is a run; other runs wait for a launcher."""
    instance, job = project.instance, definitions().resolve_job_def("retrieve")
    settings = load_settings()
    waiting = instance.create_run_for_job(job)
    lost = instance.create_run_for_job(job)
    instance.add_run_tags(lost.run_id, {RUN_LOCK: lost.run_id})
    with alive(lost.run_id, settings):
        assert end_dead_runs(instance) == []
    assert end_dead_runs(instance) == [lost.run_id]
    found = {run.run_id: run.status.value for run in instance.get_runs()}
    assert found == {waiting.run_id: "NOT_STARTED", lost.run_id: "FAILURE"}


def test_a_run_that_ends_while_it_is_looked_at_is_not_failed(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was listed as in progress, then stored its success, then released its lock."""
    instance = project.instance
    job = definitions().resolve_job_def("retrieve")
    run = instance.create_run_for_job(job, status=dg.DagsterRunStatus.STARTED)
    instance.add_run_tags(run.run_id, {RUN_LOCK: run.run_id})

    def end_first(dsn: str, run_ids: list[str]) -> frozenset[str]:
        succeeded = dg.DagsterEvent(dg.DagsterEventType.RUN_SUCCESS.value, run.job_name)
        instance.report_dagster_event(succeeded, run.run_id)
        return held_run_locks(dsn, run_ids)

    with monkeypatch.context() as patch:
        patch.setattr(liveness, "held_run_locks", end_first)
        assert end_dead_runs(instance) == []
    assert instance.get_run_by_id(run.run_id).status.value == "SUCCESS"
