"""Recognises the media type of a file by its content; its name decides only between kinds of text.

The readers of each kind are listed in `documents.readers`.
"""

import os
import re
from pathlib import PurePosixPath
from typing import BinaryIO
from urllib.parse import urlsplit

from rag_resources.core.errors import InvalidSourceError
from rag_resources.core.quoting import shown
from rag_resources.documents.archives import protected
from rag_resources.languages.messages import _

PDF = "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
XLS = "application/vnd.ms-excel"
ODS = "application/vnd.oasis.opendocument.spreadsheet"
HTML = "text/html"
CSV = "text/csv"
TEXT = "text/plain"
MARKDOWN = "text/markdown"

SUFFIXES: dict[str, str] = {
    ".pdf": PDF,
    ".docx": DOCX,
    ".docm": DOCX,
    ".xlsx": XLSX,
    ".xlsm": XLSX,
    ".xls": XLS,
    ".ods": ODS,
    ".html": HTML,
    ".htm": HTML,
    ".xhtml": HTML,
    ".csv": CSV,
    ".tsv": CSV,
    ".txt": TEXT,
    ".md": MARKDOWN,
    ".markdown": MARKDOWN,
}
"""Files with these suffixes are documents."""

_TEXTS = (HTML, CSV, TEXT, MARKDOWN)
_EDGE_BYTES = 65_536
_PDF_WITHIN_BYTES = 1_024
_PDF = b"%PDF-"
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
_IN_ARCHIVES = {
    b"word/document": DOCX,
    b"xl/workbook.xml": XLSX,
    b"mimetypeapplication/vnd.oasis.opendocument.spreadsheet": ODS,
}
_HTML = re.compile(
    rb"\s*(<\?xml[^>]*>\s*)?(<!--.*?-->\s*)*<(!doctype\s+html|html|head|body)\b", re.I | re.S
)


def media_type_of(file: BinaryIO, name: str) -> str:
    """Return the media type of a file.

    The first bytes decide before the suffix, so that a file that is valid as two kinds is always
    read as the same one. Nothing is unpacked: only both ends of the file are examined.

    Args:
        file: Seekable.
        name: Its path or URL.

    Raises:
        InvalidSourceError: No reader knows this kind, it is encrypted, or its content is not what
            its suffix says.
    """
    path = urlsplit(name).path if "://" in name else name
    suffix = PurePosixPath(path).suffix.lower()
    head, tail = _ends(file)
    found = _binary(head, tail, suffix)
    if found is None:
        found = _text(head, suffix)
    if found is None:
        known = suffix in SUFFIXES and SUFFIXES[suffix] not in _TEXTS
        message = (
            _(
                "The content is not what the suffix {suffix} says. Check that the file was "
                "downloaded whole, and rename it if it is of another type."
            )
            if known
            else _("This file cannot be read ({suffix}). Read are: {suffixes}.")
        )
        raise InvalidSourceError(
            message.format(suffix=shown(suffix or path), suffixes=" ".join(SUFFIXES)), name=name
        )
    return found


def _ends(file: BinaryIO) -> tuple[bytes, bytes]:
    file.seek(0)
    head = file.read(_EDGE_BYTES)
    length = file.seek(0, os.SEEK_END)
    file.seek(max(0, length - _EDGE_BYTES))
    tail = file.read(_EDGE_BYTES)
    file.seek(0)
    return head, tail


def _binary(head: bytes, tail: bytes, suffix: str) -> str | None:
    if not head:
        raise InvalidSourceError(_("The file is empty."))
    if head.startswith(_PDF):
        return PDF
    if head.startswith(_ZIP):
        return next((kind for mark, kind in _IN_ARCHIVES.items() if mark in head + tail), None)
    if head.startswith(_OLE):
        if _ENCRYPTED in head + tail:
            raise protected()
        return XLS if suffix == ".xls" else None
    # PDF readers accept some bytes before the mark.
    early = head[:_PDF_WITHIN_BYTES]
    return PDF if _PDF in early and not _HTML.match(early) else None


def _text(head: bytes, suffix: str) -> str | None:
    kind = SUFFIXES.get(suffix)
    if b"\0" in head and not head.startswith(_UTF_16):
        return None
    if _HTML.match(head.removeprefix(b"\xef\xbb\xbf")):
        # A fragment of HTML in Markdown is Markdown.
        return kind if kind in (MARKDOWN, TEXT, CSV) else HTML
    return kind if kind in _TEXTS else None
