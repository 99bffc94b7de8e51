"""Dagster's storage: a check has one entry for each run."""

import dagster as dg
from dagster_project import CHUNKS, MONTHS, NOTE_EMBEDDINGS, NOTES, Project


def test_the_history_of_a_check_has_one_entry_for_a_run_over_months(project: Project) -> None:
    """Its result; Dagster plans one a month, which would all be shown as skipped."""
    assert project.run(NOTES, NOTE_EMBEDDINGS, CHUNKS, months=MONTHS).success
    key = dg.AssetCheckKey(CHUNKS, "chunk_integrity")
    history = project.instance.event_log_storage.get_asset_check_execution_history(key, limit=20)
    assert [entry.status.value for entry in history] == ["SUCCEEDED"]
