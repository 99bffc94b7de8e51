"""Runs contenders: each task in a process of its own, with the interpreter its product needs."""

import json
import shutil
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.peers.contender import OUR_OWN
from benchmarks.peers.worker import READY, Request
from rag_resources.database.server import EmbeddedServer
from tests.waiting import wait_until

REPOSITORY = Path(__file__).parents[2]
KILLED_AT = (0.3, 0.6, 0.9)
"""Shares of the time that ingestion takes."""


@dataclass(frozen=True, slots=True)
class Killed:
    """A run killed in the middle of ingestion, and the run after it.

    Attributes:
        stored: Passages that were there after the kill.
        error: Name of the next run's error; empty if it succeeded.
        missing: Passages that were not there after the next run.
        surplus: Passages that were there too often.
    """

    stored: int
    error: str
    missing: int
    surplus: int


class Bench:
    """Gives each contender a database and a folder of its own on one server.

    Args:
        home: For files; readable by the server's user.
        server: Running.
        peers: The peers' Python interpreter.

    Attributes:
        versions: Of the packages of all that ran.
    """

    def __init__(self, home: Path, server: EmbeddedServer, peers: Path) -> None:
        self._home = home
        self._server = server
        self._peers = peers
        self.versions: dict[str, str] = {}

    def run(self, contender: str, task: str, workload: Path) -> dict[str, Any]:
        """Do a task from the beginning."""
        name = self._renewed(contender, task)
        return self._finish(self._start(contender, task, workload, name), name)

    def kill(self, contender: str, workload: Path, ingest_s: float) -> list[Killed]:
        """Kill ingestion at some moments, each time from the beginning, and run it again."""
        return [self._kill(contender, workload, share * ingest_s) for share in KILLED_AT]

    def _kill(self, contender: str, workload: Path, after_s: float) -> Killed:
        name = self._renewed(contender, "killed")
        process = self._start(contender, "ingest", workload, name)
        line = process.stdout.readline() if process.stdout else ""
        if line.strip() != READY:
            raise SystemExit(f"{contender}: did not begin to ingest")
        time.sleep(after_s)
        process.kill()
        process.communicate()
        self._wait_until_alone(name)
        found = self._finish(self._start(contender, "recover", workload, name), name)
        after = found["after"]
        return Killed(found["left"]["stored"], found["error"], after["missing"], after["surplus"])

    def _renewed(self, contender: str, task: str) -> str:
        """Make an empty database and an empty folder of one name."""
        name = f"{task}_{contender}"
        with psycopg.connect(self._server.dsn("postgres"), autocommit=True) as connection:
            connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        self._server.ensure_database(name)
        shutil.rmtree(self._home / name, ignore_errors=True)
        (self._home / name).mkdir()
        return name

    def _start(self, contender: str, task: str, workload: Path, name: str) -> subprocess.Popen[str]:
        folder = self._home / name
        request = Request(contender, task, self._server.dsn(name), str(workload), str(folder))
        (folder / "request.json").write_text(json.dumps(asdict(request)), encoding="utf-8")
        python = sys.executable if contender in OUR_OWN else str(self._peers)
        return subprocess.Popen(
            [
                *(python, "-m", "benchmarks.peers.worker"),
                *(str(folder / "request.json"), str(folder / "result.json")),
            ],
            cwd=REPOSITORY,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def _finish(self, process: subprocess.Popen[str], name: str) -> dict[str, Any]:
        _, errors = process.communicate()
        if process.returncode != 0:
            raise SystemExit(f"{name}: {errors}")
        result: dict[str, Any] = json.loads(
            (self._home / name / "result.json").read_text(encoding="utf-8")
        )
        self.versions |= result["versions"]
        return result

    def _wait_until_alone(self, database: str) -> None:
        """Wait until the server has noticed that a client is gone; it may write until then."""
        others = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s"
        with psycopg.connect(self._server.dsn("postgres"), autocommit=True) as connection:
            wait_until(lambda: connection.execute(others, (database,)).fetchone() == (0,), 60)
