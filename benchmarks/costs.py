"""What a step costs: wall time, and the processor time of this process and of PostgreSQL."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import psutil

from rag_resources.database.server import EmbeddedServer


@dataclass
class Cost:
    """Seconds; those of the processor are of all processes of the server together."""

    wall_s: float = 0.0
    client_s: float = 0.0
    server_s: float = 0.0

    @property
    def cpu_s(self) -> float:
        """Processor time of both sides."""
        return self.client_s + self.server_s

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(
            self.wall_s + other.wall_s,
            self.client_s + other.client_s,
            self.server_s + other.server_s,
        )


class Meter:
    """Adds up the costs of steps by name.

    Args:
        server: Running, and used by nobody else.

    Attributes:
        costs: Of each step, in the order of their first measurement.
    """

    def __init__(self, server: EmbeddedServer) -> None:
        pid = server.status().pid
        if pid is None:
            raise ValueError("the server does not run")
        self._postmaster = psutil.Process(pid)
        self.costs: dict[str, Cost] = {}

    @contextmanager
    def measure(self, name: str) -> Iterator[None]:
        """Add what is done inside to the costs of a step."""
        wall, client, server = time.perf_counter(), time.process_time(), self._server_s()
        yield
        spent = Cost(
            time.perf_counter() - wall,
            time.process_time() - client,
            self._server_s() - server,
        )
        self.costs[name] = self.costs.get(name, Cost()) + spent

    def total(self) -> Cost:
        """Add up all steps."""
        return sum(self.costs.values(), start=Cost())

    def _server_s(self) -> float:
        own = self._postmaster.cpu_times()
        seconds = own.user + own.system + own.children_user + own.children_system
        for process in self._postmaster.children():
            # One that ends meanwhile is counted by the postmaster the next time.
            with suppress(psutil.Error):
                times = process.cpu_times()
                seconds += times.user + times.system
        return seconds
