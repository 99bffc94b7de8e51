"""Sends requests until there is an answer: follows redirects, retries, waits.

Which addresses are allowed is decided in `public`; files are downloaded in `download`.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx

from rag_resources.core.download_config import DownloadConfig
from rag_resources.core.errors import InvalidSourceError
from rag_resources.documents.web.public import (
    NameUnknownError,
    target_of,
    without_credentials,
)
from rag_resources.languages.messages import _
from rag_resources.packaged import product_version

MOST_REDIRECTS = 5
LONGEST_WAIT_S = 60.0
"""Longest wait that a server may ask for with `Retry-After`."""
FIRST_WAIT_S = 0.5
_ASKED = "asked_url"
_MAY_PASS = {408, 425, 429, 500, 502, 503, 504}
_REDIRECTS = {301, 302, 303, 307, 308}


def user_agent() -> str:
    """Return our user agent, also for `robots.txt`."""
    return f"brain-sync-rag/{product_version()}"


class MissingError(InvalidSourceError):
    """An address has nothing, or nothing for us: a status from 400 to 499."""


class PassingError(Exception):
    """A transient failure.

    Attributes:
        reason: The reason for people.
        wait_s: How long the server asks to wait; None if it does not say.
    """

    def __init__(self, reason: str, wait_s: float | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.wait_s = wait_s


def open_client(config: DownloadConfig) -> httpx.Client:
    """Return a client for requests of `requested`; close it.

    Proxies of the environment are not used: behind one, the address could not be checked.
    """
    return httpx.Client(
        timeout=config.timeout_s,
        follow_redirects=False,
        trust_env=False,
        headers={"User-Agent": user_agent(), "Accept-Encoding": "identity"},
        limits=httpx.Limits(max_connections=config.parallel),
    )


@contextmanager
def requested(
    client: httpx.Client, url: str, config: DownloadConfig, headers: Mapping[str, str]
) -> Iterator[httpx.Response]:
    """Request a URL, follow its redirects, and yield the response before its body is read.

    Raises:
        InvalidSourceError: The server refuses, or an address is not allowed.
        PassingError: The server is busy or does not answer.
    """
    try:
        at = httpx.URL(url)
        for __ in range(MOST_REDIRECTS + 1):
            target = target_of(at, allow_private=config.allow_private)
            request = client.build_request(
                "GET",
                target.url,
                headers={**headers, "Host": target.host},
                extensions={"sni_hostname": target.name, _ASKED: str(at)},
            )
            response = client.send(request, stream=True)
            try:
                if response.status_code in _REDIRECTS and "location" in response.headers:
                    at = at.join(response.headers["location"])
                    continue
                _require_success(response, url)
                yield response
                return
            finally:
                response.close()
    except httpx.InvalidURL as error:
        raise InvalidSourceError(
            _("“{url}” is no valid address").format(url=without_credentials(url))
        ) from error
    except NameUnknownError as error:
        raise PassingError(error.message) from error
    except httpx.TransportError as error:
        kind = (
            _("{url} does not answer in time")
            if isinstance(error, httpx.TimeoutException)
            else _("the connection with {url} was cut")
        )
        raise PassingError(kind.format(url=without_credentials(url))) from error
    raise InvalidSourceError(_("{url} redirects too often").format(url=without_credentials(url)))


def address_of(response: httpx.Response) -> str:
    """Return the URL of an answer of `requested`: the last one, after redirects."""
    return str(response.request.extensions[_ASKED])


def wait_before(attempt: int, failure: PassingError) -> float:
    """Return the seconds to wait before the next try: as the server says, else doubled each time.

    Args:
        attempt: How many attempts failed, >= 1.
        failure: The last one.
    """
    if failure.wait_s is not None:
        return min(failure.wait_s, LONGEST_WAIT_S)
    return FIRST_WAIT_S * 2.0 ** (attempt - 1)


def _require_success(response: httpx.Response, url: str) -> None:
    status = response.status_code
    if response.is_success or status in (304, 416):
        return
    reason = _("{url} answers {status}").format(url=without_credentials(url), status=status)
    if status in _MAY_PASS:
        raise PassingError(reason, _retry_after(response.headers.get("retry-after", "")))
    raise MissingError(reason) if response.is_client_error else InvalidSourceError(reason)


def _retry_after(value: str) -> float | None:
    """Read `Retry-After`: seconds or a date (RFC 9110, section 10.2.3)."""
    if value.strip().isdecimal():
        return float(value)
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())


def sleep(seconds: float) -> None:
    """Wait; a separate function, so that tests can observe the waits."""
    time.sleep(seconds)
