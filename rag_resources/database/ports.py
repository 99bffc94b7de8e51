"""Which port of this machine the embedded PostgreSQL listens on."""

import secrets
import socket
import time

from rag_resources.core.errors import EmbeddedServerError
from rag_resources.core.messages import Message

HOST = "127.0.0.1"
# Below the ephemeral ports of Linux and macOS, so that no outgoing connection takes a kept one.
FIRST_PORT, LAST_PORT = 20_000, 32_000
# A process that was just killed still holds its port while the kernel clears it away.
FREEING_SECONDS = 1.0
POLL_SECONDS = 0.05


def choose_port(wanted: int | None, kept: int | None) -> int:
    """Choose a free port.

    Args:
        wanted: The only one to accept.
        kept: The one to prefer, from the last start.

    Raises:
        EmbeddedServerError: `wanted` is in use.
    """
    if wanted is not None:
        if not _becomes_free(wanted):
            raise EmbeddedServerError(Message.SERVER_PORT_TAKEN.format(port=wanted), port=wanted)
        return wanted
    if kept is not None and _becomes_free(kept):
        return kept
    for _ in range(100):
        port = FIRST_PORT + secrets.randbelow(LAST_PORT - FIRST_PORT)
        if _is_free(port):
            return port
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _becomes_free(port: int) -> bool:
    deadline = time.monotonic() + FREEING_SECONDS
    while not _is_free(port):
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As PostgreSQL does: connections that linger from its own last run do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True
