"""One run over a range of months: counts per month, and a bad month fails alone."""

import logging
from typing import Any
from uuid import UUID

import dagster as dg
import pytest
from dagster_project import (
    CHUNKS,
    EMBEDDINGS,
    MONTHS,
    NOTE_EMBEDDINGS,
    NOTES,
    Project,
    by_field,
    failure_texts,
    materialised,
)

from rag_assets import main_job
from rag_assets.partitions import monthly
from rag_resources.core.errors import RagError
from rag_resources.languages.messages import _
from rag_resources.settings import load_settings

ALL = (NOTES, NOTE_EMBEDDINGS, CHUNKS, EMBEDDINGS)
BAD_NOTE = "2025-02-09-urgencias-la-fe"


def test_a_range_of_months_is_indexed_in_one_run_and_only_once(project: Project) -> None:
    """Each month of each asset is one materialisation with counts; a second run embeds nothing."""
    first = project.run(*ALL, months=MONTHS)
    assert first.success, failure_texts(first)
    for key in ALL:
        assert sorted(materialised(first, key)) == list(MONTHS)
    notes = materialised(first, NOTES)
    assert sum(month["inserted"] for month in notes.values()) == 16
    assert notes[MONTHS[-1]]["rejected"] == 0
    vectors = materialised(first, EMBEDDINGS)
    chunk_count = project.query("SELECT count(*) FROM chunks")[0][0]
    assert sum(month["chunks"] for month in materialised(first, CHUNKS).values()) == chunk_count
    assert sum(month["vectors"] for month in vectors.values()) == 2 * chunk_count
    assert all(month["embedded"] > 0 and month["seconds"] > 0 for month in vectors.values())
    for month in vectors.values():
        rate = month["vectors"] / month["vectors_per_second"]
        assert rate == pytest.approx(month["seconds"], rel=0.1)
    for month in MONTHS:
        counts = [materialised(first, key)[month] for key in ALL]
        inserted = counts[0]["inserted"]
        assert [c["unchanged"] for c in counts] == [0, 0, 0, 0]
        assert [c["failed"] for c in counts[1:]] == [0, 0, 0]
        assert counts[1]["vectors"] == counts[2]["migrated"] == counts[3]["migrated"] == inserted

    second = project.run(*ALL, months=MONTHS)
    assert second.success, failure_texts(second)
    work = ("inserted", "updated", "chunks", "embedded")
    for key in (NOTES, NOTE_EMBEDDINGS, EMBEDDINGS):
        again = materialised(second, key)
        assert sorted(again) == list(MONTHS)
        told = [count for count in work if count in again[MONTHS[0]]]
        assert told
        assert {month[count] for month in again.values() for count in told} == {0}
    for key in ALL:
        assert sum(month["unchanged"] for month in materialised(second, key).values()) == 16
    idle = [month for key in ALL[1:] for month in materialised(second, key).values()]
    assert not any(name.endswith("por segundo") for month in idle for name in month)


def test_a_bad_month_fails_alone(project: Project) -> None:
    """The good months are materialised, the failure names the bad one; only that is redone."""
    assert project.run(NOTES, NOTE_EMBEDDINGS, months=MONTHS).success
    bad, good = MONTHS[1], [month for month in MONTHS if month != MONTHS[1]]
    note = project.note_id(BAD_NOTE)
    refuse_chunks_of(project, note, "sin permiso para esta nota")

    failed = project.run(CHUNKS, EMBEDDINGS, months=MONTHS)
    assert not failed.success
    assert sorted(materialised(failed, CHUNKS)) == good
    assert f"{bad[:7]}: {BAD_NOTE}: sin permiso para esta nota" in failure_texts(failed)
    assert not any(month in failure_texts(failed) for month in (m[:7] for m in good))
    assert not materialised(failed, EMBEDDINGS)
    assert set(project.instance.get_materialized_partitions(CHUNKS)) == set(good)
    in_month = project.query("SELECT count(*) FROM notes WHERE created_at >= %s", bad)[0][0]
    in_month -= project.query("SELECT count(*) FROM notes WHERE created_at >= %s", MONTHS[2])[0][0]
    seen = observed(failed, CHUNKS)
    assert list(seen) == [bad]
    assert (seen[bad]["migrated"], seen[bad]["failed"]) == (in_month - 1, 1)
    row = f"| {BAD_NOTE} | {note} | sin permiso para esta nota |"
    assert seen[bad]["failed_notes"].splitlines()[2:] == [row]
    assert not main_job.failed_for_notes_only(project.instance, failed), "no vectors were made"
    assert main_job.failed_for_notes_only(project.instance, project.run(CHUNKS, months=MONTHS))

    project.query("DROP TRIGGER refuse ON chunks")
    left = sorted(set(MONTHS) - project.instance.get_materialized_partitions(CHUNKS))
    assert left == [bad]
    chunked_at = project.query("SELECT id, chunked_at FROM notes WHERE chunked_at IS NOT NULL")
    again = project.run(CHUNKS, months=left)
    assert again.success, failure_texts(again)
    counts = materialised(again, CHUNKS)[bad]
    assert (counts["migrated"], counts["unchanged"], counts["failed"]) == (1, in_month - 1, 0)
    assert set(chunked_at) < set(project.query("SELECT id, chunked_at FROM notes"))
    assert project.instance.get_materialized_partitions(CHUNKS) == set(MONTHS)


def test_statistics_a_killed_run_left_behind_are_made_up_for(indexed: Project) -> None:
    """A run that finds nothing to chunk still refreshes statistics that count other chunks."""
    indexed.query("DELETE FROM lexeme_statistics")
    indexed.query("UPDATE corpus_statistics SET chunk_count = 0, average_lexeme_occurrences = 0")
    assert indexed.run(CHUNKS, months=MONTHS[:1]).success
    assert indexed.query("SELECT count(*) FROM lexeme_statistics") != [(0,)]
    version = indexed.query("SELECT sum(changes) FROM index_changes")
    assert indexed.run(CHUNKS, EMBEDDINGS, months=MONTHS).success
    assert indexed.query("SELECT sum(changes) FROM index_changes") == version


def warnings_of(result: dg.ExecuteInProcessResult, instance: dg.DagsterInstance) -> str:
    """What a run warned of."""
    return "\n".join(
        entry.user_message
        for entry in instance.all_logs(result.run_id)
        if entry.level == logging.WARNING
    )


def test_a_note_whose_file_is_gone_is_told_by_every_run(project: Project) -> None:
    """Whatever months a run processes, it reads the whole source."""
    path = project.corpus.notes / "efimera.md"
    path.write_text("---\ncreated_at: 2025-01-02\n---\nSe va. %%o no%%", "utf-8")
    first = project.run(NOTES, months=MONTHS)
    told = materialised(first, NOTES)[MONTHS[-1]]
    assert (told["absent"], told["left_out_comment"]) == (0, 1)
    path.unlink()
    newest = monthly(load_settings()).get_partition_keys()[-1:]
    for months in (MONTHS, newest):
        result = project.run(NOTES, months=months)
        latest = materialised(result, NOTES)[months[-1]]
        assert latest["absent"] == 1
        assert "efimera" in str(latest["absent_notes"])
        assert latest["absent_notes"] in warnings_of(result, project.instance)


def test_a_source_that_is_gone_fails_the_run_in_words(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTES_SOURCE", str(project.corpus.notes / "no-existe"))
    result = project.run(NOTES, months=MONTHS)
    assert not result.success
    reason = _("There is no {path}. Check how it is spelt.").format(
        path=project.corpus.notes / "no-existe"
    )
    assert failure_texts(result) == reason
    with pytest.raises(RagError) as told:
        main_job.Runs(load_settings(), project.instance).require(result)
    assert reason in told.value.message


def observed(
    result: dg.ExecuteInProcessResult, key: dg.AssetKey
) -> dict[str | None, dict[str, Any]]:
    """Return the metadata of an asset's observations in a run, by partition."""
    found = [
        event.asset_observation_data.asset_observation
        for event in result.all_events
        if event.event_type is dg.DagsterEventType.ASSET_OBSERVATION and event.asset_key == key
    ]
    return {seen.partition: by_field(seen.metadata) for seen in found}


def refuse_chunks_of(project: Project, note: UUID, reason: str, code: str = "23514") -> None:
    """Let the database refuse the chunks of a note: code 23514 is a violated constraint."""
    refuse_rows(project, "chunks", reason, code=code, when=f"WHEN (new.note_id = '{note}')")


def refuse_rows(project: Project, table: str, reason: str, *, code: str, when: str = "") -> None:
    """Let the database refuse new rows of a table."""
    project.query(
        f"CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        f" RAISE EXCEPTION '{reason}' USING ERRCODE = '{code}'; END $$"
    )
    project.query(
        f"CREATE TRIGGER refuse BEFORE INSERT ON {table} FOR EACH ROW {when}"
        " EXECUTE FUNCTION refuse()"
    )
