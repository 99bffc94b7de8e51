"""The API as its users reach it: `rag serve` in a process of its own."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from rag_resources.database.ports import choose_port
from rag_resources.database.server import API_LOGIN, login_password
from rag_resources.settings import Settings
from tests.waiting import wait_until


@dataclass(frozen=True)
class ApiServer:
    """A process that serves, and a client of it."""

    url: str
    client: httpx.Client
    process: "subprocess.Popen[bytes]"
    log: Path

    def stop(self) -> int:
        """Send SIGTERM, and return the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)

    def wait_until(self, path: str) -> None:
        """Wait until a path is answered with 200."""
        wait_until(lambda: self.process.poll() is not None or answers(self.client, path), 120)
        assert self.process.poll() is None, self.log.read_text("utf-8")


def api_login(database_url: str) -> str:
    """The address of a test's database for the API's login, which the embedded server made."""
    parts = urlsplit(database_url)
    password = login_password(parts.password or "", API_LOGIN)
    return parts._replace(netloc=f"{API_LOGIN}:{password}@{parts.hostname}:{parts.port}").geturl()


@contextmanager
def serving(folder: Path, database_url: str, **variables: str) -> Iterator[ApiServer]:
    """Run `rag serve` on a database until the block ends; ready when the block begins."""
    with starting(folder, database_url, **variables) as server:
        server.wait_until("/readyz")
        yield server


@contextmanager
def starting(folder: Path, database_url: str, **variables: str) -> Iterator[ApiServer]:
    """Run `rag serve` until the block ends, without waiting until it answers."""
    port = choose_port(None)
    kept = {k: v for k, v in os.environ.items() if k.lower() not in Settings.model_fields}
    environment = {
        **kept,
        "RAG_HOME": str(folder / "home"),
        "DATABASE_URL": api_login(database_url),
        "API_PORT": str(port),
        **variables,
    }
    log = folder / "serve.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "rag_resources.cli", "serve"],
            cwd=folder,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    url = f"http://127.0.0.1:{port}"
    with httpx.Client(base_url=url, timeout=60) as client:
        try:
            yield ApiServer(url, client, process, log)
        finally:
            process.kill()
            process.wait(30)


def answers(client: httpx.Client, path: str) -> bool:
    """Whether the process answers a path with 200."""
    try:
        return client.get(path).status_code == httpx.codes.OK
    except httpx.TransportError:
        return False
