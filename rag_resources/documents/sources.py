"""Sources of documents on the web: a list of URLs, or a page that links to them.

Registering the found files is in `documents.arrival`.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from rag_resources.core.download_config import DownloadConfig
from rag_resources.core.path_pattern import PathPattern
from rag_resources.core.types import RejectedRecord
from rag_resources.documents.folder import FoundFile
from rag_resources.documents.web.download import WebAddress, discard, download_all
from rag_resources.documents.web.listing import LISTS, linked_urls, listed_urls


def is_web(source: str) -> bool:
    """Whether documents of a source are downloaded."""
    return "://" in source or Path(source).suffix.lower() in LISTS


def web_addresses(
    source: str, config: DownloadConfig, *, pattern: PathPattern | None = None
) -> Iterator[WebAddress | RejectedRecord]:
    """Yield the addresses of a source on the web.

    Args:
        source: A `.txt` or `.csv` file, or the URL of a page or sitemap.
        config: How to download.
        pattern: Takes metadata from the paths of URLs; a list's own columns take precedence.

    Raises:
        InvalidSourceError: The list or page cannot be read.
        InvalidParameterError: The selector of links is wrong.
    """
    found = linked_urls(source, config) if "://" in source else listed_urls(Path(source))
    for each in found:
        if isinstance(each, WebAddress) and pattern:
            path = each.url.partition("?")[0].partition("://")[2].partition("/")[2]
            yield WebAddress(each.url, {**pattern.values(path), **each.metadata})
        else:
            yield each


def web_files(
    addresses: Iterable[WebAddress | RejectedRecord],
    known: Mapping[str, str],
    folder: Path,
    config: DownloadConfig,
    *,
    megabytes: int,
) -> Iterator[FoundFile | RejectedRecord]:
    """Yield the files of addresses. Each file is removed when the next one is requested.

    For the arguments see `download_all`.
    """
    wanted = []
    for each in addresses:
        if isinstance(each, RejectedRecord):
            yield each
        else:
            wanted.append(each)
    for found in download_all(wanted, known, folder, config, megabytes=megabytes):
        yield found
        if isinstance(found, FoundFile):
            discard(found)
