"""Dagster's storage: a run keeps its connections, and a check has one entry for each run."""

import dagster as dg
import pytest
from dagster_project import CHUNKS, MONTHS, NOTE_EMBEDDINGS, NOTES, PROMOTED, Project
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from rag_assets.runs.storage import keep_connections


def session(instance: dg.DagsterInstance) -> int:
    """Return the server process that the run storage talks to."""
    with instance.run_storage.connect() as connection:
        return int(connection.execute(text("SELECT pg_backend_pid()")).scalar_one())


def test_statements_share_a_connection_that_is_replaced_when_it_was_ended(
    project: Project,
) -> None:
    """One statement fails: of a run whose database was restarted, which has lost its lock, too."""
    with dg.DagsterInstance.get() as instance, dg.DagsterInstance.get() as other:
        assert len({session(instance) for _ in range(3)}) == 3
        keep_connections(instance)
        (kept,) = {session(instance) for _ in range(3)}
        with other.run_storage.connect() as connection:
            connection.execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": kept})
        with pytest.raises(OperationalError):
            session(instance)
        assert session(instance) != kept
        instance.run_storage.dispose()


def test_the_history_of_a_check_has_one_entry_for_a_run_over_months(project: Project) -> None:
    """Its result; Dagster plans one a month, which would all be shown as skipped."""
    assert project.run(NOTES, NOTE_EMBEDDINGS, CHUNKS, months=MONTHS).success
    key = dg.AssetCheckKey(CHUNKS, "chunk_integrity")
    history = project.instance.event_log_storage.get_asset_check_execution_history(key, limit=20)
    assert [entry.status.value for entry in history] == ["SUCCEEDED"]


def test_a_failure_told_to_people_has_no_stack_on_its_page(project: Project) -> None:
    """Nor a class name; the page shows the error of the stored event."""
    config = {"ops": {"promoted_config": {"config": {"configuration": "nada"}}}}
    result = project.run(PROMOTED, run_config=config)
    stored = project.instance.all_logs(result.run_id, of_type=dg.DagsterEventType.STEP_FAILURE)
    (error,) = [entry.get_dagster_event().step_failure_data.error for entry in stored]
    assert error is not None
    assert "«nada»" in error.message
    assert (error.stack, error.cause) == ([], None)
    assert "Failure" not in error.message
