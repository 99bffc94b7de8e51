"""Sensors, tick by tick: new note files, failed runs, automation."""

import os
import shutil
import time
from pathlib import Path

import dagster as dg
import pytest
from dagster_project import (
    CANDIDATE,
    CHUNKS,
    EMBEDDINGS,
    MONTHS,
    NOTE_EMBEDDINGS,
    NOTES,
    PROMOTED,
    Project,
    definitions,
    failure_texts,
    materialised,
)

from rag_assets.partitions import monthly
from rag_assets.sensors import SETTLED_NS
from rag_resources.application import open_application
from rag_resources.languages.messages import _
from rag_resources.settings import load_settings
from tests.waiting import wait_until

OTHER_CANDIDATES = [
    dg.AssetKey(["evaluation_results", name]) for name in ("hybrid", "hybrid_weighted")
]
FIRST = "dagster/asset_partition_range_start"
LAST = "dagster/asset_partition_range_end"


class NewFiles:
    """A sensor, which keeps its cursor from tick to tick as the daemon does."""

    def __init__(self, project: Project, name: str, folder: Path) -> None:
        self._project = project
        self._name = name
        self._folder = folder
        self.cursor: str | None = None

    def tick(self) -> list[tuple[str, str]] | str:
        """Return the ranges of months of the runs requested, or why none is."""
        paths = [self._folder, *self._folder.rglob("*")] if self._folder.exists() else []
        latest = max((path.lstat().st_ctime_ns for path in paths), default=0)
        wait_until(lambda: time.time_ns() - latest > SETTLED_NS)
        location = definitions()
        sensor = location.resolve_sensor_def(self._name)
        with dg.build_sensor_context(
            instance=self._project.instance,
            cursor=self.cursor,
            sensor_name=self._name,
            definitions=location,
        ) as context:
            data = sensor.evaluate_tick(context)
        self.cursor = data.cursor or self.cursor
        if data.skip_message:
            return data.skip_message
        return [(request.tags[FIRST], request.tags[LAST]) for request in data.run_requests]


@pytest.fixture
def new_notes(project: Project) -> NewFiles:
    """The sensor over a source none of whose files it has seen."""
    return NewFiles(project, "new_notes", project.corpus.notes)


def write(project: Project, name: str, text: str) -> Path:
    """Write a file of the source, at a later time than any other."""
    let_time_pass(project)
    path = project.corpus.notes / name
    path.write_text(text, "utf-8")
    return path


def let_time_pass(project: Project) -> None:
    """Wait until the file system's clock, which advances in milliseconds, has advanced."""
    latest = max(file.lstat().st_ctime_ns for file in project.corpus.notes.rglob("*"))
    clock = project.corpus.notes.parent / "clock"
    deadline = time.monotonic() + 5
    clock.touch()
    while clock.stat().st_ctime_ns <= latest:
        assert time.monotonic() < deadline
        clock.touch()


def test_a_note_that_was_restored_without_dagster_is_indexed(indexed: Project) -> None:
    """Once for each time that it waits, however often the sensor ticks."""
    waiting = NewFiles(indexed, "waiting_notes", indexed.corpus.notes)
    let_half_a_minute_pass(indexed)
    assert waiting.tick() == _("There is nothing to do.")
    [(name, month)] = indexed.query(
        "SELECT external_id, to_char(created_at, 'YYYY-MM-01') FROM notes ORDER BY id LIMIT 1"
    )
    for __ in range(2):
        with open_application(load_settings()) as application:
            application.notes.delete([application.notes.find(name).note_id])
            application.notes.restore([name])
        assert waiting.tick() == [(month, month)]
        assert waiting.tick() == _("There is nothing to do.")
        assert indexed.run(NOTES, NOTE_EMBEDDINGS, CHUNKS, EMBEDDINGS, months=[month]).success
        assert waiting.tick() == _("There is nothing to do.")


def test_a_note_that_was_chunked_while_its_month_was_embedded_is_embedded(
    indexed: Project,
) -> None:
    """For Dagster the month's vectors are newer than its chunks, so automation makes none.

    A month none of whose notes has vectors of a model waits for its backfill.
    """
    waiting = NewFiles(indexed, "waiting_notes", indexed.corpus.notes)
    let_half_a_minute_pass(indexed)
    wait = (
        "INSERT INTO pending_vectors (model, note_id)"
        " SELECT 'use_multilingual', id FROM notes"
        " WHERE to_char(created_at, 'YYYY-MM-01') = %s ORDER BY id"
    )
    indexed.query(f"{wait} LIMIT 1", MONTHS[1])
    assert waiting.tick() == [(MONTHS[1], MONTHS[1])]
    assert waiting.tick() == _("There is nothing to do.")
    indexed.query("DELETE FROM pending_vectors")
    indexed.query(wait, MONTHS[1])
    assert waiting.tick() == _("There is nothing to do.")


def let_half_a_minute_pass(project: Project) -> None:
    """Nobody is indexing what was written then."""
    project.query("UPDATE notes SET updated_at = updated_at - interval '1 minute'")


def test_what_the_main_job_has_read_is_not_read_again(
    project: Project, new_notes: NewFiles
) -> None:
    """When the daemon starts afterwards; a file that came since then is."""
    let_time_pass(project)
    keys = monthly(load_settings()).get_partition_keys()
    assert project.run(NOTES, months=[keys[0], keys[-1]]).success
    assert project.run(NOTES, months=[keys[-1]]).success  # for a document that came since
    assert new_notes.tick() == _("There is nothing to do.").format(path=project.corpus.notes)
    write(project, "nueva.md", f"---\ncreated_at: {MONTHS[0]}\n---\nAlgo nuevo.\n")
    assert new_notes.tick() == [(MONTHS[0], MONTHS[0])]


def test_a_new_or_changed_file_asks_for_its_month(project: Project, new_notes: NewFiles) -> None:
    """Its month only, also if it is moved in with an old date; its run ingests it."""
    new_notes.tick()
    write(project, "nueva.md", "---\ncreated_at: 2025-02-10\n---\nAlgo nuevo.")
    assert new_notes.tick() == [(MONTHS[1], MONTHS[1])]
    write(project, "nueva.md", "---\ncreated_at: 2025-02-10\n---\nAlgo distinto.")
    assert new_notes.tick() == [(MONTHS[1], MONTHS[1])]
    outside = project.corpus.golden.parent / "movida.md"
    outside.write_text("---\ncreated_at: 2025-03-10\n---\nDe otro sitio.", "utf-8")
    os.utime(outside, (0, 0))
    let_time_pass(project)
    outside.rename(project.corpus.notes / "movida.md")
    assert new_notes.tick() == [(MONTHS[2], MONTHS[2])]
    month = materialised(project.run(NOTES, months=MONTHS[2:3]), NOTES)[MONTHS[2]]
    assert month["inserted"] > 0
    assert project.note_id("movida")


def test_a_source_that_is_gone_or_not_set_is_skipped(
    project: Project, new_notes: NewFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(project.corpus.notes)
    assert new_notes.tick() == _("There is no {path}. Check how it is spelt.").format(
        path=project.corpus.notes
    )
    monkeypatch.setenv("NOTES_SOURCE", "")
    assert new_notes.tick() == _("NOTES_SOURCE is empty: there is no source to watch.")


def test_a_failed_run_is_reported_with_its_reason(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    """In one sentence with run, job and what the failed step said, and nothing else."""
    result = project.run(PROMOTED)
    assert not result.success
    sensor = definitions().resolve_sensor_def("failed_runs")
    context = dg.build_run_status_sensor_context(
        sensor_name="failed_runs",
        dagster_event=result.get_run_failure_event(),
        dagster_instance=project.instance,
        dagster_run=project.instance.get_run_by_id(result.run_id),
    ).for_run_failure()
    capsys.readouterr()
    sensor(context)
    reported = "".join(capsys.readouterr())
    assert reported.count(result.run_id) == 1
    assert (
        _("The run {run_id} of {job} has failed: {error}").format(
            run_id=result.run_id, job="promoted_config", error=failure_texts(result)
        )
        in reported
    )
    assert "rapida: aún no se ha evaluado" in reported


def test_automation_waits_for_the_gates_of_every_candidate(indexed: Project) -> None:
    """New evaluations ask for a promotion, but not while a candidate has none or failed."""
    cursor, location = None, definitions()

    def promotion_requested() -> bool:
        nonlocal cursor
        tick = dg.evaluate_automation_conditions(
            defs=location,
            instance=indexed.instance,
            asset_selection=dg.AssetSelection.assets(PROMOTED),
            cursor=cursor,
        )
        cursor = tick.cursor
        return tick.total_requested > 0

    assert not promotion_requested()
    assert indexed.run(CANDIDATE).success
    assert not promotion_requested()
    # Nothing is indexed with their model: every question is a miss.
    assert not indexed.run(*OTHER_CANDIDATES).success
    assert not promotion_requested()


def test_documents_in_the_web_are_looked_at_by_the_clock(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    urls = tmp_path / "urls.txt"
    urls.write_text("https://a.example/1.pdf\n", "utf-8")
    monkeypatch.setenv("DOCUMENTS_SOURCE", str(urls))
    sensor = NewFiles(project, "new_documents", tmp_path)
    last = monthly(load_settings()).get_partition_keys()[-1]
    assert sensor.tick() == [(last, last)]
    assert sensor.tick() == _("There is nothing to do.").format(path=urls)
    monkeypatch.setenv("DOWNLOAD_EVERY_HOURS", "0.000001")
    assert sensor.tick() == [(last, last)]
