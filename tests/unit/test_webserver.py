"""The end of what serves the UI, and the ports of UI and API."""

import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from rag_assets.webserver import serve, stop
from rag_resources.api.running import COMMAND, DEFAULT_PORT, free_port
from rag_resources.core.errors import InvalidParameterError
from rag_resources.programs import UI, announced
from rag_resources.settings import Settings
from tests.waiting import wait_until


def test_the_ui_is_not_served_twice_from_the_same_place(tmp_path: Path) -> None:
    """Two daemons would work on the same data."""
    settings = Settings(rag_home=tmp_path)
    with (
        announced(tmp_path, UI, address="http://127.0.0.1:3001"),
        pytest.raises(InvalidParameterError, match="a está en marcha en http"),
    ):
        serve(settings)


def test_the_api_takes_a_free_port_only_if_none_is_set() -> None:
    with socket.socket() as taken:
        with suppress(OSError):  # Then another program of this machine has taken it.
            taken.bind(("127.0.0.1", DEFAULT_PORT))
            taken.listen()
        assert free_port(Settings(api_port=None)) not in (0, DEFAULT_PORT)
        with pytest.raises(InvalidParameterError, match=str(DEFAULT_PORT)):
            free_port(Settings(api_port=DEFAULT_PORT))


def test_an_api_that_runs_already_at_the_port_is_named(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        url = f"http://127.0.0.1:{port}"
        settings = Settings(rag_home=tmp_path, api_port=port)
        with (
            announced(tmp_path, COMMAND, address=url),
            pytest.raises(InvalidParameterError, match=f"a está en marcha en {url}"),
        ):
            free_port(settings)


STUBBORN = """
import signal, subprocess, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(subprocess.Popen(["sleep", "60"]).pid, flush=True)
if len(sys.argv) > 1:
    sys.exit()
signal.pause()
"""


@pytest.mark.parametrize("ends_first", [False, True])
def test_nothing_that_was_started_outlives_the_end(*, ends_first: bool) -> None:
    """Neither a process that ignores the signal nor what it, or a process that is gone, started."""
    command = [sys.executable, "-c", STUBBORN, *(["ends"] if ends_first else [])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, process_group=0) as process:
        assert process.stdout is not None
        child = psutil.Process(int(process.stdout.readline()))
        if ends_first:
            process.wait()
        stop(process, timeout_s=1)
        assert process.returncode is not None
    wait_until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)


ORDERLY = """
import signal, subprocess, sys
child = subprocess.Popen(["sleep", "60"])
def end(*_):
    sys.exit(0 if child.poll() is None else 3)
signal.signal(signal.SIGTERM, end)
print(child.pid, flush=True)
signal.pause()
"""


def test_what_a_process_started_is_there_until_it_has_ended() -> None:
    """A daemon fails the run that it is about to start if its code server is gone."""
    command = [sys.executable, "-c", ORDERLY]
    with subprocess.Popen(command, stdout=subprocess.PIPE, process_group=0) as process:
        assert process.stdout is not None
        child = psutil.Process(int(process.stdout.readline()))
        stop(process)
        assert process.returncode == 0
    wait_until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)
