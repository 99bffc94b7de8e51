"""Dagster's storage: a run keeps its connections, and a check has one entry for each run."""

from time import time
from uuid import uuid4

import dagster as dg
import pytest
from dagster._core.definitions.asset_checks.asset_check_evaluation import (
    AssetCheckEvaluationPlanned,
)
from dagster._core.events import DagsterEvent
from dagster._core.events.log import EventLogEntry
from dagster_project import CHUNKS, Project, definitions

from rag_resources.languages.messages import _


def test_the_latest_result_of_a_check_is_the_one_that_came_last(project: Project) -> None:
    """The newest months of a backfill are planned last and run first.

    A result that came before stays the latest while a run that was planned later has none.
    """
    storage = project.instance.event_log_storage
    key = dg.AssetCheckKey(CHUNKS, "chunk_integrity")
    old, new, newest = (str(uuid4()) for _ in range(3))

    def store(run_id: str, kind: dg.DagsterEventType, data: object) -> None:
        event = DagsterEvent(kind.value, "index", event_specific_data=data, message="")  # type: ignore[arg-type]
        storage.store_event(EventLogEntry(None, 10, "", run_id, time(), dagster_event=event))

    def latest() -> str:
        return storage.get_latest_asset_check_execution_by_key([key])[key].run_id

    def evaluated(run_id: str) -> None:
        result = dg.AssetCheckEvaluation(
            asset_key=CHUNKS, check_name=key.name, passed=True, metadata={}
        )
        store(run_id, dg.DagsterEventType.ASSET_CHECK_EVALUATION, result)

    for run_id in (old, new, newest):
        planned = AssetCheckEvaluationPlanned(asset_key=CHUNKS, check_name=key.name)
        store(run_id, dg.DagsterEventType.ASSET_CHECK_EVALUATION_PLANNED, planned)
    evaluated(new)
    assert latest() == newest
    for run_id in (newest, old):
        evaluated(run_id)
        assert latest() == run_id
    history = storage.get_asset_check_execution_history(key, limit=20)
    assert [entry.run_id for entry in history] == [old, newest, new]


def rollback_promotion() -> dg.JobDefinition:
    """Return a job that refuses a run without a reason."""
    return definitions().resolve_job_def("rollback_promotion")


def test_a_failure_told_to_people_has_no_stack_in_its_run_or_in_the_terminal(
    project: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    """Nor a class name; the run's page shows the errors of the stored events."""
    config = {"ops": {"withdraw_promotion": {"config": {"withdraw": "hybrid", "reason": ""}}}}
    job = dg.reconstructable(rollback_promotion)
    with dg.execute_job(job, instance=project.instance, run_config=config) as result:
        assert not result.success
    types = {dg.DagsterEventType.STEP_FAILURE, dg.DagsterEventType.RUN_FAILURE}
    stored = project.instance.all_logs(result.run_id, of_type=types)
    step, run = (entry.get_dagster_event() for entry in stored)
    first = run.job_failure_data.first_step_failure_event
    assert first is not None
    refused = _("Nothing was changed: the reason is missing.")
    told = [each.step_failure_data.error for each in (step, first)]
    for error in (*told, run.job_failure_data.error):
        assert error is not None
        assert (error.message, error.stack, error.cause) == (refused, [], None)
    shown = capfd.readouterr().err
    assert refused in shown
    assert "Stack Trace" not in shown
    assert "rollback.py" not in shown
