"""The two commands for real, each in its own process: the main job, and webserver with daemon."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from dagster_project import (
    CHUNKS,
    EMBEDDINGS,
    MONTHS,
    NOTE_EMBEDDINGS,
    NOTES,
    Corpus,
    variables,
)
from dagster_ui import Ui, eventually, members

from rag_assets.instance import OURS
from rag_resources.database.ports import choose_port
from rag_resources.database.server import EmbeddedServer
from rag_resources.files import OTHERS
from rag_resources.settings import SAMPLE
from tests.command_line import OF_DOCUMENTS, call_rag, documented_commands, isolate
from tests.databases import cloned

ROOT = Path(__file__).parents[2]

ASSETS = (NOTES, NOTE_EMBEDDINGS, CHUNKS, EMBEDDINGS)


@dataclass(frozen=True)
class Home:
    """A RAG_HOME, as the environment of a command names it by the product's variables."""

    variables: Mapping[str, str]
    first_run: subprocess.CompletedProcess[str]

    @property
    def environment(self) -> dict[str, str]:
        """That of this process, with them."""
        return {**os.environ, **self.variables}

    def count(self, table: str) -> int:
        """Count the rows of a table."""
        with psycopg.connect(self.environment["DATABASE_URL"]) as connection:
            return connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]


def command(environment: Mapping[str, str], name: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        [sys.executable, "-m", "rag_assets", name],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


GOING_ON = ("REQUESTED", "CANCELING", "FAILING")
"""States of a backfill that is not at its end."""


@pytest.fixture(scope="module")
def home(
    server: EmbeddedServer,
    template_database: str,
    dagster_template: str,
    corpus: Corpus,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Home]:
    """A home in which the main job ran once, with both models."""
    folder = tmp_path_factory.mktemp("main_job")
    with cloned(server, template_database, dagster_template) as (database, dagster):
        short = corpus.copy(folder)
        short.shorten(2_800)
        own = variables(folder, server.dsn(database), server.dsn(dagster), short)
        own = {**own, "FIRST_MONTH": "2025-01", "COLUMNS": "80"}
        yield Home(own, command({**os.environ, **own}, "run"))


def test_the_main_job_ends_with_a_table_and_has_nothing_to_do_twice(home: Home) -> None:
    """The second time nothing is embedded and nothing evaluated; the same configuration serves."""
    first = home.first_run
    assert first.returncode == 0, first.stderr
    for name in ("baseline", "fulltext", "hybrid", "hybrid_weighted", "rapida", "semantic"):
        assert name in first.stdout
    assert "nDCG@10" in first.stdout  # whole, however narrow the terminal
    assert "Sirve la configuración «" in first.stdout
    tables = ("notes", "chunks", "vectors", "evaluation_results")
    counts = {table: home.count(table) for table in tables}
    notes = list(Path(home.environment["NOTES_SOURCE"]).rglob("*.md"))
    assert counts["notes"] == home.count("vectors WHERE kind = 'note'") == len(notes) > 0
    assert home.count("vectors WHERE kind = 'chunk'") >= counts["chunks"] > 0
    assert counts["evaluation_results"] == 8

    golden = Path(home.environment["GOLDEN_SOURCE"])
    text = golden.read_text("utf-8")
    golden.write_text(text.replace('"tags"', '"place": [], "tags"'), "utf-8")
    second = command({**home.environment, "COLUMNS": "1000"}, "run")
    golden.write_text(text, "utf-8")
    assert second.returncode == 0, second.stderr
    assert "place: clave desconocida" in second.stderr
    assert {table: home.count(table) for table in tables} == counts
    assert home.count("promotions") == 1
    assert "Sirve la configuración «" in second.stdout


def test_nobody_else_reads_what_the_main_job_leaves(home: Home) -> None:
    """Dagster's logs and the report, which quote notes; whatever the umask, here 022."""
    assert home.first_run.returncode == 0
    folder = Path(home.environment["RAG_HOME"])
    for name in OURS:
        made = [folder / name, *(folder / name).rglob("*")]
        assert [path for path in made if path.exists() and path.stat().st_mode & OTHERS] == []
    assert list((folder / "dagster").rglob("*.err"))
    assert (folder / "reports" / "evaluation.html").exists()


@pytest.mark.dagster
def test_webserver_and_daemon_work_together_and_end_together(home: Home, tmp_path: Path) -> None:
    """Sensors tick, a backfill ends, what passes is promoted, nothing outlives the end.

    A daemon that was killed is started again, and that is told.
    """
    assert home.first_run.returncode == 0
    port = choose_port(None)
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "rag_assets", "ui"],
            env={**home.environment, "UI_PORT": str(port)},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        ui = Ui(f"http://127.0.0.1:{port}")
        use(ui, home)
        [killed] = [each for each in members(process.pid) if "dagster._daemon" in each.cmdline()]
        killed.kill()
        eventually(lambda: (tmp_path / "log").read_text().count(ui.url) > 1)
        eventually(lambda: daemon_is_healthy(ui))
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0, "ten seconds on quiet cores"
        assert members(process.pid) == []
    except BaseException:
        print((tmp_path / "log").read_text()[-5000:])  # noqa: T201 - shown with the failure
        raise
    finally:
        for member in members(process.pid):
            member.kill()
        process.wait()


def use(ui: Ui, home: Home) -> None:
    """Do in the UI what a data engineer would."""
    nodes = eventually(ui.repositories)
    assert {"path": ["promoted_config"]} in [node["assetKey"] for node in nodes[0]["assetNodes"]]
    states = {sensor["name"]: sensor["sensorState"]["status"] for sensor in nodes[0]["sensors"]}
    sensors = ("new_notes", "waiting_notes", "new_documents", "outside_runs", "failed_runs")
    assert states == dict.fromkeys((*sensors, "automation"), "RUNNING")

    backfill = ui.launch_backfill(ASSETS, MONTHS[:2])
    eventually(lambda: daemon_is_healthy(ui))
    eventually(lambda: "SKIPPED" in ui.ticks("new_notes"))
    # An automation compares with its last tick: an evaluation before the first is no news.
    eventually(lambda: set(ui.ticks("automation")) & {"SUCCESS", "SKIPPED"})

    before = home.count("promotions")
    refused = ui.launch_job("promote", promotion_of("baseline"))
    eventually(lambda: ui.run_status(refused) == "FAILURE")
    assert home.count("promotions") == before
    evaluation = ui.launch_job("evaluate")
    eventually(lambda: ui.run_status(evaluation) == "SUCCESS")
    eventually(lambda: home.count("promotions") == before + 1)
    eventually(lambda: ui.backfill_status(backfill) not in GOING_ON)
    assert ui.backfill_status(backfill) == "COMPLETED_SUCCESS"
    # The main job has read the notes already: opening the UI reads nothing again.
    assert "SUCCESS" not in ui.ticks("new_notes")


def promotion_of(name: str) -> dict[str, Any]:
    """The run configuration that names what is to serve."""
    return {"ops": {"promoted_config": {"config": {"configuration": name}}}}


def daemon_is_healthy(ui: Ui) -> bool:
    """Whether every daemon that is needed has a heartbeat."""
    data = ui.ask(
        """{ instance { daemonHealth { allDaemonStatuses {
               daemonType required healthy } } } }"""
    )
    required = [
        status
        for status in data["instance"]["daemonHealth"]["allDaemonStatuses"]
        if status["required"]
    ]
    return {"SENSOR", "BACKFILL", "SCHEDULER", "ASSET", "QUEUED_RUN_COORDINATOR"} <= {
        status["daemonType"] for status in required if status["healthy"]
    }


PAGES = sorted({ROOT / "README.md", *(ROOT / "docs").glob("*.md")} - {OF_DOCUMENTS})


@pytest.mark.parametrize(
    "page", [page for page in PAGES if documented_commands(page)], ids=lambda page: page.stem
)
def test_the_commands_of_the_docs_do_what_the_page_shows(
    home: Home,
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In the order of the page, with files of questions and a folder of notes at hand."""
    assert home.first_run.returncode == 0
    shutil.copyfile(home.environment["GOLDEN_SOURCE"], tmp_path / "preguntas.json")
    shutil.copyfile(SAMPLE / "unanswerable.json", tmp_path / "sin_respuesta.json")
    (tmp_path / "notas").mkdir()
    (tmp_path / "notas" / "tejado.md").write_text("Se aprueba la obra del tejado.", "utf-8")
    isolate(monkeypatch, tmp_path, **home.variables)
    for arguments, shown in documented_commands(page):
        done = call_rag(monkeypatch, capsys, *arguments)
        # Eight questions are too few to calibrate, which it says.
        code = 1 if arguments[0] == "calibrate" else 0
        assert done.code == code, (arguments, done.out, done.err)
        missing = [word for word in re.findall(r"[^\W\d_]{3,}", shown) if word not in done.out]
        assert missing == [], (arguments, done.out)
