"""Downloads files, each into a local file, at which a later run resumes.

Requests are in `fetching`; the files are registered in `documents.arrival`.
"""

import hashlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

import httpx

from rag_resources.core.download_config import DownloadConfig
from rag_resources.core.errors import InvalidSourceError
from rag_resources.core.types import RejectedRecord
from rag_resources.documents.folder import FoundFile
from rag_resources.documents.web.fetching import (
    PassingError,
    open_client,
    requested,
    sleep,
    wait_before,
)
from rag_resources.documents.web.public import without_credentials
from rag_resources.files import PRIVATE, write_atomically
from rag_resources.languages.messages import _

_PDF_WITHIN_BYTES = 1_024
_TITLES = ("title", "título")
_ETAG, _MODIFIED, _CONTENT = "etag:", "modified:", "sha256:"


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
        listed = next((str(self.metadata[key]) for key in _TITLES if self.metadata.get(key)), "")
        if listed:
            return listed
        with suppress(httpx.InvalidURL):
            path = PurePosixPath(unquote(httpx.URL(self.url).path))
            return path.stem.replace("_", " ").strip() or without_credentials(self.url)
        return self.url

    @property
    def fields(self) -> dict[str, Any]:
        """Its metadata from a list, without the title."""
        return {k: value for k, value in self.metadata.items() if k not in _TITLES}


def download_all(
    addresses: Sequence[WebAddress],
    known: Mapping[str, str],
    folder: Path,
    config: DownloadConfig,
    *,
    megabytes: int,
) -> Iterator[FoundFile | RejectedRecord]:
    """Yield the file of each address, in order; an unchanged file is not transferred again.

    Args:
        addresses: Without repeats.
        known: The ETag of the file last found at each address, as in `FoundFile`.
        folder: Holds files until they are registered; the caller removes each by `discard`.
        config: How to download.
        megabytes: Largest size of one file.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def tried(address: WebAddress) -> FoundFile | RejectedRecord:
        try:
            return _Download(address, folder, config, client, megabytes).run(
                known.get(address.url, "")
            )
        except InvalidSourceError as error:
            return RejectedRecord(address.url, error.message)

    with open_client(config) as client, ThreadPoolExecutor(config.parallel) as threads:
        waiting = iter(addresses)
        running = []
        # A few ahead of what is taken: files that wait to be taken lie on the disk.
        for address in waiting:
            running.append(threads.submit(tried, address))
            if len(running) > 2 * config.parallel:
                yield running.pop(0).result()
        for each in running:
            yield each.result()


def discard(found: FoundFile) -> None:
    """Remove a downloaded file that was registered."""
    found.path.unlink(missing_ok=True)


class _Download:
    """The download of one file; a part may exist from before, with the server's validators."""

    def __init__(
        self,
        address: WebAddress,
        folder: Path,
        config: DownloadConfig,
        client: httpx.Client,
        megabytes: int,
    ) -> None:
        self._address = address
        self._config = config
        self._client = client
        self._most_bytes = megabytes * 1024**2
        self._megabytes = megabytes
        name = hashlib.sha256(address.url.encode()).hexdigest()
        self._part = folder / f"{name}.part"
        self._said = folder / f"{name}.json"

    def run(self, known: str) -> FoundFile:
        """Download the file, or find that it is the known one.

        Raises:
            InvalidSourceError: It cannot be downloaded; the message says why.
        """
        until = time.monotonic() + self._config.total_s
        for attempt in range(1, self._config.tries + 1):
            try:
                return self._found(self._try(known, until))
            except PassingError as failure:
                wait_s = wait_before(attempt, failure)
                if attempt == self._config.tries or time.monotonic() + wait_s > until:
                    raise InvalidSourceError(
                        _("{reason} (tries: {tries})").format(reason=failure.reason, tries=attempt)
                    ) from failure
                sleep(wait_s)
        raise AssertionError

    def _found(self, etag: str) -> FoundFile:
        address = self._address
        return FoundFile(address.url, etag, self._part, address.title, address.fields)

    def _try(self, known: str, until: float) -> str:
        """Request once; return the ETag of the downloaded file, or the known one."""
        held, validator = self._held()
        headers = _conditions(known) if not held else {}
        if held:
            headers = {"Range": f"bytes={held}-", "If-Range": validator}
        with requested(self._client, self._address.url, self._config, headers) as response:
            if response.status_code == 304:
                return known
            if response.status_code == 416:
                self._forget()
                raise PassingError(self._cut())
            goes_on = response.status_code == 206 and _begins_at(response, held)
            if response.status_code == 206 and not goes_on:
                self._forget()
                raise PassingError(self._cut())
            if not goes_on:
                held = 0
                self._begin(response)
            self._check_size(response, held)
            try:
                self._receive(response, held, until)
            except httpx.TimeoutException as error:
                url = without_credentials(self._address.url)
                raise PassingError(_("{url} does not answer in time").format(url=url)) from error
            except (httpx.TransportError, httpx.DecodingError) as error:
                raise PassingError(self._cut()) from error
            self._check_kind(response)
            self._said.unlink(missing_ok=True)
            return _etag(response, self._part)

    def _held(self) -> tuple[int, str]:
        """Return how many bytes exist from before, and the validator under which they are valid."""
        try:
            validator = str(json.loads(self._said.read_text("utf-8"))["validator"])
            return (self._part.stat().st_size, validator) if validator else (0, "")
        except (OSError, ValueError, KeyError, TypeError):
            return 0, ""

    def _begin(self, response: httpx.Response) -> None:
        self._forget()
        self._part.touch(mode=PRIVATE)
        # The bytes of an encoded answer are not those of the file.
        validator = "" if "content-encoding" in response.headers else _strong(response)
        write_atomically(self._said, json.dumps({"validator": validator}), mode=PRIVATE)

    def _forget(self) -> None:
        self._part.unlink(missing_ok=True)
        self._said.unlink(missing_ok=True)

    def _receive(self, response: httpx.Response, held: int, until: float) -> None:
        with self._part.open("ab") as file:
            for block in response.iter_bytes():
                held += len(block)
                if held > self._most_bytes:
                    self._refuse(
                        _(
                            "The file takes more than {megabytes} MB. Raise EXTRACTION__FILE_MB "
                            "or split the file."
                        ).format(megabytes=self._megabytes)
                    )
                file.write(block)
                if time.monotonic() > until:
                    raise InvalidSourceError(
                        _(
                            "{url} did not end within {seconds} s; what was downloaded is used "
                            "the next time"
                        ).format(
                            url=without_credentials(self._address.url),
                            seconds=round(self._config.total_s),
                        )
                    )

    def _check_size(self, response: httpx.Response, held: int) -> None:
        length = response.headers.get("content-length", "")
        if length.isdecimal() and held + int(length) > self._most_bytes:
            self._refuse(
                _(
                    "The file takes more than {megabytes} MB. Raise EXTRACTION__FILE_MB or split "
                    "the file."
                ).format(megabytes=self._megabytes)
            )

    def _check_kind(self, response: httpx.Response) -> None:
        """Refuse a file that claims to be a PDF and is not, as an error page with status 200."""
        path = httpx.URL(self._address.url).path.lower()
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if not path.endswith(".pdf") and kind != "application/pdf":
            return
        with self._part.open("rb") as file:
            if b"%PDF-" not in file.read(_PDF_WITHIN_BYTES):
                self._refuse(
                    _("is no PDF: the server sent something else ({kind})").format(kind=kind or "?")
                )

    def _refuse(self, reason: str) -> None:
        self._forget()
        raise InvalidSourceError(reason)

    def _cut(self) -> str:
        return _("the connection with {url} was cut").format(
            url=without_credentials(self._address.url)
        )


def _conditions(known: str) -> dict[str, str]:
    """Return the headers of a conditional request for a known file (RFC 9110, section 13.1)."""
    if known.startswith(_ETAG):
        return {"If-None-Match": known.removeprefix(_ETAG)}
    if known.startswith(_MODIFIED):
        return {"If-Modified-Since": known.removeprefix(_MODIFIED)}
    return {}


def _strong(response: httpx.Response) -> str:
    """Return the validator for `If-Range`: a strong ETag, else the time of the last change."""
    etag = str(response.headers.get("etag", ""))
    if etag and not etag.startswith("W/"):
        return etag
    return str(response.headers.get("last-modified", ""))


def _begins_at(response: httpx.Response, held: int) -> bool:
    return str(response.headers.get("content-range", "")).startswith(f"bytes {held}-")


def _etag(response: httpx.Response, path: Path) -> str:
    """Return the validator that shows a change of the file: the server's, else a hash."""
    if etag := response.headers.get("etag"):
        return f"{_ETAG}{etag}"
    if modified := response.headers.get("last-modified"):
        return f"{_MODIFIED}{modified}"
    with path.open("rb") as file:
        return f"{_CONTENT}{hashlib.file_digest(file, 'sha256').hexdigest()}"
