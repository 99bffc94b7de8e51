"""Runs in processes of their own, and how to kill them and the server."""

import os
import signal
import time
from collections.abc import Iterator
from multiprocessing import get_context
from multiprocessing.context import ForkServerProcess

import psutil

from rag_resources.database.server import EmbeddedServer
from tests.crash import worker
from tests.crash.worker import STAGES, Lost, Work

PATIENCE_S = 120.0


class WorkerProcess:
    """A run, forked from a process that has imported everything already; killed when it is left.

    Args:
        url: Of the database.

    Attributes:
        stage: The one it is in.
        result: What it came to; None until it ends.
    """

    def __init__(self, url: str) -> None:
        context = get_context("forkserver")
        context.set_forkserver_preload([worker.__name__])
        self._channel, theirs = context.Pipe(duplex=False)
        self._process: ForkServerProcess = context.Process(target=worker.run, args=(url, theirs))
        self.stage = "start"
        self.result: Work | Lost | None = None
        self._process.start()
        theirs.close()

    def __enter__(self) -> "WorkerProcess":
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._channel.close()

    def kill(self) -> None:
        """Kill it at once."""
        self._process.kill()
        self._process.join(PATIENCE_S)

    def stages(self) -> Iterator[str]:
        """Each stage as it begins, until the end.

        Raises:
            TimeoutError: It does not get on.
            RuntimeError: It died by itself.
        """
        while self.result is None:
            if not self._hears(PATIENCE_S):
                msg = f"the run does not get on, in stage {self.stage}"
                raise TimeoutError(msg)
            if self.result is None:
                yield self.stage

    def end(self) -> Work | Lost:
        """Wait for its result; errors as of `stages`."""
        for _ in self.stages():
            pass
        assert self.result is not None
        return self.result

    def reach(self, stage: str, seconds: float) -> bool:
        """Wait until a stage (or a later one) has lasted this long; false if the run ended first.

        Raises:
            TimeoutError: It does not get on.
            RuntimeError: It died by itself.
        """
        for reached in self.stages():
            if STAGES.index(reached) >= STAGES.index(stage):
                break
        moment = time.monotonic() + seconds
        while self.result is None and self._hears(moment - time.monotonic()):
            pass
        return self.result is None

    def _hears(self, seconds: float) -> bool:
        """Wait at most this long for the next stage or the result; false if neither came."""
        if not self._channel.poll(max(0.0, seconds)):
            return False
        try:
            said = self._channel.recv()
        except EOFError:
            msg = f"the run died by itself, in stage {self.stage}"
            raise RuntimeError(msg) from None
        if isinstance(said, str):
            self.stage = said
        else:
            self.result = said
        return True


def kill_server(server: EmbeddedServer) -> None:
    """Kill the postmaster and all its children, so that nothing more is flushed."""
    postmaster = psutil.Process(server.status().pid)
    children = postmaster.children(recursive=True)
    os.kill(postmaster.pid, signal.SIGKILL)
    for child in children:
        try:
            child.kill()
        except psutil.NoSuchProcess:
            continue
