"""A person's notes and the sample are never mixed unasked, by any command and settings."""

import os
import pty
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import dagster as dg
import pytest
from dagster_project import (
    GOLDEN,
    MONTHS,
    NOTES,
    SAMPLE,
    Corpus,
    Project,
    definitions,
    failure_texts,
    prepare,
)

from rag_resources.application import open_application
from rag_resources.database.server import EmbeddedServer
from rag_resources.ingestion.content_source import source_to_read
from rag_resources.languages.messages import _
from rag_resources.settings import Settings, load_settings
from tests.databases import cloned

SAMPLE_NOTES = len(list((SAMPLE / "notes").rglob("*.md")))
UNNAMED = ("NOTES_SOURCE", "GOLDEN_SOURCE")


@pytest.fixture
def own(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project with its own notes and questions, whose shell then lacks the settings."""
    monkeypatch.chdir(tmp_path)
    for path in project.corpus.notes.rglob("*.md"):
        path.write_text(path.read_text("utf-8") + "\nY algo mío.\n", "utf-8")
    rows = [{**row, "query": f"{row['query']} Lo mío."} for row in project.corpus.questions()]
    project.corpus.ask([{name: row[name] for name in row.keys() - {"id"}} for row in rows])
    assert project.run(NOTES, months=MONTHS).success
    assert project.run(GOLDEN).success
    for name in UNNAMED:
        monkeypatch.delenv(name)
    return project


def contents(project: Project) -> list[tuple[object, ...]]:
    """Every note and question, with when it was written."""
    return [
        *project.query("SELECT id, source, content, updated_at FROM notes ORDER BY id"),
        *project.query("SELECT id, query, updated_at FROM golden_dataset ORDER BY id"),
    ]


def by_source(project: Project) -> dict[str, int]:
    rows = project.query("SELECT source, count(*)::int FROM notes GROUP BY source")
    return dict(rows)


def command(
    module: str, *arguments: str, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command as a shell does, without a terminal."""
    return subprocess.run(
        [sys.executable, "-m", module, *arguments],
        env={**os.environ, "COLUMNS": "300", **(environment or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def answered(arguments: Sequence[str], answer: str) -> tuple[int, str]:
    """Run a command on a terminal, answer its question, and return its code and output."""
    terminal, ours = pty.openpty()
    with os.fdopen(terminal, "wb", buffering=0) as keyboard:
        keyboard.write(answer.encode() + b"\n")
        done = subprocess.run(
            [sys.executable, "-m", *arguments],
            env={**os.environ, "COLUMNS": "300"},
            stdin=ours,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        os.close(ours)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("asset", [NOTES, GOLDEN], ids=["notes", "golden"])
def test_the_assets_refuse_what_the_main_job_refuses(
    own: Project, asset: dg.AssetKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTES_SOURCE", str(SAMPLE / "notes"))
    before = contents(own)
    result = own.run(asset, months=MONTHS if asset == NOTES else ())
    assert not result.success
    assert "--yes" in failure_texts(result)
    assert command("rag_assets", "run").returncode == 2
    assert contents(own) == before


def test_the_sensor_requests_nothing(own: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a source whose notes would join others; its cursor stays."""
    monkeypatch.setenv("NOTES_SOURCE", str(SAMPLE / "notes"))
    sensor = definitions().resolve_sensor_def("new_notes")
    context = dg.build_sensor_context(instance=own.instance)
    result = sensor(context)
    assert isinstance(result, dg.SkipReason)
    assert "--yes" in (result.skip_message or "")


def test_own_notes_get_no_sample_from_a_shell_that_names_no_source(
    own: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is read, and that is said."""
    monkeypatch.setenv("DATABASE_URL", "")
    before = contents(own)
    settings = load_settings().model_copy(update={"rag_home": Path(os.environ["RAG_HOME"])})
    with open_application(load_settings(database_url=own.database_url)) as application:
        source = source_to_read(application.database, settings)
    assert (source.notes, source.golden) == (None, None)
    sources = f"notes ({len(before) - len(own.corpus.questions())})"
    assert source.notice == _(
        "NOTES_SOURCE is not set, and the database already has notes or questions ({sources}): no "
        "source is read, not even the sample. Set NOTES_SOURCE if you want yours to be read."
    ).format(sources=sources)
    assert contents(own) == before


def test_a_person_at_a_terminal_is_asked(own: Project, tmp_path: Path) -> None:
    """What decides is the answer. Once a source has notes, nobody is asked again."""
    note = tmp_path / "nota.md"
    note.write_text("Otra nota.")
    os.environ["NOTES_SOURCE_NAME"] = "otras"
    try:
        arguments = ("rag_resources.cli", "ingest", str(note))
        assert command(*arguments).returncode == 2
        assert answered(arguments, "n")[0] == 2
        assert "otras" not in by_source(own)
        assert answered(arguments, "s")[0] == 0
        assert by_source(own)["otras"] == 1
        assert command(*arguments).returncode == 0
    finally:
        del os.environ["NOTES_SOURCE_NAME"]
    named = command("rag_resources.cli", "ingest", str(note), "--source-name", "con nombre")
    assert named.returncode == 0, "whoever names it has answered"


# The sample's own database


@pytest.fixture
def sample(
    server: EmbeddedServer,
    template_database: str,
    dagster_template: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Project:
    """A database with the sample."""
    monkeypatch.chdir(tmp_path)
    names = cloned(server, template_database, dagster_template)
    with names as (database, dagster):
        for name in Settings.model_fields:
            monkeypatch.delenv(name.upper(), raising=False)
        monkeypatch.setenv("RAG_HOME", str(tmp_path / "home"))
        monkeypatch.setenv("DATABASE_URL", server.dsn(database))
        monkeypatch.setenv("DAGSTER_PG_URL", server.dsn(dagster))
        prepare(load_settings())
        with dg.DagsterInstance.get() as instance:
            project = Project(Corpus(SAMPLE / "notes", SAMPLE / "golden.json"), "", instance)
            made = Project(project.corpus, server.dsn(database), instance)
            fill_sample(made)
            yield made


def fill_sample(project: Project) -> None:
    """Ingest all of the sample and its questions, as a person who asked for it."""
    job = definitions()
    for name, window in (("ingest", True), ("golden", False)):
        asset = "notes" if name == "ingest" else "golden_dataset"
        tags = {
            "dagster/asset_partition_range_start": "2024-11-01",
            "dagster/asset_partition_range_end": "2026-10-01",
        }
        result = job.resolve_job_def(name).execute_in_process(
            instance=project.instance,
            asset_selection=[dg.AssetKey(asset)],
            raise_on_error=False,
            run_config={"ops": {asset: {"config": {"sample": True}}}},
            tags=tags if window else {},
        )
        assert result.success, failure_texts(result)


def test_own_notes_do_not_come_into_the_samples_database(
    sample: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By no command and no asset, unless a person accepts it."""
    folder = tmp_path / "mias"
    folder.mkdir()
    (folder / "una.md").write_text("Una nota mía.")
    refused = command("rag_resources.cli", "ingest", str(folder))
    assert refused.returncode == 2
    assert "sample" in refused.stderr
    with monkeypatch.context() as patch:
        patch.setenv("NOTES_SOURCE", str(folder))
        assert "--yes" in failure_texts(sample.run(NOTES, months=MONTHS))
        assert command("rag_assets", "run").returncode == 2
    assert by_source(sample) == {"sample": SAMPLE_NOTES}
    reserved = command("rag_resources.cli", "ingest", str(folder), "--source-name", "sample")
    assert reserved.returncode == 2

    accepted = command("rag_resources.cli", "ingest", str(folder), "--yes")
    assert accepted.returncode == 0, accepted.stderr
    assert by_source(sample) == {"sample": SAMPLE_NOTES, "notes": 1}
