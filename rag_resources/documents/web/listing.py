"""Finds the documents of a web source: from lists of URLs, index pages and sitemaps."""

import csv
import io
import time
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from urllib.robotparser import RobotFileParser

import httpx
from selectolax.lexbor import LexborHTMLParser, SelectolaxError

from rag_resources.core.download_config import DownloadConfig
from rag_resources.core.errors import InvalidParameterError, InvalidSourceError, unreadable
from rag_resources.core.path_pattern import value_of
from rag_resources.core.quoting import printable, shown
from rag_resources.core.types import RejectedRecord
from rag_resources.documents.media_types import SUFFIXES
from rag_resources.documents.web.download import WebAddress
from rag_resources.documents.web.fetching import (
    MissingError,
    PassingError,
    address_of,
    open_client,
    requested,
    sleep,
    user_agent,
    wait_before,
)
from rag_resources.documents.web.public import without_credentials
from rag_resources.languages.messages import _

LISTS = (".txt", ".csv")
MOST_LIST_BYTES = 50_000_000
MOST_SITEMAPS = 500
"""Most sitemaps of a sitemap index."""
URL_COLUMN = "url"
_DELIMITERS = (",", ";", "\t")
_GZIP = b"\x1f\x8b"
_GZIP_WINDOW = 16 + zlib.MAX_WBITS


def listed_urls(path: Path) -> Iterator[WebAddress | RejectedRecord]:
    """Yield the URLs of a text, one per line, or of the column `url` of a CSV, without repeats.

    In a text, empty lines and lines that begin with `#` are ignored. The other columns of a CSV are
    metadata; empty cells are left out.

    Raises:
        InvalidSourceError: The list cannot be read. Raised by the call itself.
    """
    name = printable(str(path))
    try:
        with path.open("rb") as file:
            text = file.read(MOST_LIST_BYTES + 1).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidSourceError(unreadable(name, error)) from error
    if len(text) > MOST_LIST_BYTES:
        raise InvalidSourceError(_("{path} is too large for a list of addresses").format(path=name))
    if path.suffix.lower() == ".csv":
        return _once(_rows(text, name), name)
    lines = ((n, line.strip()) for n, line in enumerate(text.splitlines(), start=1))
    return _once(((n, WebAddress(url)) for n, url in lines if url and url[0] != "#"), name)


def _rows(text: str, name: str) -> Iterator[tuple[int, WebAddress]]:
    head = text.partition("\n")[0]
    delimiter = next((each for each in _DELIMITERS if URL_COLUMN in _columns(head, each)), ",")
    reader = csv.DictReader(io.StringIO(text), _columns(head, delimiter), delimiter=delimiter)
    next(reader, None)
    if URL_COLUMN not in (reader.fieldnames or ()):
        raise InvalidSourceError(
            _("{path} has no column “{column}”").format(path=name, column=URL_COLUMN)
        )

    def rows() -> Iterator[tuple[int, WebAddress]]:
        for row in reader:
            url = (row.pop(URL_COLUMN) or "").strip()
            metadata = {key: value_of(value.strip()) for key, value in row.items() if key and value}
            if url:
                yield reader.line_num, WebAddress(url, metadata)

    return rows()


def _columns(head: str, delimiter: str) -> list[str]:
    """Return the names of the columns; `url` may be written in capitals."""
    names = next(csv.reader([head], delimiter=delimiter), [])
    return [URL_COLUMN if each.strip().lower() == URL_COLUMN else each.strip() for each in names]


def _once(
    found: Iterator[tuple[int, WebAddress]], name: str
) -> Iterator[WebAddress | RejectedRecord]:
    seen: set[str] = set()
    for line, address in found:
        problem = _problem(address.url)
        if problem:
            yield RejectedRecord(f"{name}:{line}", problem)
        elif address.url not in seen:
            seen.add(address.url)
            yield address


def _problem(url: str) -> str:
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, ValueError):
        return _("“{url}” is no valid address").format(url=shown(url))
    if parsed.scheme not in ("http", "https") or not parsed.host:
        return _("“{url}” is no http or https address").format(url=without_credentials(url))
    return ""


def linked_urls(url: str, config: DownloadConfig) -> Iterator[WebAddress | RejectedRecord]:
    """Yield the documents that a page links to, or that a sitemap lists, in order, without repeats.

    On a page, these are the links that the CSS selector finds. With the default selector they must
    have the file extension of a document. Links that `robots.txt` forbids are rejected.

    Args:
        url: An HTML page, a sitemap or a sitemap index (sitemaps.org, protocol 0.9).
        config: How to download.

    Raises:
        InvalidSourceError: The page cannot be read.
        InvalidParameterError: The selector is wrong.
    """
    with open_client(config) as client:
        robots = _Robots(client, config)
        if not robots.allows(url):
            raise InvalidSourceError(
                _("the robots.txt of the server does not allow {url} to be read").format(
                    url=without_credentials(url)
                )
            )
        body, base = _body(client, url, config)
        if _is_sitemap(body):
            links = _sitemap_links(client, body, config, robots)
        else:
            links = iter(_page_links(body, base, config))
        seen: dict[str, None] = {}
        for link in links:
            if isinstance(link, RejectedRecord):
                yield link
                continue
            if link in seen:
                continue
            seen[link] = None
            if len(seen) > config.most_links:
                yield RejectedRecord(
                    url,
                    _(
                        "there are more than {most} links; the others are not read "
                        "(DOWNLOAD__MOST_LINKS)"
                    ).format(most=config.most_links),
                )
                return
            yield robots.refusal(link) or WebAddress(link)


def _body(client: httpx.Client, url: str, config: DownloadConfig) -> tuple[bytes, str]:
    """Return the body at a URL, unpacked, and its final URL, to which its links are relative.

    Raises:
        InvalidSourceError: It cannot be fetched.
    """
    for attempt in range(1, config.tries + 1):
        try:
            with requested(client, url, config, {}) as response:
                return _unpacked(_read(response, url, config), url), address_of(response)
        except PassingError as failure:
            if attempt == config.tries:
                raise InvalidSourceError(
                    _("{reason} (tries: {tries})").format(reason=failure.reason, tries=attempt)
                ) from failure
            sleep(wait_before(attempt, failure))
    raise AssertionError


def _read(response: httpx.Response, url: str, config: DownloadConfig) -> bytes:
    until = time.monotonic() + config.total_s
    body = bytearray()
    try:
        for block in response.iter_bytes():
            body += block
            if len(body) > MOST_LIST_BYTES:
                raise InvalidSourceError(
                    _("{path} is too large for a list of addresses").format(
                        path=without_credentials(url)
                    )
                )
            if time.monotonic() > until:
                raise InvalidSourceError(
                    _(
                        "{url} did not end within {seconds} s; what was downloaded is used the "
                        "next time"
                    ).format(url=without_credentials(url), seconds=round(config.total_s))
                )
    except (httpx.TransportError, httpx.DecodingError) as error:
        raise PassingError(
            _("the connection with {url} was cut").format(url=without_credentials(url))
        ) from error
    return bytes(body)


def _unpacked(body: bytes, url: str) -> bytes:
    """Unpack a sitemap that is stored compressed, within the same limit."""
    if not body.startswith(_GZIP):
        return body
    try:
        unpacked = zlib.decompressobj(_GZIP_WINDOW).decompress(body, MOST_LIST_BYTES + 1)
    except zlib.error as error:
        problem = _("“{url}” is no valid address").format(url=without_credentials(url))
        raise InvalidSourceError(problem) from error
    if len(unpacked) > MOST_LIST_BYTES:
        raise InvalidSourceError(
            _("{path} is too large for a list of addresses").format(path=without_credentials(url))
        )
    return unpacked


def _is_sitemap(body: bytes) -> bool:
    head = body[:2_000].lower()
    return b"<urlset" in head or b"<sitemapindex" in head


def _sitemap_links(
    client: httpx.Client, body: bytes, config: DownloadConfig, robots: "_Robots"
) -> Iterator[str | RejectedRecord]:
    """Yield the links of a sitemap, and of those that it names; entities are never resolved.

    A sitemap that cannot be fetched is rejected, and the others are read.
    """
    tree = LexborHTMLParser(body)
    yield from _locations(tree, "url > loc")
    for link in _locations(tree, "sitemap > loc")[:MOST_SITEMAPS]:
        refused = robots.refusal(link)
        if refused:
            yield refused
            continue
        try:
            inner, _ = _body(client, link, config)
        except InvalidSourceError as error:
            yield RejectedRecord(link, error.message)
            continue
        yield from _locations(LexborHTMLParser(inner), "url > loc")


def _locations(tree: LexborHTMLParser, selector: str) -> list[str]:
    return [node.text(strip=True) for node in tree.css(selector)]


def _page_links(body: bytes, base: str, config: DownloadConfig) -> list[str]:
    tree = LexborHTMLParser(body)
    try:
        nodes = tree.css(config.links)
    except (ValueError, SelectolaxError) as error:
        raise InvalidParameterError(
            _("DOWNLOAD__LINKS is no CSS selector: “{selector}”").format(
                selector=shown(config.links)
            )
        ) from error
    own = tree.css_first("base[href]")
    start = httpx.URL(base).join(own.attributes["href"] or "") if own else httpx.URL(base)
    any_link = config.links == DownloadConfig().links
    links = []
    for node in nodes:
        href = node.attributes.get("href")
        try:
            link = start.join((href or "").strip()).copy_with(fragment=None)
        except httpx.InvalidURL:
            continue
        suffix = PurePosixPath(link.path).suffix.lower()
        if href and link.scheme in ("http", "https") and (suffix in SUFFIXES or not any_link):
            links.append(str(link))
    return links


class _Robots:
    """The rules for us in the `robots.txt` of each host (RFC 9309)."""

    def __init__(self, client: httpx.Client, config: DownloadConfig) -> None:
        self._client = client
        self._config = config
        self._rules: dict[str, RobotFileParser] = {}

    def allows(self, url: str) -> bool:
        """Whether a URL may be requested; a host without `robots.txt` allows everything.

        Raises:
            InvalidSourceError: The host's `robots.txt` exists but cannot be read.
        """
        if _problem(url):
            return False
        place = httpx.URL(url)
        host = f"{place.scheme}://{place.netloc.decode('ascii')}"
        if host not in self._rules:
            self._rules[host] = self._read(f"{host}/robots.txt")
        return self._rules[host].can_fetch(user_agent(), url)

    def refusal(self, url: str) -> RejectedRecord | None:
        """Return the rejection of a URL that may not be requested; None if it may."""
        try:
            if self.allows(url):
                return None
        except InvalidSourceError as error:
            return RejectedRecord(url, error.message)
        return RejectedRecord(
            url,
            _("the robots.txt of the server does not allow {url} to be read").format(
                url=without_credentials(url)
            ),
        )

    def _read(self, url: str) -> RobotFileParser:
        rules = RobotFileParser()
        try:
            body, _ = _body(self._client, url, self._config)
        except MissingError:
            body = b""
        rules.parse(body.decode("utf-8", "replace").splitlines())
        return rules
