"""Runs `dagster dev`, webserver and daemon together, for this RAG_HOME until one of them ends."""

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress

import psutil

from rag_assets.instance import WORKSPACE
from rag_resources.cli.output import say, warn, working
from rag_resources.core.errors import InvalidParameterError, RagError
from rag_resources.database.locate import embedded_server
from rag_resources.database.ports import becomes_free, choose_port, has_address
from rag_resources.languages.messages import _
from rag_resources.programs import UI, announced, running_program
from rag_resources.settings import Settings

STOP_TIMEOUT_S = 4
POLL_S = 0.5
DEFAULT_PORT = 3000
LASTED_S = 60
"""A Dagster that ends sooner would end again."""


def serve(settings: Settings) -> int:
    """Serve until interrupted; if webserver or daemon ends, both are started again.

    Returns:
        0 after an interruption, otherwise the exit code of a `dagster dev` that ended at once.

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
                "Port {port} is taken. Choose another one with {setting}, or leave "
                "it empty to use a free one."
            ).format(port=wanted, setting="UI_PORT"),
            port=wanted,
        )
    port = wanted or choose_port(DEFAULT_PORT, host=host)
    url = f"http://{host}:{port}"
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # As `nohup` leaves it.
        signal.signal(signal.SIGHUP, signal.default_int_handler)
    with announced(settings.rag_home, UI, address=url):
        while True:
            began = time.monotonic()
            code = _serve_once(settings, host, port)
            if code == 0 or time.monotonic() - began < LASTED_S:
                return code
            warn(
                _(
                    "A process of Dagster has ended (code {code}): it is started again. Runs that "
                    "were under way end as failed; launched again, they go on where they were."
                ).format(code=code)
            )


def _serve_once(settings: Settings, host: str, port: int) -> int:
    """Serve until interrupted, which returns 0, or until a process of Dagster ends."""
    # On a busy machine a code server warns of missed heartbeats.
    levels = ["--log-level", "warning", "--code-server-log-level", "error"]
    address = ["-h", host, "-p", str(port)]
    python = [sys.executable, "-W", "ignore", "-m"]
    # Dagster ends its processes by SIGINT, which they would inherit as ignored from a shell's job.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(  # noqa: S603 - our own arguments
        [*python, "dagster", "dev", "-w", str(WORKSPACE), *address, *levels],
        env=settings.lasting_environment(),
        cwd=settings.instance_folder,  # Dagster reads the `.env` of its folder, too.
        process_group=0,
    )
    signal.signal(signal.SIGINT, before)
    try:
        with working(_("Starting Dagster…")):
            while process.poll() is None and not _answers(host, port):
                time.sleep(POLL_S)
        if process.poll() is None:
            say(
                _(
                    "Dagster at {url} (Ctrl+C to end). The UI asks for no password: do not "
                    "expose it outside this machine."
                ).format(url=f"http://{host}:{port}")
            )
        while process.poll() is None:
            bring_back_server(settings)
            time.sleep(POLL_S)
    except KeyboardInterrupt:
        return 0
    finally:
        stop(process)
    return process.returncode or 1


def bring_back_server(settings: Settings) -> None:
    """Start the embedded server again if it was killed, and say so; not if it was stopped."""
    server = embedded_server(settings)
    state = server.status()
    if state.running or not (state.data_dir / "postmaster.pid").exists():
        return
    try:
        server.up()
        warn(_("The embedded PostgreSQL had ended: it was started again."))
    except RagError as error:
        warn(error.message)


def _answers(host: str, port: int) -> bool:
    with suppress(OSError), socket.create_connection((host, port), timeout=POLL_S):
        return True
    return False


def stop(process: "subprocess.Popen[bytes]", *, timeout_s: float = STOP_TIMEOUT_S) -> None:
    """Terminate a process with all that it started; kill what does not end in time.

    Its own children are asked first, since the daemon fails a run that it is about to start if its
    code server ends before it. A code server waits for its runs, and for ever if the database is
    stopped under them, so they are ended by signal, too.

    Args:
        process: Leads a process group of its own.
        timeout_s: How long the process, and then its group, may take. A second interruption ends
            the wait.
    """
    process.terminate()
    for number in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + timeout_s
        with suppress(KeyboardInterrupt):
            while _members(process.pid) and time.monotonic() < deadline:
                process.poll()
                time.sleep(POLL_S)
        for member in _members(process.pid):
            with suppress(psutil.NoSuchProcess):
                member.send_signal(number)
    process.wait()


def _members(group: int) -> list[psutil.Process]:
    """Return the processes of a group that have not ended."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.NoSuchProcess, ProcessLookupError, PermissionError):
            if os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found
