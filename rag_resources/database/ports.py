"""Chooses the port that one of the product's servers listens on."""

import secrets
import socket
import time

HOST = "127.0.0.1"
# Below the ephemeral ports of Linux and macOS, so that no outgoing connection takes a chosen port.
FIRST_PORT, LAST_PORT = 20_000, 32_000
# A process that was just killed holds its port until the kernel has cleaned up.
FREEING_SECONDS = 1.0
POLL_SECONDS = 0.05


def choose_port(preferred: int | None, *, host: str = HOST) -> int:
    """Return a free port: the preferred one if it is free, else any.

    Args:
        preferred: The port of the last start, or the default one; None if there is neither.
        host: Where the server will listen.
    """
    if preferred is not None and becomes_free(preferred, host=host):
        return preferred
    for _ in range(100):
        port = FIRST_PORT + secrets.randbelow(LAST_PORT - FIRST_PORT)
        if _is_free(port, host):
            return port
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def becomes_free(port: int, *, host: str = HOST) -> bool:
    """Whether a port is free, or becomes free once the kernel has cleaned up a killed process."""
    deadline = time.monotonic() + FREEING_SECONDS
    while not _is_free(port, host):
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True


def has_address(host: str) -> bool:
    """Whether a server can listen on a host: an address of this machine, or a name of one."""
    return _is_free(0, host)


def _is_free(port: int, host: str) -> bool:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        # PostgreSQL sets this too: connections lingering from its last run do not block the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
        return True
