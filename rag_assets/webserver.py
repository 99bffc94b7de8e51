"""Runs Dagster's webserver and daemon together until one of them ends."""

import signal
import subprocess
import sys
import time

from rich.console import Console

from rag_assets.instance import WORKSPACE
from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.messages import Message
from rag_resources.database.ports import becomes_free, choose_port
from rag_resources.settings import Settings

STOP_TIMEOUT_S = 30
POLL_S = 0.5
DEFAULT_PORT = 3000


def serve(settings: Settings) -> int:
    """Serve until interrupted; if either process ends, the other is ended, too.

    Returns:
        0 after an interruption, otherwise the exit code of the process that ended.

    Raises:
        InvalidParameterError: The given port is in use.
    """
    host, wanted = settings.ui_host, settings.ui_port
    if wanted is not None and not becomes_free(wanted, host=host):
        raise InvalidParameterError(Message.UI_PORT_TAKEN.format(port=wanted), port=wanted)
    port = wanted or choose_port(DEFAULT_PORT, host=host)
    python = [sys.executable, "-m"]
    workspace = ["-w", str(WORKSPACE)]
    address = ["-h", host, "-p", str(port)]
    console = Console()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    commands = [
        [*python, "dagster_webserver", *workspace, *address, *_quiet("dagster")],
        [*python, "dagster._daemon", "run", *workspace, *_quiet()],
    ]
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for command in commands:
            processes.append(subprocess.Popen(command))  # noqa: PERF401, S603 - ended one by one; our own arguments
        console.print(Message.UI_SERVING.format(url=f"http://{host}:{port}"))
        while all(process.poll() is None for process in processes):
            time.sleep(POLL_S)
        return next(process.returncode for process in processes if process.returncode is not None)
    except KeyboardInterrupt:
        return 0
    finally:
        stop(processes)


def _quiet(*parts: str) -> list[str]:
    """Return the options that keep Dagster's stream of news, in English, off the terminal.

    Args:
        parts: Prefixes of further levels that the program has.
    """
    levels = {"log-level": "warning", **{f"{part}-log-level": "warning" for part in parts}}
    levels["code-server-log-level"] = "error"  # On a busy machine it warns of missed heartbeats.
    return [word for name, level in levels.items() for word in (f"--{name}", level)]


def stop(processes: list["subprocess.Popen[bytes]"]) -> None:
    """Terminate processes; kill those that do not end in time."""
    for process in processes:
        process.terminate()
    for process in processes:
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
