"""Runs Dagster's webserver and daemon together until one of them ends."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from http.client import HTTPException
from threading import Event, Thread
from urllib.request import ProxyHandler, build_opener

import psutil

from rag_assets.instance import WORKSPACE
from rag_resources.cli.output import say, working
from rag_resources.core.errors import InvalidParameterError, RagError
from rag_resources.database.locate import embedded_server
from rag_resources.database.ports import becomes_free, choose_port, has_address
from rag_resources.languages.messages import _, operators, render
from rag_resources.programs import UI, announced, running_program
from rag_resources.settings import Settings

STOP_TIMEOUT_S = 30
FIRST_TIMEOUT_S = 8
"""How long webserver and daemon may take to end by themselves, before what they started."""
POLL_S = 0.5
ANSWER_S = 5.0
DEFAULT_PORT = 3000
_COLOUR = rb"(?:\x1b\[\d*m)*"
_MESSAGE = re.compile(
    rb"%(c)s\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{4}%(c)s - \S+ - %(c)s(?P<level>[A-Z]+)%(c)s - "
    % {b"c": _COLOUR}
)
_NEWS = (b"DEBUG", b"INFO")
_EXPECTED = (
    b" - STEP_FAILURE - ",
    b" - RUN_FAILURE - ",
    b"Moving dangling STARTED tick",
    b" - Dependencies for step ",
)
_SIGNED_OFF = b"Aborted!"
_BACKFILL = re.compile(rb" - Backfill failed for (\w+)")


def serve(settings: Settings) -> int:
    """Serve until interrupted; if either process ends, the other is ended too.

    Returns:
        0 after an interruption, otherwise the exit code of the process that ended.

    Raises:
        InvalidParameterError: The given port is in use, or the UI is served already: two daemons
            would work on the same data.
    """
    host, wanted = settings.ui_host, settings.ui_port
    if running := running_program(settings.rag_home, UI):
        told = _(
            "It already runs at {url} (process {pid}). To start it anew, end that process first."
        ).format(url=running.address, pid=running.pid)
        raise InvalidParameterError(told, pid=running.pid)
    if not has_address(host):
        raise InvalidParameterError(
            _(
                "This machine does not have the address “{host}”, or the name is not known: "
                "correct {variable}."
            ).format(host=host, variable="UI_HOST")
        )
    if wanted is not None and not becomes_free(wanted, host=host):
        raise InvalidParameterError(
            _(
                "Port {port} is taken. Choose another one with UI_PORT, or leave UI_PORT empty to "
                "use a free one."
            ).format(port=wanted),
            port=wanted,
        )
    port = wanted or choose_port(DEFAULT_PORT, host=host)
    url = f"http://{host}:{port}"
    python = [sys.executable, "-m"]
    workspace = ["-w", str(WORKSPACE)]
    address = ["-h", host, "-p", str(port)]
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # As `nohup` leaves it.
        signal.signal(signal.SIGHUP, signal.default_int_handler)
    commands = [
        [*python, "dagster_webserver", *workspace, *address, *_quiet("dagster")],
        [*python, "dagster._daemon", "run", *workspace, *_quiet()],
    ]
    environment = settings.lasting_environment()
    processes: list[subprocess.Popen[bytes]] = []
    interrupted, silenced = Event(), Event()
    try:
        with announced(settings.rag_home, UI, address=url):
            for command in commands:
                process = subprocess.Popen(  # noqa: S603 - our own arguments
                    command,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    env=environment,
                    cwd=settings.instance_folder,  # Dagster reads the `.env` of its folder, too.
                    process_group=0,
                )
                processes.append(process)
                tells = (process.stdout, interrupted, silenced)
                Thread(target=_tell, args=tells, daemon=True).start()
            if not sys.stdout.isatty():
                say(_("Starting Dagster…"))
            with working(_("Starting Dagster…")):
                wait_until_ready(f"http://{reached_at(host)}:{port}/server_info", processes)
            if _run(processes):
                say(
                    _(
                        "Dagster at {url} (Ctrl+C to end). The UI asks for no password: do not "
                        "expose it outside this machine."
                    ).format(url=url)
                )
            while _run(processes):
                tell_outage(has_stopped(settings), silenced)
                time.sleep(POLL_S)
        return next(process.returncode for process in processes if process.returncode is not None)
    except KeyboardInterrupt:
        interrupted.set()
        return 0
    finally:
        stop(processes)


def has_stopped(settings: Settings) -> bool:
    """Whether the embedded PostgreSQL is the database and does not run; False if unknown."""
    if settings.database_url:
        return False
    try:
        return not embedded_server(settings).status().running
    except RagError:
        return False


def tell_outage(stopped: bool, silenced: Event) -> None:
    """Say once that the database has stopped, and once that it runs again.

    Args:
        stopped: Whether it does not run now.
        silenced: Set in between: Dagster complains of it in thousands of lines.
    """
    if stopped and not silenced.is_set():
        silenced.set()
        say(
            _(
                "The embedded PostgreSQL has stopped: until it is started (“rag up”), the UI can "
                "show nothing and nothing is run."
            )
        )
    elif silenced.is_set() and not stopped:
        silenced.clear()
        say(_("The embedded PostgreSQL is running again."))


def _run(processes: Sequence["subprocess.Popen[bytes]"]) -> bool:
    """Whether all processes are running."""
    return all(process.poll() is None for process in processes)


def reached_at(host: str) -> str:
    """Return the address that reaches, from this machine, a server listening on a host."""
    address = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - not bound
    return f"[{address}]" if ":" in address else address


def wait_until_ready(url: str, processes: Sequence["subprocess.Popen[bytes]"]) -> None:
    """Wait until a URL answers, or one of the processes behind it has ended."""
    while _run(processes):
        # Never through a proxy, because the server is on this machine.
        with (
            suppress(OSError, HTTPException),
            build_opener(ProxyHandler({})).open(url, timeout=ANSWER_S),
        ):
            return
        time.sleep(POLL_S)


def _tell(lines: Iterable[bytes], interrupted: Event, silenced: Event) -> None:
    """Write lines to standard output, except while silenced and after the user interrupts."""
    for line in without_news(lines):
        # Without a buffer, whose lock could outlive this thread. The output is read to its end
        # even if nobody can see it: otherwise the process that writes it would block for ever.
        if interrupted.is_set() or silenced.is_set():
            continue
        with suppress(OSError):
            os.write(sys.stdout.fileno(), line)


def without_news(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Remove the progress messages of runs, which the UI shows; no option of Dagster does that.

    Stack traces of failed runs are removed too: the sensor of failed runs says why in a sentence.
    So are the last messages of a process that is being ended, and what the next one says of the
    sensors that it interrupted. A failed backfill is told in a sentence of ours. A message extends
    to the next line with a time.
    """
    is_news = False
    for line in lines:
        found = _MESSAGE.match(line)
        if found:
            is_news = found["level"] in _NEWS or any(event in line for event in _EXPECTED)
            if failed := _BACKFILL.search(line):
                is_news = True
                told = _(
                    "The backfill {backfill} has ended with an error; its page in the UI explains "
                    "it (Runs › Backfills). What it has done stays done; a new backfill does only "
                    "what is missing. If it was for a model that is no longer configured, nothing "
                    "needs to be done."
                ).format(backfill=failed[1].decode())
                yield f"{render(told, operators())}\n".encode()
        if not is_news and line.strip() != _SIGNED_OFF:
            yield line


def _quiet(*parts: str) -> list[str]:
    """Return the options that keep Dagster's log messages, in English, off the terminal.

    Args:
        parts: Prefixes of further levels that the program has.
    """
    levels = {"log-level": "warning", **{f"{part}-log-level": "warning" for part in parts}}
    levels["code-server-log-level"] = "error"  # On a busy machine it warns of missed heartbeats.
    return [word for name, level in levels.items() for word in (f"--{name}", level)]


def stop(
    processes: Sequence["subprocess.Popen[bytes]"], *, timeout_s: float = STOP_TIMEOUT_S
) -> None:
    """Terminate processes with all that they started; kill what does not end in time.

    The processes come first, since the daemon fails a run that it is about to start if its code
    server ends before it. Code servers and the runs in them are then ended by signal, too: a code
    server waits for its runs, and for ever if the database is stopped under them.

    Args:
        processes: Each leads a process group of its own.
        timeout_s: How long they may take. A second interruption ends the wait.
    """
    deadline = time.monotonic() + timeout_s
    groups = {process.pid for process in processes}
    with suppress(KeyboardInterrupt):
        for process in processes:
            process.terminate()
        first = min(deadline, time.monotonic() + FIRST_TIMEOUT_S)
        while any(process.poll() is None for process in processes) and time.monotonic() < first:
            time.sleep(POLL_S)
        _signal(groups, signal.SIGTERM)
        while _members(groups) and time.monotonic() < deadline:
            time.sleep(POLL_S)
    _signal(groups, signal.SIGKILL)
    for process in processes:
        process.wait()


def _signal(groups: Collection[int], number: signal.Signals) -> None:
    for member in _members(groups):
        with suppress(psutil.NoSuchProcess):
            member.send_signal(number)


def _members(groups: Collection[int]) -> list[psutil.Process]:
    """Return the processes of groups that have not ended."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.NoSuchProcess, ProcessLookupError, PermissionError):
            is_ours = os.getpgid(process.pid) in groups
            if is_ours and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found
