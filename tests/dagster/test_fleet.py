"""Runs on Celery workers: executed there, found dead when their worker is killed, and canceled."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
import psycopg
import pytest
import yaml
from dagster._core.code_pointer import ModuleCodePointer
from dagster._core.launcher.base import LaunchRunContext, WorkerStatus
from dagster._core.origin import JobPythonOrigin, RepositoryPythonOrigin
from dagster_project import MONTHS, Corpus, Project, definitions, environment, opened
from dagster_ui import eventually, members

from rag_assets.instance import INSTANCE as DEFAULT
from rag_assets.runs.celery_launcher import FleetRunLauncher
from rag_assets.runs.liveness import RUN_LOCK, end_dead_runs
from rag_resources.database.server import EmbeddedServer
from rag_resources.languages.messages import _
from tests.databases import cloned
from tests.redis_server import RedisServer

INSTANCE_FILE = Path(__file__).parents[2] / "deploy" / "celery" / "dagster.yaml"
CODE = RepositoryPythonOrigin(
    executable_path=sys.executable,
    code_pointer=ModuleCodePointer("rag_assets.definitions", "defs"),
)
MONTH_TAGS = {
    "dagster/asset_partition_range_start": MONTHS[0],
    "dagster/asset_partition_range_end": MONTHS[-1],
}


@dataclass(frozen=True)
class Fleet:
    """A project whose instance sends runs to Celery, and its workers."""

    project: Project
    broker: RedisServer
    folder: Path

    @property
    def instance(self) -> dg.DagsterInstance:
        """Its Dagster instance."""
        return self.project.instance

    @property
    def launcher(self) -> FleetRunLauncher:
        """What sends the runs."""
        launcher = self.instance.run_launcher
        assert isinstance(launcher, FleetRunLauncher)
        return launcher

    @contextmanager
    def worker(self, name: str) -> Iterator["subprocess.Popen[bytes]"]:
        """Run a worker with a home of its own."""
        home = self.folder / name
        (home / "dagster").mkdir(parents=True)
        (home / "dagster" / "dagster.yaml").write_bytes(INSTANCE_FILE.read_bytes())
        variables = {**os.environ, "RAG_HOME": str(home), "DAGSTER_HOME": ""}
        with (self.folder / f"{name}.log").open("w") as log:
            worker = subprocess.Popen(
                [sys.executable, "-m", "rag_assets", "worker"],
                env=variables,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            yield worker
        finally:
            kill(worker)

    def launch(self) -> str:
        """Send a run that ingests all notes; return its id."""
        job = definitions().resolve_job_def("ingest")
        origin = JobPythonOrigin("ingest", CODE)
        run = self.instance.create_run_for_job(job, tags=MONTH_TAGS, job_code_origin=origin)
        self.instance.report_engine_event("to be launched", run)
        starting = dg.DagsterEvent(dg.DagsterEventType.PIPELINE_STARTING.value, run.job_name)
        self.instance.report_dagster_event(starting, run.run_id)
        self.launcher.launch_run(LaunchRunContext(run, workspace=None))
        return run.run_id

    def status(self, run_id: str) -> str:
        """Return how far a run is."""
        return self.instance.get_run_by_id(run_id).status.value

    def health(self, run_id: str) -> WorkerStatus:
        """Return whether a run lives."""
        return self.launcher.check_run_worker_health(self.instance.get_run_by_id(run_id)).status

    def is_locked(self, run_id: str) -> bool:
        """Whether a run has taken its lock."""
        return RUN_LOCK in self.instance.get_run_by_id(run_id).tags

    def ends(self, run_id: str, status: str) -> None:
        """Wait until a run has ended, and see how."""
        ended = {"SUCCESS", "FAILURE", "CANCELED"}
        eventually(lambda: self.status(run_id) in ended, 120)
        assert self.status(run_id) == status


def kill(worker: "subprocess.Popen[bytes]") -> None:
    """Kill a worker with the runs that it executes."""
    for process in members(worker.pid):
        process.kill()
    worker.wait()


@contextmanager
def notes_are_locked(project: Project) -> Iterator[None]:
    """Let every run that writes notes wait."""
    with psycopg.connect(project.database_url) as connection:
        connection.execute("LOCK TABLE notes IN SHARE ROW EXCLUSIVE MODE")
        yield


@pytest.fixture
def fleet(
    server: EmbeddedServer,
    template_database: str,
    dagster_template: str,
    corpus: Corpus,
    tmp_path: Path,
) -> Iterator[Fleet]:
    """An empty project on an instance for Celery, without workers."""
    broker = RedisServer(tmp_path)
    broker.start()
    home = tmp_path / "home"
    (home / "dagster").mkdir(parents=True)
    (home / "dagster" / "dagster.yaml").write_bytes(INSTANCE_FILE.read_bytes())
    with (
        cloned(server, template_database, dagster_template) as (database, dagster),
        environment(CELERY_BROKER_URL=broker.url),
        opened(home, server.dsn(database), server.dsn(dagster), corpus) as project,
    ):
        yield Fleet(project, broker, tmp_path)
    broker.kill()


@pytest.mark.dagster
def test_a_run_of_a_killed_worker_is_found_dead_and_another_worker_does_its_work(
    fleet: Fleet,
) -> None:
    with fleet.worker("first") as first, notes_are_locked(fleet.project):
        killed = fleet.launch()
        eventually(lambda: fleet.is_locked(killed))
        assert fleet.health(killed) is WorkerStatus.RUNNING
        kill(first)
        eventually(lambda: fleet.health(killed) is WorkerStatus.NOT_FOUND, 30)
    assert end_dead_runs(fleet.instance) == [killed]
    assert fleet.status(killed) == "FAILURE"

    waiting = fleet.launch()
    with fleet.worker("second"):
        fleet.ends(waiting, "SUCCESS")
    notes = list(fleet.project.corpus.notes.rglob("*.md"))
    assert fleet.project.query("SELECT count(*) FROM notes") == [(len(notes),)]


@pytest.mark.dagster
def test_a_canceled_run_ends_as_one_and_its_worker_goes_on(fleet: Fleet) -> None:
    with fleet.worker("worker") as worker:
        with notes_are_locked(fleet.project):
            canceled = fleet.launch()
            eventually(lambda: fleet.is_locked(canceled))
            assert fleet.launcher.terminate(canceled)
            fleet.ends(canceled, "CANCELED")
        assert not fleet.launcher.terminate(canceled)
        fleet.ends(fleet.launch(), "SUCCESS")
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(60) == 0


@pytest.mark.parametrize(
    ("broker", "expected"),
    [
        (
            "",
            _(
                "CELERY_BROKER_URL is missing: the address of the Redis through which Celery "
                "hands out the runs, such as redis://127.0.0.1:6379/1."
            ),
        ),
        ("redis://127.0.0.1:1/0", "no reparte por Celery"),
    ],
)
def test_a_worker_says_what_it_lacks(project: Project, broker: str, expected: str) -> None:
    """An address of Redis, or an instance file that sends runs to workers."""
    result = subprocess.run(
        [sys.executable, "-m", "rag_assets", "worker"],
        env={**os.environ, "CELERY_BROKER_URL": broker},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 2
    assert expected in result.stderr
    assert project.instance.get_runs() == []


def test_the_instance_file_of_a_fleet_differs_from_the_default_where_it_has_to() -> None:
    default, fleet = (yaml.safe_load(path.read_text("utf-8")) for path in (DEFAULT, INSTANCE_FILE))
    changed = {key for key in default | fleet if default.get(key) != fleet.get(key)}
    assert changed == {"run_launcher", "run_retries", "run_monitoring", "concurrency"}
