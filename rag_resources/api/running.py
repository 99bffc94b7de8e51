"""Serves the API with uvicorn."""

import os
import signal
import socket
import sys
from contextlib import ExitStack
from tempfile import TemporaryDirectory

import uvicorn

from rag_resources.application import Application
from rag_resources.core.errors import InvalidParameterError
from rag_resources.database.ports import has_address
from rag_resources.languages.messages import _
from rag_resources.programs import running_programs
from rag_resources.settings import Settings

COMMAND = "rag serve"
"""What serves the API."""

DEFAULT_PORT = 8000
KEEP_ALIVE_S = 75
"""Longer than clients and proxies keep an idle connection; else we might close one in use."""

DRAIN_S = 30
"""How long requests in flight may take after SIGTERM."""


def check_exposure(settings: Settings, application: Application) -> bool:
    """Return whether the API answers without keys, as it does on loopback while there are none.

    Raises:
        InvalidParameterError: It would be reachable from other machines, and there is no key.
    """
    from rag_resources.api.identity import is_loopback

    has_keys = application.keys.any()
    if not has_keys and not is_loopback(settings.api_host):
        raise InvalidParameterError(
            _(
                "The API can only listen on {host} if there are keys, and there are none. Create "
                "one with rag key create NAME, or use API_HOST=127.0.0.1."
            ).format(host=settings.api_host)
        )
    return settings.api_open and not has_keys


def free_port(settings: Settings) -> int:
    """Return the port to listen on: the one of the settings; without one 8000 or a free one.

    Raises:
        InvalidParameterError: The address is not this machine's, or the port is taken.
    """
    if not has_address(settings.api_host):
        raise InvalidParameterError(
            _(
                "This machine does not have the address “{host}”, or the name is not known: "
                "correct {variable}."
            ).format(host=settings.api_host, variable="API_HOST")
        )
    wanted = settings.api_port
    for port in (wanted,) if wanted else (DEFAULT_PORT, 0):
        if bound := _bound(settings.api_host, port):
            return bound
    for program in running_programs(settings.rag_home):
        if program.command == COMMAND and program.address.endswith(f":{wanted}"):
            told = _(
                "It already runs at {url} (process {pid}). To start it anew, end that process "
                "first."
            ).format(url=program.address, pid=program.pid)
            raise InvalidParameterError(told, pid=program.pid)
    raise InvalidParameterError(
        _(
            "Port {port} is taken. Choose another one with {setting}, or leave "
            "it empty to use a free one."
        ).format(port=wanted or 0, setting="API_PORT")
    )


def _bound(host: str, port: int) -> int | None:
    """Return the port that can be bound, of 0 a free one; None if it cannot."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return None
        return int(probe.getsockname()[1])


def serve(settings: Settings, port: int) -> None:
    """Serve until SIGTERM or SIGINT; then answer what is in flight, and return."""
    # uvicorn sends itself the signal again at its end: this is a regular end, with exit code 0.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with ExitStack() as stack:
        if settings.api_workers > 1:  # read by prometheus_client when it is imported, in a worker
            folder = stack.enter_context(TemporaryDirectory(prefix="rag-metrics-"))
            os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
        uvicorn.run(
            "rag_resources.api.app:create",
            factory=True,
            host=settings.api_host,
            port=port,
            workers=settings.api_workers,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=DRAIN_S,
            access_log=False,
            log_level="warning",
            server_header=False,
        )
