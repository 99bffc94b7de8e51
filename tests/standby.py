"""A real standby of an embedded server: copied from it, and following its write-ahead log."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psutil
import psycopg

from rag_resources.database.account import server_account
from rag_resources.database.binaries import usable_binaries
from rag_resources.database.cluster import Cluster
from rag_resources.database.ports import choose_port
from rag_resources.database.server import EmbeddedServer
from tests.waiting import wait_until


class Standby:
    """A standby in a folder of its own, which every user can enter.

    Args:
        primary: Runs.
        folder: Empty.
    """

    def __init__(self, primary: EmbeddedServer, folder: Path) -> None:
        self._primary = primary
        account = server_account(folder)
        self._cluster = Cluster(folder, account)
        self._binaries = usable_binaries(None, account)
        self._port = choose_port(None)
        account.own(self._cluster.folder)
        copied = account.run(
            [
                *(self._binaries.folder / "pg_basebackup", "--dbname", primary.dsn("postgres")),
                *("--pgdata", self._cluster.data, "--write-recovery-conf", "--checkpoint", "fast"),
            ],
            seconds=120,
        )
        assert copied.returncode == 0, copied.stderr
        self.start()

    def dsn(self, database: str) -> str:
        """Return the URL of a database on it."""
        parts = urlsplit(self._primary.dsn(database))
        place = f"{parts.username}:{parts.password}@127.0.0.1:{self._port}"
        return urlunsplit(parts._replace(netloc=place))

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self._cluster.launch(self._binaries, self._port)
        wait_until(self._answers, 60)

    def kill(self) -> None:
        """Kill it with all its processes."""
        pid = self._cluster.postmaster()
        if pid is None:
            return
        postmaster = psutil.Process(pid)
        processes = [*postmaster.children(recursive=True), postmaster]
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(processes, 10)

    def promote(self) -> None:
        """Make it a server of its own, as a failover does."""
        self._execute("SELECT pg_promote()")

    @contextmanager
    def behind(self) -> Iterator[None]:
        """Let it replay nothing in the block."""
        self._execute("SELECT pg_wal_replay_pause()")
        wait_until(lambda: self._execute("SELECT pg_get_wal_replay_pause_state()") == "paused")
        try:
            yield
        finally:
            self._execute("SELECT pg_wal_replay_resume()")

    def replayed(self) -> object:
        """How far it has replayed what the primary has written."""
        return self._execute("SELECT pg_last_wal_replay_lsn()")

    def _execute(self, statement: str) -> object:
        with psycopg.connect(self.dsn("postgres"), autocommit=True) as connection:
            row = connection.execute(statement).fetchone()
            return row[0] if row else None

    def _answers(self) -> bool:
        try:
            with psycopg.connect(self.dsn("postgres"), connect_timeout=5):
                return True
        except psycopg.OperationalError:
            return False
