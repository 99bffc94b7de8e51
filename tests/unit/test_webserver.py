"""What the terminal that serves the UI is spared, and the ports of UI and API."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread

import psutil
import pytest

from rag_assets.webserver import (
    has_stopped,
    reached_at,
    stop,
    tell_outage,
    wait_until_ready,
    without_news,
)
from rag_resources.api.running import COMMAND, DEFAULT_PORT, free_port
from rag_resources.core.errors import InvalidParameterError
from rag_resources.languages.messages import _
from rag_resources.programs import announced
from rag_resources.settings import Settings
from tests.waiting import wait_until

HEAD = b"2026-11-24 21:46:59 +0000 - dagster - %s - ingest - a64ef7e8 - "


def test_news_of_runs_are_left_out_with_all_of_their_lines() -> None:
    colour, plain = b"\x1b[34m", b"\x1b[0m"
    warning = HEAD % (colour + b"WARNING" + plain) + b"secreto: tiene\n"
    told = [
        b"Serving on http://127.0.0.1:3000\n",
        warning,
        b"una contrase\xc3\xb1a.\n",
        HEAD % b"ERROR" + b"No se puede leer.\n",
        b"Traceback (most recent call last):\n",
    ]
    lines = [
        *told[:1],
        HEAD % b"DEBUG" + b"STEP_START - Started execution of step.\n",
        HEAD % b"ERROR" + b"w - Dependencies for step w failed: ['e5']. Not executing.\n",
        HEAD % b"INFO" + b"| Documento |\n",
        b"| --- |\n",
        *told[1:3],
        colour + b"2026-11-24 21:46:59 +0000" + plain + b" - dagster.daemon - INFO - Tick\n",
        *told[3:],
    ]
    assert list(without_news(lines)) == told


def test_a_failed_run_is_told_once_and_without_a_stack() -> None:
    """By the sensor; the page of the run has the rest."""
    sentence = b"2026-11-24 21:46:59 +0000 - dagster - ERROR - __repository__ - failed_runs - No.\n"
    lines = [
        HEAD % b"ERROR" + b"promote - STEP_FAILURE - Execution of step failed.\n",
        b"dagster._core.definitions.events.Failure: No.\n",
        b"Stack Trace:\n",
        HEAD % b"ERROR" + b"RUN_FAILURE - Execution of run failed.\n",
        b"Stack Trace:\n",
        sentence,
    ]
    assert list(without_news(lines)) == [sentence]


def test_an_outage_of_the_database_is_told_once_and_its_end_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In between nothing of Dagster's is shown; a database of one's own is not watched."""
    silenced = Event()
    for stopped in (False, True, True, False, False):
        tell_outage(stopped, silenced)
        assert silenced.is_set() is stopped
    said = capsys.readouterr().out.splitlines()
    assert said == [
        _(
            "The embedded PostgreSQL has stopped: until it is started (“rag up”), the UI can show "
            "nothing and nothing is run."
        ),
        _("The embedded PostgreSQL is running again."),
    ]
    assert has_stopped(Settings(rag_home=tmp_path))
    assert not has_stopped(Settings(rag_home=tmp_path, database_url="postgresql://x/y"))


class _Answering(BaseHTTPRequestHandler):
    """Refuses the first two requests, as a server does that is still loading."""

    asked = 0

    def do_GET(self) -> None:
        type(self).asked += 1
        self.send_response(200 if self.asked > 2 else 503)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def process(code: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A Python process, which is ended if it does not end itself."""
    started = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)
    try:
        yield started
    finally:
        started.kill()
        started.communicate()


def test_the_address_is_told_once_the_page_answers() -> None:
    """A server that still refuses is not ready; one whose process has ended is not waited for."""
    _Answering.asked = 0
    with ThreadingHTTPServer(("127.0.0.1", 0), _Answering) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://{reached_at('0.0.0.0')}:{server.server_port}/server_info"
        with process("input()") as running:
            wait_until_ready(url, [running])
        assert _Answering.asked == 3
        server.shutdown()
    with process("") as ended:
        wait_until_ready("http://127.0.0.1:1/", [ended])
        assert ended.wait() == 0


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
        stop([process], timeout_s=1)
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
        stop([process])
        assert process.returncode == 0
    wait_until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)
