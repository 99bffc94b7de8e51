"""The deletion of expired notes as Dagster runs it, by hand and by the clock."""

from datetime import UTC, datetime

import dagster as dg
import pytest
from dagster_project import (
    MONTHS,
    NOTES,
    QUIET,
    Project,
    definitions,
    failure_texts,
    materialised,
)

from rag_resources.languages.labels import label


def purge(project: Project) -> dg.ExecuteInProcessResult:
    return (
        definitions()
        .resolve_job_def("purge_expired")
        .execute_in_process(instance=project.instance, raise_on_error=False, run_config=QUIET)
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
    orphans = "SELECT FROM chunk_embeddings WHERE chunk_id NOT IN (SELECT id FROM chunks)"
    assert indexed.query(orphans) == []


def test_the_next_run_leaves_out_what_was_purged_and_names_it(indexed: Project) -> None:
    """The file is still in the source; its note came back without an expiry."""
    ((total, name),) = indexed.query("SELECT count(*), min(external_id) FROM notes")
    indexed.query(
        "UPDATE notes SET expires_at = now() - interval '9 days' WHERE external_id = %s", name
    )
    assert counts(purge(indexed))["deleted"] == 1

    again = indexed.run(NOTES, months=MONTHS)

    assert again.success, failure_texts(again)
    latest = materialised(again, NOTES)[MONTHS[-1]]
    assert latest["left_out"] == 1
    assert f"- `{name}`: Caducó y se borró el " in latest["left_out_notes"]
    assert indexed.query("SELECT count(*) FROM notes") == [(total - 1,)]


def test_the_clock_starts_it_every_hour() -> None:
    """Switched on: a note only expires because somebody asked for it."""
    schedule = definitions().resolve_schedule_def("hourly_purge")
    assert schedule.default_status is dg.DefaultScheduleStatus.RUNNING
    noon = datetime(2026, 5, 1, 12, 17, tzinfo=UTC)
    context = dg.build_schedule_context(
        scheduled_execution_time=noon, repository_def=definitions().get_repository_def()
    )
    (request,) = schedule.evaluate_tick(context).run_requests
    assert schedule.job_name == "purge_expired"
    assert request.run_config == {}
