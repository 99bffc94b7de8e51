"""Which runs count as dead before they have taken their lock in PostgreSQL."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
import grpc
import pytest
from dagster._core.launcher.base import CheckRunHealthResult
from dagster._grpc.__generated__ import dagster_api_pb2
from dagster._grpc.__generated__.dagster_api_pb2_grpc import (
    DagsterApiServicer,
    add_DagsterApiServicer_to_server,
)
from dagster._grpc.types import GetCurrentRunsResult
from dagster._serdes import serialize_value
from dagster_project import Project, definitions

from rag_assets.runs.liveness import RUN_LOCK, alive, end_dead_runs
from rag_resources.settings import load_settings

GRPC_INFO = ".dagster/grpc_info"
STARTING, STARTED = dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED


class CodeServer(DagsterApiServicer):  # type: ignore[misc]
    """Says which runs it has started, as Dagster's code server does."""

    def __init__(self) -> None:
        self.runs: list[str] = []

    def GetCurrentRuns(self, *_: object) -> dagster_api_pb2.GetCurrentRunsReply:
        """Return them."""
        result = GetCurrentRunsResult(current_runs=self.runs, serializable_error_info=None)
        return dagster_api_pb2.GetCurrentRunsReply(serialized_current_runs=serialize_value(result))


@contextmanager
def served(code_server: CodeServer, socket: Path) -> Iterator[None]:
    """Answer on a socket."""
    server = grpc.server(ThreadPoolExecutor(1))
    add_DagsterApiServicer_to_server(code_server, server)
    server.add_insecure_port(f"unix:{socket}")
    server.start()
    yield
    server.stop(None).wait()


def test_a_run_without_a_process_is_dead_before_it_has_its_lock(
    project: Project, tmp_path: Path
) -> None:
    """By what its code server says, and by its process, which may be a zombie.

    A code server that could not reach the database once looks after no process any more.
    """
    instance, socket = project.instance, tmp_path / "socket"
    place = {GRPC_INFO: json.dumps({"host": "localhost", "socket": str(socket)})}
    code_server = CodeServer()
    gone = subprocess.Popen([sys.executable, "-c", ""])  # not waited for: a zombie

    def run(*, known: bool = True, pid: int | None = None) -> dg.DagsterRun:
        job = definitions().resolve_job_def("retrieve")
        made = instance.create_run_for_job(job, status=STARTING, tags=place)
        code_server.runs += [made.run_id] * known
        if pid:
            instance.report_engine_event(f"Started process for run (pid: {pid}).", made)
        return made

    def health(made: dg.DagsterRun) -> str:
        return instance.run_launcher.check_run_worker_health(made).status.value

    with served(code_server, socket):
        os.waitid(os.P_PID, gone.pid, os.WEXITED | os.WNOWAIT)
        alive, zombie = run(pid=os.getpid()), run(pid=gone.pid)
        assert health(run()) == "RUNNING"
        assert health(alive) == "RUNNING"
        assert health(run(known=False)) == "NOT_FOUND"
        assert health(zombie) == "NOT_FOUND"
        gone.wait()
        assert health(zombie) == "NOT_FOUND"
    assert health(alive) == "NOT_FOUND"  # with its code server


def test_a_run_whose_main_job_died_before_it_started_is_ended(project: Project) -> None:
    """A main job holds the lock before there is a run; other runs wait for a launcher."""
    instance, job = project.instance, definitions().resolve_job_def("retrieve")
    settings = load_settings()
    waiting = instance.create_run_for_job(job)
    lost = instance.create_run_for_job(job)
    instance.add_run_tags(lost.run_id, {RUN_LOCK: lost.run_id})
    with alive(lost.run_id, settings):
        assert end_dead_runs(instance) == []
    assert end_dead_runs(instance) == [lost.run_id]
    found = {run.run_id: run.status.value for run in instance.get_runs()}
    assert found == {waiting.run_id: "NOT_STARTED", lost.run_id: "FAILURE"}


def test_a_run_that_ends_while_it_is_looked_at_is_not_failed(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was listed as in progress, then stored its success, then released its lock."""
    instance, launcher = project.instance, project.instance.run_launcher
    job = definitions().resolve_job_def("retrieve")
    run = instance.create_run_for_job(job, status=STARTED)
    instance.add_run_tags(run.run_id, {RUN_LOCK: run.run_id})
    check = launcher.check_run_worker_health

    def end_first(listed: dg.DagsterRun) -> CheckRunHealthResult:
        succeeded = dg.DagsterEvent(dg.DagsterEventType.RUN_SUCCESS.value, listed.job_name)
        instance.report_dagster_event(succeeded, listed.run_id)
        return check(listed)

    with monkeypatch.context() as patch:
        patch.setattr(launcher, "check_run_worker_health", end_first)
        assert end_dead_runs(instance) == []
    assert instance.get_run_by_id(run.run_id).status.value == "SUCCESS"
