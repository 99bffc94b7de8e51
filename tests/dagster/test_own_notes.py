"""A person's notes and the sample are never mixed unasked, by any command and settings."""

import json
import os
import pty
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import dagster as dg
import psycopg
import pytest
from dagster_project import (
    CHUNKS,
    EMBEDDINGS,
    GOLDEN,
    MONTHS,
    NOTES,
    QUIET,
    SAMPLE,
    Corpus,
    Project,
    definitions,
    failure_texts,
    prepare,
)

from rag_resources.application import open_application
from rag_resources.core.errors import SettingsChangedError
from rag_resources.core.messages import Message
from rag_resources.database.server import EmbeddedServer
from rag_resources.ingestion.content_settings import DOCUMENTS_SETTINGS, require_settings
from rag_resources.settings import Settings, load_settings
from tests.databases import cloned

SAMPLE_NOTES = len(list((SAMPLE / "notes").rglob("*.md")))
SAMPLE_QUESTIONS = len(json.loads((SAMPLE / "golden.json").read_text("utf-8"))["entries"])
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


def test_the_main_job_of_a_forgetful_shell_changes_nothing(own: Project) -> None:
    """It names the source it would no longer read, says how to go on, and ends with 2."""
    before = contents(own)
    done = command("rag_assets", "run")
    assert (done.returncode, done.stdout) == (2, "")
    change = Message.SETTING_CHANGED.format(
        name="NOTES_SOURCE", before=f"«{own.corpus.notes}»", after=Message.SETTING_NOTHING
    )
    assert Message.SETTINGS_CHANGED in done.stderr
    assert change in done.stderr
    assert contents(own) == before


def test_a_misspelt_variable_is_a_forgotten_one(own: Project) -> None:
    before = contents(own)
    done = command("rag_assets", "run", environment={"NOTE_SOURCE": str(own.corpus.notes)})
    assert done.returncode == 2
    assert "NOTES_SOURCE" in done.stderr
    assert contents(own) == before


def test_a_folder_that_never_was_there_does_not_stand_in_the_way_of_the_right_one(
    own: Project, tmp_path: Path
) -> None:
    """Nothing was read from it. A folder that was read must be accepted if it changes."""
    notes, documents = own.corpus.notes, tmp_path / "documentos"
    documents.mkdir()

    def read_from(folder: Path) -> None:
        settings = load_settings(
            notes_source=notes,
            documents_source=str(folder),
            files_url=(tmp_path / "ficheros").as_uri(),
        )
        with open_application(settings) as opened:
            require_settings(opened.database, settings, DOCUMENTS_SETTINGS)

    read_from(tmp_path / "documentoz")
    read_from(documents)
    with pytest.raises(SettingsChangedError, match="DOCUMENTS_SOURCE"):
        read_from(tmp_path / "documentoz")


@pytest.mark.parametrize("asset", [NOTES, GOLDEN], ids=["notes", "golden"])
def test_the_assets_refuse_what_the_main_job_refuses(own: Project, asset: dg.AssetKey) -> None:
    before = contents(own)
    result = own.run(asset, months=MONTHS if asset == NOTES else ())
    assert not result.success
    assert Message.SETTINGS_CHANGED in failure_texts(result)
    assert contents(own) == before


def test_the_sensor_requests_nothing(own: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of another source than the database was filled with; its cursor stays."""
    monkeypatch.setenv("NOTES_SOURCE", str(SAMPLE / "notes"))
    sensor = definitions().resolve_sensor_def("new_notes")
    context = dg.build_sensor_context(instance=own.instance)
    result = sensor(context)
    assert isinstance(result, dg.SkipReason)
    assert "NOTES_SOURCE" in (result.skip_message or "")


def test_own_notes_of_an_unknown_source_get_no_sample_either(
    own: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A database from before settings were stored: nothing is read, and that is said."""
    own.query("DELETE FROM content_settings")
    monkeypatch.setenv("DATABASE_URL", "")
    before = contents(own)
    settings = load_settings().model_copy(update={"rag_home": Path(os.environ["RAG_HOME"])})
    with open_application(load_settings(database_url=own.database_url)) as application:
        source = require_settings(application.database, settings, ["NOTES_SOURCE"])
    assert (source.notes, source.golden) == (None, None)
    sources = f"notes ({len(before) - len(own.corpus.questions())})"
    assert source.notice == Message.SOURCE_NOT_NAMED.format(sources=sources)
    assert contents(own) == before


def test_the_sample_comes_among_own_notes_when_asked(own: Project) -> None:
    """Under its own source; its questions are added, and no other goes."""
    before = contents(own)
    questions = len(own.corpus.questions())
    for asset in ("notes", "golden_dataset"):
        config = {"ops": {asset: {"config": {"sample": True}}}}
        key = dg.AssetKey(asset)
        every_month = ("2024-11-01", "2026-10-01") if key == NOTES else ()
        result = own.run(key, months=every_month, run_config=config)
        assert result.success, failure_texts(result)
    assert by_source(own)["sample"] == SAMPLE_NOTES
    assert set(before) <= set(contents(own))
    (count,) = own.query("SELECT count(*) FROM golden_dataset")[0]
    assert count > questions


def test_other_settings_are_accepted_by_command(
    own: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until then `rag settings show` names them; afterwards the assets go on."""
    other = own.corpus.copy(tmp_path / "otra")
    monkeypatch.setenv("NOTES_SOURCE", str(other.notes))
    monkeypatch.setenv("GOLDEN_SOURCE", str(own.corpus.golden))
    shown = command("rag_resources.cli", "settings", "show")
    assert Message.SETTINGS_DIFFER in shown.stdout
    assert str(other.notes) in shown.stdout
    assert command("rag_resources.cli", "settings", "accept").returncode == 0
    assert Message.SETTINGS_SAME in command("rag_resources.cli", "settings", "show").stdout
    assert own.run(NOTES, months=MONTHS).success


def test_a_source_that_does_not_exist_is_told_as_such(own: Project) -> None:
    """A mistyped path is not taken for another source that a person may accept unseen."""
    done = command("rag_assets", "run", environment={"NOTES_SOURCE": "/no/hay"})
    assert done.returncode == 2
    assert Message.SETTING_PATH_MISSING.format(path="/no/hay") in done.stderr


def test_chunking_and_models_are_settings_of_the_content(
    indexed: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("CHUNKING__MAX_TOKENS", "300")
        result = indexed.run(CHUNKS, months=MONTHS)
        assert "CHUNKING: antes max_tokens 512" in failure_texts(result)
    monkeypatch.setenv("EMBEDDING_MODELS", "use_multilingual")
    refused = command("rag_assets", "run").stderr
    assert "EMBEDDING_MODELS" in refused
    assert Message.SETTINGS_MODELS_CHANGED in refused, "nothing would be mixed"
    assert indexed.run(EMBEDDINGS, months=MONTHS).success


def test_a_person_at_a_terminal_is_asked(own: Project, tmp_path: Path) -> None:
    """What decides is the answer; `rag ingest` asks for its tenant as the main job does."""
    note = tmp_path / "nota.md"
    note.write_text("Una nota de otra persona.")
    os.environ["TENANT"] = "blas"
    try:
        arguments = ("rag_resources.cli", "ingest", str(note))
        assert Message.SETTINGS_TENANT_UNKNOWN in command(*arguments).stderr
        code, output = answered(arguments, "n")
        assert (code, "TENANT: antes «default», ahora «blas»" in output) == (2, True)
        assert own.query("SELECT id FROM notes WHERE tenant_id = 'blas'") == []
        assert answered(arguments, "s")[0] == 0
        assert len(own.query("SELECT id FROM notes WHERE tenant_id = 'blas'")) == 1
        assert command(*arguments).returncode == 0
    finally:
        del os.environ["TENANT"]


# The sample's own database


@pytest.fixture
def sample(
    server: EmbeddedServer,
    template_database: str,
    dagster_template: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Project:
    """A database as an older version left it: the sample's notes under the source `notes`."""
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
            made.query("UPDATE notes SET source = 'notes'")
            made.query("DELETE FROM content_settings")
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
            run_config={**QUIET, "ops": {asset: {"config": {"sample": True}}}},
            tags=tags if window else {},
        )
        assert result.success, failure_texts(result)


def test_a_sample_under_its_former_source_gets_no_second_copy(sample: Project) -> None:
    """Ids, and so chunks, vectors and relevant notes, stay."""
    ids = sample.query("SELECT id FROM notes ORDER BY id")
    assert by_source(sample) == {"notes": SAMPLE_NOTES}
    fill_sample(sample)
    assert by_source(sample) == {"sample": SAMPLE_NOTES}
    assert sample.query("SELECT id FROM notes ORDER BY id") == ids
    (questions,) = sample.query("SELECT count(*)::int FROM golden_dataset")[0]
    assert questions == SAMPLE_QUESTIONS


def test_own_notes_do_not_come_into_the_samples_database(
    sample: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By no command and no asset, unless a person accepts it."""
    folder = tmp_path / "mias"
    folder.mkdir()
    (folder / "una.md").write_text("Una nota mía.")
    refused = command("rag_resources.cli", "ingest", str(folder))
    assert refused.returncode == 2
    assert Message.SETTING_SAMPLE in refused.stderr
    with monkeypatch.context() as patch:
        patch.setenv("NOTES_SOURCE", str(folder))
        assert Message.SETTING_SAMPLE in failure_texts(sample.run(NOTES, months=MONTHS))
        assert command("rag_assets", "run").returncode == 2
    assert by_source(sample) == {"sample": SAMPLE_NOTES}
    reserved = command("rag_resources.cli", "ingest", str(folder), "--source-name", "sample")
    assert reserved.returncode == 2

    accepted = command("rag_resources.cli", "ingest", str(folder), "--accept-settings")
    assert accepted.returncode == 0, accepted.stderr
    assert by_source(sample) == {"sample": SAMPLE_NOTES, "notes": 1}


def test_the_samples_own_folder_is_the_sample_by_any_name(own: Project) -> None:
    """Named as a path it does not come among other notes either."""
    before = contents(own)
    done = command("rag_resources.cli", "ingest", str(SAMPLE / "notes"))
    assert done.returncode == 2
    assert Message.SETTING_SAMPLE in done.stderr
    assert contents(own) == before


def test_nothing_named_and_nothing_there_is_the_sample(
    server: EmbeddedServer, template_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And stays so, until notes or questions of another source are there."""
    monkeypatch.chdir(tmp_path)
    for name in Settings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)
    settings = load_settings(rag_home=tmp_path)
    with cloned(server, template_database) as (database,):
        url = server.dsn(database)
        with open_application(load_settings(database_url=url)) as application:
            for _ in range(2):
                source = require_settings(application.database, settings, ["NOTES_SOURCE"])
                assert (source.notes, source.name) == (SAMPLE / "notes", "sample")
            with psycopg.connect(url) as connection:
                connection.execute("INSERT INTO notes (content) VALUES ('Mía.')")
                connection.execute("DELETE FROM content_settings")
            source = require_settings(application.database, settings, ["NOTES_SOURCE"])
            assert (source.notes, source.name) == (None, "notes")
