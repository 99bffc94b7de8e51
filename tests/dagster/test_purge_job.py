"""The deletion of expired notes as Dagster runs it, by hand and by the clock."""

import dagster as dg
import pytest
from dagster_project import (
    Project,
    definitions,
    failure_texts,
)

from rag_resources.languages.labels import label


def purge(project: Project) -> dg.ExecuteInProcessResult:
    return (
        definitions()
        .resolve_job_def("purge_expired")
        .execute_in_process(instance=project.instance, raise_on_error=False)
    )


def counts(result: dg.ExecuteInProcessResult) -> dict[str, object]:
    (output,) = (event for event in result.all_events if event.is_successful_output)
    metadata = output.step_output_data.metadata
    return {name: metadata[label(name)].value for name in ("deleted", "left", "grace_hours")}


def test_the_job_deletes_what_expired_and_says_how_much(
    indexed: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the grace of the settings; a second run has nothing to do."""
    (total,) = indexed.query("SELECT count(*) FROM notes")[0]
    for hours, place in ((50, 0), (30, 1)):
        indexed.query(
            "UPDATE notes SET expires_at = now() - make_interval(hours => %s)"
            " WHERE id = (SELECT id FROM notes ORDER BY id LIMIT 1 OFFSET %s)",
            *(hours, place),
        )
    monkeypatch.setenv("EXPIRED_GRACE_HOURS", "40")
    first = purge(indexed)
    assert first.success, failure_texts(first)
    assert counts(first) == {"deleted": 1, "left": 0, "grace_hours": 40}
    monkeypatch.setenv("EXPIRED_GRACE_HOURS", "24")
    assert counts(purge(indexed)) == {"deleted": 1, "left": 0, "grace_hours": 24}
    assert counts(purge(indexed))["deleted"] == 0
    assert indexed.query("SELECT count(*) FROM notes") == [(total - 2,)]
    orphans = "SELECT FROM vectors WHERE chunk_id NOT IN (SELECT id FROM chunks)"
    assert indexed.query(orphans) == []
