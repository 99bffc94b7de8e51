"""The product in a home of its own, with webserver and daemon, seen through its two databases."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

import psutil
import psycopg
from psycopg import sql

from rag_resources.database.locate import APPLICATION_DATABASE, DAGSTER_DATABASE
from rag_resources.database.pool import Database
from rag_resources.database.ports import choose_port
from rag_resources.database.run_lock import held_run_locks
from rag_resources.database.server import EmbeddedServer
from rag_resources.store.chunks import refresh_statistics
from tests.crash.content import CONTENT, Content, content
from tests.dagster.dagster_ui import Ui, eventually, members

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "rag_assets" / "sample"
SAMPLE_MONTHS = ("2025-01", "2025-02")
LONGEST_NOTE = 2_800
MODEL = "e5_small"
STOP_S = 60.0
IDLE_S = 600.0
_POLL_S = 0.5

_RESULTS = {
    "questions": "SELECT query, relevant_note_ids::text, expected_answer, places::text "
    "FROM golden_dataset",
    "evaluations": """
        SELECT l.configuration, l.config_hash, l.golden_hash, l.model_digest, q.golden_id,
            q.first_relevant_rank, q.retrieved_note_ids::text, q.error::text
        FROM (
            SELECT DISTINCT ON (configuration) * FROM evaluation_results
            ORDER BY configuration, created_at DESC, id
        ) AS l JOIN evaluation_queries AS q ON q.evaluation_id = l.id""",
    "incomplete evaluations": """
        SELECT e.id FROM evaluation_results AS e WHERE e.total_queries <>
            (SELECT count(*) FROM evaluation_queries AS q WHERE q.evaluation_id = e.id)""",
    "serving": "SELECT configuration, config_hash, model FROM promotions ORDER BY id DESC LIMIT 1",
}
"""What the product makes beyond `CONTENT`, without times."""

_RUNS = """
    SELECT r.run_id, r.status, r.pipeline_name, (
        SELECT substring(e.event FROM 'Started process for run \\(pid: ([0-9]+)\\)')
        FROM event_logs AS e WHERE e.run_id = r.run_id AND e.event LIKE '%%Started process%%'
        LIMIT 1
    ) AS pid
    FROM runs AS r WHERE r.status <> ALL(%s) ORDER BY r.id"""
_ENDED = ["SUCCESS", "FAILURE", "CANCELED"]
_DISCONNECT = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
_UNFINISHED = {
    "backfill": "SELECT key, status FROM bulk_actions WHERE status IN ('REQUESTED', 'CANCELING')",
    "place of a pool": "SELECT concurrency_key, run_id FROM concurrency_slots "
    "WHERE run_id IS NOT NULL",
    "step that waits for a pool": "SELECT concurrency_key, run_id FROM pending_steps",
    "run without an end in its log": """
        SELECT run_id FROM event_logs WHERE dagster_event_type = 'PIPELINE_START'
        EXCEPT SELECT run_id FROM event_logs WHERE dagster_event_type
            IN ('PIPELINE_SUCCESS', 'PIPELINE_FAILURE', 'PIPELINE_CANCELED')""",
}
"""What Dagster's own tables must not hold when nothing runs."""
_LOOKED_AT = """
    SELECT EXISTS (
        SELECT FROM job_ticks AS t
        WHERE t.tick_body LIKE '%"job_name": "automation"%' AND t.status IN ('SKIPPED', 'SUCCESS')
            AND t.timestamp > coalesce((SELECT max(r.update_timestamp) FROM runs AS r), '-infinity')
    )"""
"""Whether the sensor that starts what follows from a run has looked since the last one ended."""


class Product:
    """A home with a corpus of two months, its embedded server, webserver and daemon.

    Args:
        folder: For everything; on a file system of its own if the disk is to be filled.
        months: How many there are; the corpus is of the last two.
    """

    def __init__(self, folder: Path, *, months: int = 2) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.home.mkdir()
        self.home.chmod(0o711)
        self.server = EmbeddedServer(self.home)
        self.log = folder / "log"
        self.months = last_months(datetime.now(UTC), months)
        port = choose_port(None)
        self.ui = Ui(f"http://127.0.0.1:{port}")
        self._ui: subprocess.Popen[bytes] | None = None
        self._sessions: list[int] = []
        self._is_automated = True
        self._is_scheduled = True
        foreign = ("DATABASE_URL", "DAGSTER_PG_URL", "DAGSTER_HOME", "NOTES_SOURCE_NAME")
        self.environment = {
            **{name: value for name, value in os.environ.items() if name not in foreign},
            "RAG_HOME": str(self.home),
            "NOTES_SOURCE": str(folder / "notes"),
            "GOLDEN_SOURCE": str(folder / "golden.json"),
            "FIRST_MONTH": self.months[0][:7],
            "EMBEDDING_MODELS": MODEL,
            "NOTE_EMBEDDING_MODEL": MODEL,
            "UI_PORT": str(port),
            "COLUMNS": "80",
        }
        _copy_corpus(folder, self.months[-2:])

    def __enter__(self) -> "Product":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop_ui()
        self._kill_sessions()
        self.server.down()

    def command(self, name: str, log: IO[str]) -> subprocess.Popen[bytes]:
        """Start `python -m rag_assets` in a session of its own; what it says goes to a file."""
        process = subprocess.Popen(
            [sys.executable, "-m", "rag_assets", name],
            env=self.environment,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        self._sessions.append(process.pid)
        return process

    def start_ui(self) -> None:
        """Start webserver and daemon, unless they run; wait until the code location is loaded.

        Schedules are switched off: one would change the state, and not where nothing was killed.
        """
        eventually(self._served)
        if self._is_scheduled:
            self.ui.stop_schedules()
            self._is_scheduled = False

    def _served(self) -> list[dict[str, Any]]:
        if self._ui is None or self._ui.poll() is not None:
            with self.log.open("a") as log:
                self._ui = self.command("ui", log)
        with suppress(AssertionError):  # A connection that died with a server is found out by use.
            return self.ui.repositories()
        return []

    def automate(self, automated: bool) -> None:
        """Switch the sensor that starts what follows from what was done on or off."""
        if automated != self._is_automated:
            self.ui.switch_sensor("automation", on=automated)
            self._is_automated = automated

    def stop_ui(self) -> None:
        """End webserver and daemon with all that they ever started."""
        if self._ui is None:
            return
        if self._ui.poll() is None:
            self._ui.send_signal(signal.SIGTERM)
            try:
                self._ui.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self._ui.kill()
        self._kill_sessions()
        self._ui.wait()
        self._ui = None

    def _kill_sessions(self) -> None:
        """Kill all that was ever started here, and is not the server."""
        for session in self._sessions:
            for member in members(session):
                member.kill()
        self._sessions.clear()

    def kill_part(self, words: str) -> None:
        """Kill webserver or daemon, by words of its command line; wait until the other one ends."""
        assert self._ui is not None
        part = next(p for p in members(self._ui.pid) if words in " ".join(p.cmdline()))
        part.kill()
        self._ui.wait(STOP_S)

    def query(self, database: str, statement: str, *values: Any) -> list[Any]:
        """Run a statement on one of the two databases."""
        with psycopg.connect(self.server.dsn(database), autocommit=True) as connection:
            cursor = connection.execute(statement, values or None)
            return cursor.fetchall() if cursor.description else []

    def change(self, statements: Sequence[str]) -> None:
        """Run statements on the application's database.

        The statistics of words follow: otherwise the end state depends on whether the hourly purge,
        which refreshes them, comes while a work is done that chunks nothing.
        """
        for statement in statements:
            self.query(APPLICATION_DATABASE, statement)
        with (
            Database(self.server.dsn(APPLICATION_DATABASE)) as database,
            database.transaction() as connection,
        ):
            refresh_statistics(connection)

    def save(self, database: str, name: str) -> None:
        """Keep a copy of a database under a name."""
        self._copy(database, name)

    def restore(self, database: str, name: str) -> None:
        """Make a database what its copy is; who is connected to it loses the connection."""
        self._copy(name, database)

    def _copy(self, source: str, target: str) -> None:
        names = sql.Identifier(target), sql.Identifier(source)
        drop = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(names[0])
        # By the default strategy PostgreSQL 18 may forget in a crash what a sequence gave.
        create = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy").format(*names)
        deadline = time.monotonic() + STOP_S
        while True:
            try:
                with psycopg.connect(self.server.dsn("postgres"), autocommit=True) as connection:
                    connection.execute(drop)
                    connection.execute(_DISCONNECT, [source])
                    connection.execute(create)
            # A sensor connects at any time, and may have made the database anew meanwhile.
            except (psycopg.errors.ObjectInUse, psycopg.errors.DuplicateDatabase):
                if time.monotonic() > deadline:
                    raise
            else:
                return

    def runs(self) -> list[tuple[str, str, str, str | None]]:
        """Return id, status, job and process of all runs that have not ended, oldest first."""
        return self.query(DAGSTER_DATABASE, _RUNS, _ENDED)

    def last_run(self) -> str | None:
        """Return the id of the newest run, ended or not."""
        rows = self.query(DAGSTER_DATABASE, "SELECT run_id FROM runs ORDER BY id DESC LIMIT 1")
        return rows[0][0] if rows else None

    def processes_of_runs(self) -> list[psutil.Process]:
        """Return the live processes of the daemon's runs."""
        found = [_live(pid) for _, _, _, pid in self.runs()]
        return [process for process in found if process]

    def dead_runs(self) -> list[str]:
        """Return the runs in progress that no process executes."""
        runs = [run for run in self.runs() if run[1] in ("STARTING", "STARTED", "CANCELING")]
        held = held_run_locks(self.server.dsn(APPLICATION_DATABASE), [run[0] for run in runs])
        return [
            f"{job} {run_id} is {status}"
            for run_id, status, job, pid in runs
            if run_id not in held and not _live(pid)
        ]

    def is_stuck(self) -> list[str]:
        """Return the queued runs, if nothing is in progress that they could wait for."""
        runs = self.runs()
        if any(status in ("STARTING", "STARTED", "CANCELING") for _, status, *_ in runs):
            return []
        return [f"{job} {run_id} is {status}" for run_id, status, job, _ in runs]

    def wait_until_idle(self) -> list[str]:
        """Wait until no run is queued or in progress; return what is still there after `IDLE_S`."""
        deadline = time.monotonic() + IDLE_S
        while left := self.unfinished():
            if time.monotonic() > deadline:
                return left
            time.sleep(_POLL_S)
        return []

    def unfinished(self) -> list[str]:
        """Return all of Dagster's rows that must not be there when nothing runs."""
        left = [f"{job} {run_id} is {status}" for run_id, status, job, _ in self.runs()]
        for name, statement in _UNFINISHED.items():
            left += [f"{name}: {row}" for row in self.query(DAGSTER_DATABASE, statement)]
        if self._is_automated and self.query(DAGSTER_DATABASE, _LOOKED_AT) != [(True,)]:
            left.append("automation has not looked at the last run yet")
        return left

    def content(self) -> Content:
        """Return all that the product made, without times."""
        with Database(self.server.dsn(APPLICATION_DATABASE)) as database:
            return content(database, {**CONTENT, **_RESULTS})

    def said(self, log: Path) -> list[str]:
        """Return the lines of a command that no user should see."""
        text = log.read_text("utf-8", errors="replace")
        return [line for line in text.splitlines() if _UNREADABLE.search(line)]


_UNREADABLE = re.compile(
    r"Traceback|Error inesperado|Warning|WARNING|Retrying|psycopg2?\.|dagster\._"
)


def _live(pid: str | None) -> psutil.Process | None:
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(int(pid)) if pid else None
        if process and process.status() != psutil.STATUS_ZOMBIE:
            return process
    return None


def last_months(now: datetime, count: int) -> tuple[str, ...]:
    """Return the keys of the months before this one, the earliest first.

    A month of the product's is a partition, each with its own events: a corpus that begins years
    ago costs a main job more for empty months than for its notes.
    """
    this = now.year * 12 + now.month - 1
    return tuple(f"{m // 12}-{m % 12 + 1:02}-01" for m in range(this - count, this))


def _copy_corpus(folder: Path, months: Sequence[str]) -> None:
    """Copy the questions about notes of two months that are not long, and these notes.

    Args:
        folder: For notes and questions.
        months: In which the notes were written, instead of `SAMPLE_MONTHS`.
    """
    paths = {path.stem: path for path in (SAMPLE / "notes").rglob("*.md")}
    short = {
        name
        for name, path in paths.items()
        if name[:7] in SAMPLE_MONTHS and len(path.read_text("utf-8")) <= LONGEST_NOTE
    }
    entries = json.loads((SAMPLE / "golden.json").read_text("utf-8"))["entries"]
    entries = [entry for entry in entries if short.issuperset(entry["relevantNotes"])]
    for name in {name for entry in entries for name in entry["relevantNotes"]}:
        target = folder / "notes" / f"{name}.md"
        target.parent.mkdir(exist_ok=True)
        month = months[SAMPLE_MONTHS.index(name[:7])]
        text = paths[name].read_text("utf-8")
        written = re.sub(r"^created_at: .*", f"created_at: {month}", text, flags=re.MULTILINE)
        target.write_text(written, "utf-8")
    (folder / "golden.json").write_text(json.dumps({"entries": entries}), "utf-8")
