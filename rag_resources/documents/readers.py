"""The reader of each kind of file. To add one, name its class here.

Its module is imported on first use: a child process loads only the reader that it needs.
"""

from collections.abc import Mapping
from functools import cache
from importlib import import_module

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
    CSV: "csv_table:CsvReader",
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
