"""The reader of each kind of file. To add one, name its class here.

Its module is imported on first use: a child process loads only the reader that it needs.
"""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import version

from rag_resources.core.configuration import canonical_hash
from rag_resources.core.documents import DocumentReader
from rag_resources.core.errors import InvalidSourceError
from rag_resources.documents.media_types import (
    CSV,
    DOCX,
    HTML,
    MARKDOWN,
    ODS,
    PDF,
    TEXT,
    XLS,
    XLSX,
)
from rag_resources.languages.messages import _

READERS: Mapping[str, str] = {
    PDF: "pdf:PdfReader",
    DOCX: "docx:DocxReader",
    HTML: "html:HtmlReader",
    XLSX: "workbook:WorkbookReader",
    XLS: "workbook:WorkbookReader",
    ODS: "workbook:WorkbookReader",
    CSV: "workbook:CsvReader",
    TEXT: "text:TextReader",
    MARKDOWN: "text:MarkdownReader",
}
"""The readers by media type: `module:Class`, the module inside `rag_resources.documents`."""


@cache
def reader_of(media_type: str) -> DocumentReader:
    """Return the reader of a kind of file, one per process.

    Raises:
        InvalidSourceError: No reader knows this kind.
    """
    if media_type not in READERS:
        raise InvalidSourceError(
            _("There is no reader for {media_type}.").format(media_type=media_type)
        )
    module, __, name = READERS[media_type].partition(":")
    reader: DocumentReader = getattr(import_module(f"rag_resources.documents.{module}"), name)()
    return reader


@cache
def identity_of(reader: str, revision: int, *packages: str) -> str:
    """Return the hash of a reader: its name, the revision of its code, and its packages' versions.

    Args:
        reader: Its name.
        revision: Raise it by 1 when a file is read in another way.
        packages: The distributions that parse for it.
    """
    versions = {package: version(package) for package in packages}
    return canonical_hash({"reader": reader, "revision": revision, "packages": versions})
