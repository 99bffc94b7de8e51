"""A real pgbouncer in transaction mode, which tests put before the embedded server."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

from rag_resources.database.ports import choose_port
from rag_resources.database.server import EmbeddedServer
from tests.waiting import wait_until

BINARY = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin:/usr/local/sbin")
MISSING = "no pgbouncer is installed (Debian: apt-get install pgbouncer)"
SESSIONS = 3
"""Of the server, for each database: fewer than a pool has connections, so that they are shared."""


class PgBouncer:
    """A pgbouncer on loopback, for every database of a server.

    Args:
        server: Runs.
        folder: Empty.
        sessions: How many sessions of the server a database may have.
    """

    def __init__(self, server: EmbeddedServer, folder: Path, *, sessions: int = SESSIONS) -> None:
        if BINARY is None:
            pytest.skip(MISSING)
        behind = urlsplit(server.dsn("postgres"))
        self._port = choose_port(None)
        # It refuses to run as root.
        account = ["user = nobody"] if os.geteuid() == 0 else []
        users = folder / "users.txt"
        users.write_text(f'"{behind.username}" "{behind.password}"\n')
        file = folder / "pgbouncer.ini"
        lines = [
            "[databases]",
            f"* = host={behind.hostname} port={behind.port}",
            "[pgbouncer]",
            "listen_addr = 127.0.0.1",
            f"listen_port = {self._port}",
            "unix_socket_dir =",
            f"auth_file = {users}",
            "auth_type = plain",
            "pool_mode = transaction",
            f"default_pool_size = {sessions}",
            "max_client_conn = 1000",
            *account,
        ]
        file.write_text("\n".join(lines) + "\n")
        for readable, mode in ((folder, 0o755), (users, 0o644), (file, 0o644)):
            readable.chmod(mode)
        self._process = subprocess.Popen(
            [BINARY, "--quiet", str(file)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._server = server
        wait_until(self._answers)

    def dsn(self, database: str) -> str:
        """Return the URL of a database through it."""
        parts = urlsplit(self._server.dsn(database))
        place = f"{parts.username}:{parts.password}@127.0.0.1:{self._port}"
        return urlunsplit(parts._replace(netloc=place))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait(10)

    def _answers(self) -> bool:
        assert self._process.poll() is None, "pgbouncer has ended"
        try:
            with psycopg.connect(self.dsn("postgres"), connect_timeout=5):
                return True
        except psycopg.OperationalError:
            return False
