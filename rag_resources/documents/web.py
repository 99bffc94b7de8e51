"""Documents on the web: a list of URLs, or one URL; only public addresses, each file downloaded.

A host's name is resolved once, and the connection goes to the address that was checked, so that a
name server that answers differently the second time gains nothing (DNS rebinding). The files are
registered in `documents.arrival`.
"""

import csv
import hashlib
import io
import socket
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import httpx

from rag_resources.core.errors import InvalidSourceError, unreadable
from rag_resources.core.path_pattern import PathPattern, value_of
from rag_resources.core.quoting import printable, shown
from rag_resources.core.types import RejectedRecord
from rag_resources.documents.folder import FoundFile, title_of
from rag_resources.files import PRIVATE
from rag_resources.languages.messages import _
from rag_resources.packaged import product_version

LISTS = (".txt", ".csv")
URL_COLUMN = "url"
MOST_REDIRECTS = 5
LONGEST_WAIT_S = 60.0
PARALLEL_DOWNLOADS = 3
TRIES = 3
SERVER_TIMEOUT_S = 30.0
FILE_TIMEOUT_S = 600.0
"""Longest wait that a server may ask for with `Retry-After`."""
FIRST_WAIT_S = 0.5
_DELIMITERS = (",", ";", "\t")
_PDF_WITHIN_BYTES = 1_024
_TITLES = ("title", "título")
_CONDITIONS = {"etag": "If-None-Match", "last-modified": "If-Modified-Since"}
_MAY_PASS = {408, 425, 429, 500, 502, 503, 504}
_REDIRECTS = {301, 302, 303, 307, 308}
_EMBEDDING = tuple(map(ip_network, ("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32")))
"""IPv6 networks whose addresses stand for IPv4 ones, which may be private: NAT64, 6to4, Teredo."""


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


@dataclass(frozen=True, slots=True)
class WebAddress:
    """A file on the web.

    Attributes:
        url: Absolute.
        metadata: Its metadata from a list; `title` is the title.
    """

    url: str
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The document's title: as listed, else from the path."""
        listed = (str(self.metadata[key]) for key in _TITLES if self.metadata.get(key))
        return next(listed, "") or title_of(unquote(httpx.URL(self.url).path.rstrip("/")))

    @property
    def fields(self) -> dict[str, Any]:
        """Its metadata from a list, without the title."""
        return {k: value for k, value in self.metadata.items() if k not in _TITLES}


def is_web(source: str) -> bool:
    """Whether documents of a source are downloaded."""
    return "://" in source or Path(source).suffix.lower() in LISTS


def web_addresses(
    source: str, *, pattern: PathPattern | None = None
) -> Iterator[WebAddress | RejectedRecord]:
    """Yield the addresses of a source on the web, without repeats.

    Args:
        source: A URL; a `.txt` file of one per line, where `#` begins a comment; or a `.csv` file
            with a column `url`, whose other columns are metadata.
        pattern: Takes metadata from the paths of URLs; a list's own columns take precedence.

    Raises:
        InvalidSourceError: The list cannot be read.
    """
    seen: set[str] = set()
    for line, address in [(0, WebAddress(source))] if "://" in source else _listed(Path(source)):
        url = address.url
        if problem := _problem(url):
            yield RejectedRecord(f"{printable(source)}:{line}" if line else source, problem)
        elif url not in seen:
            seen.add(url)
            own = pattern.values(httpx.URL(url).path.lstrip("/")) if pattern else {}
            yield WebAddress(url, {**own, **address.metadata})


def _listed(path: Path) -> Iterator[tuple[int, WebAddress]]:
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidSourceError(unreadable(printable(str(path)), error)) from error
    if path.suffix.lower() != ".csv":
        for number, line in enumerate(map(str.strip, text.splitlines()), start=1):
            if line and not line.startswith("#"):
                yield number, WebAddress(line)
        return
    head = text.partition("\n")[0]
    delimiter = next((each for each in _DELIMITERS if URL_COLUMN in _columns(head, each)), ",")
    names = _columns(head, delimiter)
    if URL_COLUMN not in names:
        raise InvalidSourceError(
            _("{path} has no column “{column}”").format(
                path=printable(str(path)), column=URL_COLUMN
            )
        )
    reader = csv.DictReader(io.StringIO(text), names, delimiter=delimiter)
    next(reader)
    for row in reader:
        url = (row.pop(URL_COLUMN) or "").strip()
        metadata = {key: value_of(value.strip()) for key, value in row.items() if key and value}
        if url:
            yield reader.line_num, WebAddress(url, metadata)


def _columns(head: str, delimiter: str) -> list[str]:
    """Return the names of the columns; `url` may be written in capitals."""
    names = map(str.strip, next(csv.reader([head], delimiter=delimiter), []))
    return [URL_COLUMN if each.lower() == URL_COLUMN else each for each in names]


def _problem(url: str) -> str:
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, ValueError):
        return _("“{url}” is no valid address").format(url=shown(url))
    if parsed.scheme not in ("http", "https") or not parsed.host:
        return _("“{url}” is no valid address").format(url=without_credentials(url))
    return ""


def without_credentials(url: str) -> str:
    """Return a URL for messages and logs: without user, password and query."""
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, ValueError):
        return shown(url)
    return str(parsed.copy_with(userinfo=b"", query=None, fragment=None))


def web_files(
    addresses: Iterable[WebAddress | RejectedRecord],
    known: Mapping[str, str],
    folder: Path,
    *,
    allow_private: bool,
    megabytes: int,
) -> Iterator[FoundFile | RejectedRecord]:
    """Yield the file of each address, in order; each is removed when the next one is requested.

    Args:
        addresses: Without repeats.
        known: The ETag of the file last found at each address, as in `FoundFile`; if it has not
            changed, it is not transferred again.
        folder: Holds the files.
        allow_private: Whether addresses of this machine and of private networks may be used.
        megabytes: Largest size of one file.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Proxies of the environment are not used: behind one, the address could not be checked.
    headers = {
        "User-Agent": f"brain-sync-rag/{product_version()}",
        "Accept-Encoding": "identity",
    }
    with (
        httpx.Client(timeout=SERVER_TIMEOUT_S, trust_env=False, headers=headers) as client,
        ThreadPoolExecutor(PARALLEL_DOWNLOADS) as threads,
    ):
        downloads = _Downloads(client, known, folder, allow_private, megabytes)
        running = []
        # A few ahead of what is taken: files that wait to be taken lie on the disk.
        for address in addresses:
            running.append(threads.submit(downloads.found, address))
            if len(running) > 2 * PARALLEL_DOWNLOADS:
                yield from _taken(running.pop(0).result())
        for each in running:
            yield from _taken(each.result())


def _taken(found: FoundFile | RejectedRecord) -> Iterator[FoundFile | RejectedRecord]:
    yield found
    if isinstance(found, FoundFile):
        found.path.unlink(missing_ok=True)


def sleep(seconds: float) -> None:
    """Wait; a separate function, so that tests can observe the waits."""
    time.sleep(seconds)


@dataclass(frozen=True, slots=True)
class _Downloads:
    client: httpx.Client
    known: Mapping[str, str]
    folder: Path
    allow_private: bool
    megabytes: int

    def found(self, address: WebAddress | RejectedRecord) -> FoundFile | RejectedRecord:
        """Download a file, or find that it is the known one, or why neither can be done."""
        if isinstance(address, RejectedRecord):
            return address
        path = self.folder / hashlib.sha256(address.url.encode()).hexdigest()
        try:
            etag = self._tried(address.url, path)
        except (InvalidSourceError, httpx.InvalidURL) as error:
            path.unlink(missing_ok=True)
            wrong = _("“{url}” is no valid address").format(url=without_credentials(address.url))
            return RejectedRecord(address.url, getattr(error, "message", wrong))
        return FoundFile(address.url, etag, path, address.title, address.fields)

    def _tried(self, url: str, path: Path) -> str:
        until = time.monotonic() + FILE_TIMEOUT_S
        for attempt in range(1, TRIES + 1):
            try:
                return self._once(url, path, until)
            except PassingError as failure:
                wait_s = FIRST_WAIT_S * 2.0 ** (attempt - 1)
                if failure.wait_s is not None:
                    wait_s = min(failure.wait_s, LONGEST_WAIT_S)
                if attempt == TRIES or time.monotonic() + wait_s > until:
                    raise InvalidSourceError(
                        _("{reason} (tries: {tries})").format(reason=failure.reason, tries=attempt)
                    ) from failure
                sleep(wait_s)
        raise AssertionError

    def _once(self, url: str, path: Path, until: float) -> str:
        """Return what shows a change of the file: the server's validator, or a hash."""
        known = self.known.get(url, "")
        kind, __, validator = known.partition(":")
        headers = {_CONDITIONS[kind]: validator} if kind in _CONDITIONS else {}
        with _requested(self.client, url, headers, allow_private=self.allow_private) as response:
            if response.status_code == 304:
                return known
            self._receive(response, url, path, until)
            kind = response.headers.get("content-type", "?")
            with path.open("rb") as file:
                is_pdf = httpx.URL(url).path.lower().endswith(".pdf")
                if is_pdf and b"%PDF-" not in file.read(_PDF_WITHIN_BYTES):
                    raise InvalidSourceError(
                        _("is no PDF: the server sent something else ({kind})").format(kind=kind)
                    )
                file.seek(0)
                said = response.headers
                own = f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
                return next((f"{key}:{said[key]}" for key in _CONDITIONS if key in said), own)

    def _receive(self, response: httpx.Response, url: str, path: Path, until: float) -> None:
        name = without_credentials(url)
        path.touch(mode=PRIVATE)
        try:
            with path.open("wb") as file:
                for block in response.iter_bytes():
                    if file.tell() + len(block) > self.megabytes * 1024**2:
                        raise InvalidSourceError(
                            _(
                                "The file takes more than {megabytes} MB. Raise "
                                "EXTRACTION__FILE_MB or split the file."
                            ).format(megabytes=self.megabytes)
                        )
                    file.write(block)
                    if time.monotonic() > until:
                        raise InvalidSourceError(
                            _("{url} does not answer in time").format(url=name)
                        )
        except (httpx.TransportError, httpx.DecodingError) as error:
            raise PassingError(_("the connection with {url} was cut").format(url=name)) from error


@contextmanager
def _requested(
    client: httpx.Client, url: str, headers: Mapping[str, str], *, allow_private: bool
) -> Iterator[httpx.Response]:
    """Request a URL, follow its redirects, and yield the response before its body is read.

    Raises:
        InvalidSourceError: The server refuses, or an address is not allowed.
        PassingError: The server is busy or does not answer.
    """
    at, name = httpx.URL(url), without_credentials(url)
    for __ in range(MOST_REDIRECTS + 1):
        request = client.build_request(
            "GET",
            at.copy_with(host=_checked_host(at, allow_private=allow_private)),
            headers={**headers, "Host": at.netloc.decode("ascii")},
            extensions={"sni_hostname": at.host},
        )
        try:
            response = client.send(request, stream=True)
        except httpx.TransportError as error:
            late = isinstance(error, httpx.TimeoutException)
            reason = (
                _("{url} does not answer in time")
                if late
                else _("the connection with {url} was cut")
            )
            raise PassingError(reason.format(url=name)) from error
        try:
            status = response.status_code
            if status in _REDIRECTS and "location" in response.headers:
                at = at.join(response.headers["location"])
                continue
            if not response.is_success and status != 304:
                reason = _("{url} answers {status}").format(url=name, status=status)
                if status not in _MAY_PASS:
                    raise InvalidSourceError(reason)
                asked = response.headers.get("retry-after", "")
                raise PassingError(reason, float(asked) if asked.isdecimal() else None)
            yield response
            return
        finally:
            response.close()
    raise InvalidSourceError(_("{url} redirects too often").format(url=name))


def _checked_host(url: httpx.URL, *, allow_private: bool) -> str:
    """Resolve the host of a URL, and check every address that it has; return the first.

    Raises:
        InvalidSourceError: It is not http or https, or leads to a private address.
        PassingError: The host cannot be found.
    """
    if problem := _problem(str(url)):
        raise InvalidSourceError(problem)
    try:
        found = socket.getaddrinfo(url.host, None, type=socket.SOCK_STREAM)
        addresses = [ip_address(each[4][0]) for each in found]
    except (OSError, UnicodeError, ValueError) as error:
        raise PassingError(
            _("the server “{host}” is not found").format(host=shown(url.host))
        ) from error
    for address in addresses:
        if not allow_private and not is_public(address):
            raise InvalidSourceError(
                _(
                    "{url} leads to {address}, which is no public address; if it is yours, "
                    "set DOWNLOAD_ALLOW_PRIVATE=true"
                ).format(url=without_credentials(str(url)), address=str(address))
            )
    first = addresses[0]
    return f"[{first}]" if isinstance(first, IPv6Address) else str(first)


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Whether an address belongs to the public internet."""
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped:
            return is_public(address.ipv4_mapped)
        if address.scope_id or any(address in network for network in _EMBEDDING):
            return False
    return address.is_global and not address.is_multicast and not address.is_reserved
