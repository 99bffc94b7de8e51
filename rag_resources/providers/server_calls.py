"""What the clients of model servers share: when a request is retried, and how it gets there."""

from collections.abc import Callable, Iterator
from urllib.parse import SplitResult, unquote
from urllib.request import getproxies, proxy_bypass

import httpx
import stamina
from stamina import Attempt

from rag_resources.resilience.deadlines import current_deadline

TOO_MANY_REQUESTS = 429
SERVER_ERROR = 500

_ATTEMPTS = 3
_LONGEST_BACKOFF_S = 2.0
_LONGEST_REQUESTED_WAIT_S = 60.0


def attempts(
    is_transient: Callable[[Exception], bool],
    requested_wait_s: Callable[[Exception], float | None] = lambda _: None,
) -> Iterator[Attempt]:
    """Return the attempts of a request, three at most, within the ambient deadline.

    Waits between them grow exponentially. There is no further attempt that could only start after
    the deadline.

    Args:
        is_transient: Whether another attempt can help after an error.
        requested_wait_s: How long the server asks to wait, in seconds; None if it does not. A
            longer wait than a minute is not made.
    """
    # Not a decorator: stamina would log the decorated function's arguments, the texts.
    deadline = current_deadline()
    longest_wait_s = _LONGEST_BACKOFF_S
    if deadline is not None:
        longest_wait_s = min(longest_wait_s, deadline.remaining_s / _ATTEMPTS)

    def next_wait(error: Exception) -> bool | float:
        if not is_transient(error):
            return False
        wait_s = requested_wait_s(error)
        needed_s = longest_wait_s if wait_s is None else wait_s
        if needed_s > _LONGEST_REQUESTED_WAIT_S:
            return False
        in_time = deadline is None or deadline.remaining_s > needed_s
        return in_time if wait_s is None else in_time and wait_s

    return iter(
        stamina.retry_context(
            on=next_wait,
            attempts=_ATTEMPTS,
            timeout=None,
            wait_initial=0.1,
            wait_max=longest_wait_s,
        )
    )


def without_credentials(address: SplitResult) -> str:
    """Return an address without its credentials, which may be shown."""
    return address._replace(netloc=address.netloc.rpartition("@")[2]).geturl()


def credentials(address: SplitResult) -> httpx.BasicAuth | None:
    """Return the credentials of an address; None if it has none."""
    if address.username is None:
        return None
    return httpx.BasicAuth(unquote(address.username), unquote(address.password or ""))


def proxy(address: SplitResult) -> str | None:
    """Return the environment's proxy for an address.

    httpx looks it up only for its own transport, not for `DeadlineTransport`.
    """
    if proxy_bypass(address.netloc.rpartition("@")[2]):
        return None
    proxies = getproxies()
    found = proxies.get(address.scheme) or proxies.get("all")
    return found if found is None or "://" in found else f"http://{found}"
