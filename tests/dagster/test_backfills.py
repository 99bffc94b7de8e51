"""Backfills through webserver and daemon: two at once, one killed, one mended and run again."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from logging import getLogger
from pathlib import Path

import dagster as dg
import psycopg
import pytest
from dagster._daemon.monitoring.run_monitoring import monitor_started_run
from dagster_project import (
    CHUNKS,
    EMBEDDINGS,
    MONTHS,
    NOTE_EMBEDDINGS,
    NOTES,
    Corpus,
    Project,
    by_field,
    opened,
)
from dagster_ui import Ui, eventually, members

from rag_assets.instance import WORKSPACE
from rag_resources.database.ports import choose_port
from rag_resources.database.server import EmbeddedServer
from tests.databases import cloned

ALL = (NOTES, NOTE_EMBEDDINGS, CHUNKS, EMBEDDINGS)
OLD_MONTHS = tuple(f"2024-{month:02}-01" for month in range(7, 13))
BAD_NOTE, BUSY_NOTE = "2025-02-09-urgencias-la-fe", "2025-03-14-cuarenta"
# Dagster's, but that it looks for backfills every second: every 30, which nothing can change.
DAEMON = """
import dagster._daemon.backfill as backfill
from dagster._daemon.cli import main
backfill.DEFAULT_DAEMON_INTERVAL_SECONDS = 1
main()
"""


@dataclass(frozen=True)
class Deployment:
    """A project with its webserver and daemon."""

    project: Project
    ui: Ui

    @property
    def instance(self) -> dg.DagsterInstance:
        """The instance that webserver, daemon and this process have in common."""
        return self.project.instance

    def runs(self, backfill: str | None = None) -> list[dg.DagsterRun]:
        """The runs that index, in the order they were made."""
        tags = {"dagster/backfill": backfill} if backfill else None
        runs = self.instance.get_runs(dg.RunsFilter(tags=tags))
        return [run for run in reversed(runs) if run.run_op_concurrency]

    def running(self) -> list[dg.DagsterRun]:
        """Of those, the ones that take a place."""
        places = (dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED)
        return [run for run in self.runs() if run.status in places]

    def span(self, run: dg.DagsterRun) -> tuple[float, float]:
        """When a run was launched, and when it had ended."""
        events = self.instance.all_logs(run.run_id)
        times = {
            entry.dagster_event.event_type: entry.timestamp
            for entry in events
            if entry.dagster_event
        }
        ends = (dg.DagsterEventType.RUN_SUCCESS, dg.DagsterEventType.RUN_FAILURE)
        return times[dg.DagsterEventType.RUN_STARTING], max(times.get(end, 0.0) for end in ends)

    def kill(self, run: dg.DagsterRun) -> None:
        """Kill the process of a run."""
        events = [entry.dagster_event for entry in self.instance.all_logs(run.run_id)]
        said = "\n".join(event.message or "" for event in events if event)
        found = re.search(r"Started process for run \(pid: (\d+)\)", said)
        assert found, said
        os.kill(int(found[1]), signal.SIGKILL)

    def materialised(
        self, runs: Sequence[dg.DagsterRun], key: dg.AssetKey
    ) -> dict[str | None, dict[str, object]]:
        """The metadata of an asset's materialisations in some runs, by partition."""
        return {
            entry.asset_materialization.partition: by_field(entry.asset_materialization.metadata)
            for run in runs
            for entry in self.instance.all_logs(run.run_id)
            if entry.asset_materialization and entry.asset_materialization.asset_key == key
        }


@pytest.fixture
def deployment(
    server: EmbeddedServer,
    template_database: str,
    dagster_template: str,
    corpus: Corpus,
    tmp_path: Path,
) -> Iterator[Deployment]:
    """Sixteen notes of four months with their whole-note vectors, nothing migrated."""
    port = choose_port(None)
    with (
        cloned(server, template_database, dagster_template) as (database, dagster),
        opened(tmp_path / "home", server.dsn(database), server.dsn(dagster), corpus) as project,
        (tmp_path / "log").open("w") as log,
    ):
        assert project.run(NOTES, NOTE_EMBEDDINGS, months=MONTHS).success
        own = {"FIRST_MONTH": "2024-07", "EMBEDDING_MODELS": "use_multilingual", "NOTES_SOURCE": ""}
        commands = (
            ["-m", "dagster_webserver", "-w", str(WORKSPACE), "-p", str(port)],
            ["-c", DAEMON, "run", "-w", str(WORKSPACE)],
        )
        processes = [
            subprocess.Popen(
                [sys.executable, *command],
                env={**os.environ, **own},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            for command in commands
        ]
        try:
            made = Deployment(project, Ui(f"http://127.0.0.1:{port}"))
            eventually(made.ui.repositories)
            yield made
        finally:
            for process in processes:
                for member in members(process.pid):
                    member.kill()
                process.wait()
            print((tmp_path / "log").read_text()[-5000:])  # noqa: T201 - shown with a failure


@pytest.mark.dagster
def test_backfills_share_what_there_is_and_go_on_where_they_failed(deployment: Deployment) -> None:
    """One run indexes at a time, the newest months first; a question does not wait for it.

    A run that is killed gives its place to the next; a month with a bad note fails alone; from
    failure, only what failed is done again.
    """
    ui, project = deployment.ui, deployment.project
    refuse_chunks_of(project, BAD_NOTE)
    with psycopg.connect(project.database_url) as busy:
        busy.execute("SELECT FROM notes WHERE external_id = %s FOR UPDATE", [BUSY_NOTE])
        both = [
            ui.launch_backfill(ALL, (*OLD_MONTHS, *MONTHS)),
            ui.launch_backfill(ALL, MONTHS),
        ]
        eventually(lambda: len(deployment.runs(both[0]) + deployment.runs(both[1])) == 3)
        eventually(lambda: project.query("SELECT id FROM notes WHERE chunked_at IS NOT NULL"))
        question = ui.launch_job("retrieve")
        eventually(lambda: ui.run_status(question) == "SUCCESS")
        [stuck] = deployment.running()
        deployment.kill(stuck)
        eventually(lambda: ui.run_status(stuck.run_id) == "FAILURE")
    for backfill in both:
        eventually(lambda name=backfill: ui.backfill_status(name) == "COMPLETED_FAILED")

    spans = sorted(deployment.span(run) for run in deployment.runs()[1:])
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))
    first = {name: newest_first(deployment, name) for name in both}
    assert first[both[0]] == [MONTHS[-1], OLD_MONTHS[-1]]

    alive = next(name for name in both if stuck.tags["dagster/backfill"] != name)
    good = [month for month in MONTHS if month != MONTHS[1]]
    done = deployment.materialised(deployment.runs(alive), CHUNKS)
    assert sorted(set(done) - set(OLD_MONTHS)) == good
    chunked = project.query("SELECT id, chunked_at FROM notes WHERE chunked_at IS NOT NULL")
    assert len(chunked) == 15

    project.query("DROP TRIGGER refuse ON chunks")
    again = ui.reexecute_from_failure(alive)
    eventually(lambda: ui.backfill_status(again) == "COMPLETED_SUCCESS")
    runs = deployment.runs(again)
    redone = deployment.materialised(runs, CHUNKS)
    assert list(redone) == [MONTHS[1]]
    assert redone[MONTHS[1]]["migrated"] == 1
    assert not deployment.materialised(runs, NOTES)
    assert set(deployment.materialised(runs, EMBEDDINGS)) == set(MONTHS)
    assert set(chunked) < set(project.query("SELECT id, chunked_at FROM notes"))
    [(chunks, vectors)] = project.query(
        "SELECT (SELECT count(*) FROM chunks), (SELECT count(*) FROM vectors WHERE kind = 'chunk')"
    )
    assert chunks == vectors > 0


def newest_first(deployment: Deployment, backfill: str) -> list[str]:
    """The last month of each run of a backfill, in the order they were launched."""
    runs = sorted(deployment.runs(backfill), key=deployment.span)
    return [run.tags["dagster/asset_partition_range_end"] for run in runs]


def refuse_chunks_of(project: Project, note: str) -> None:
    """Let the database refuse the chunks of a note."""
    project.query(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " RAISE EXCEPTION 'sin permiso' USING ERRCODE = '23514'; END $$"
    )
    project.query(
        f"CREATE TRIGGER refuse BEFORE INSERT ON chunks FOR EACH ROW"
        f" WHEN (new.note_id = '{project.note_id(note)}') EXECUTE FUNCTION refuse()"
    )


def test_the_run_of_a_main_job_that_was_killed_is_reported(project: Project) -> None:
    """It has no code server: it is alive while it holds its lock in PostgreSQL."""
    instance = project.instance
    with psycopg.connect(project.database_url) as busy:
        busy.execute("LOCK TABLE notes IN SHARE MODE")
        command = [sys.executable, "-m", "rag_assets", "run"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            started = dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED])
            [record] = eventually(lambda: instance.get_run_records(started))
            monitor_started_run(instance, None, record, getLogger())
            assert instance.get_run_by_id(record.dagster_run.run_id).status.value == "STARTED"
        finally:
            process.kill()
            process.wait()
    monitor_started_run(instance, None, record, getLogger())
    assert instance.get_run_by_id(record.dagster_run.run_id).status.value == "FAILURE"
