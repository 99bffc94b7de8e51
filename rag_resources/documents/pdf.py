"""Reads PDF files page by page, with PDFium.

A page is read in `documents.pdf_page`. PDFium is not safe for threads: one process reads one file
at a time.
"""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, BinaryIO

import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_c

from rag_resources.core.cleaning import clean
from rag_resources.core.configuration import canonical_hash
from rag_resources.core.documents import Page, PageFailure
from rag_resources.core.hyphenation import Vocabulary
from rag_resources.documents.pdf_page import (
    content_of,
    damaged_page,
    open_pdf,
    read_page,
    text_of,
)
from rag_resources.documents.pdf_text_lines import letters_by_size, text_size

_HYPHEN = re.compile("[\x02\ufffe](?:\r\n)?")
"""PDFium's marks for a hyphen at the end of a line, which differ between versions."""

REVISION = 4
"""Revision of the code that reads; raise it by 1 when a page is read in another way."""


class PdfReader:
    """Reads PDF files."""

    name = "PDF"
    reader_hash = canonical_hash({"reader": "pdf", "revision": REVISION})

    def read(self, file: BinaryIO) -> Iterator[Page | PageFailure]:
        """Yield every page in order, read or failed.

        Raises:
            InvalidSourceError: The file is encrypted, damaged, has no pages, or is not a PDF.
        """
        document = open_pdf(file)
        try:
            yield from clean(self._pages(document))
        finally:
            document.close()

    def _pages(self, document: pdfium.PdfDocument) -> Iterator[Page | PageFailure]:
        """Yield every page as read, before cleaning, with the lines that neighbours repeat."""
        vocabulary = _vocabulary(document)
        letters = Counter[float]()
        for number in range(1, len(document) + 1):
            try:
                page = document[number - 1]
            except pdfium.PdfiumError:
                yield PageFailure(
                    number,
                    damaged_page(number),
                )
                continue
            try:
                yield self._page(page, number, vocabulary, letters)
            finally:
                page.close()

    def _page(
        self,
        page: pdfium.PdfPage,
        number: int,
        vocabulary: Vocabulary,
        letters: Counter[float],
    ) -> Page | PageFailure:
        """Read a page.

        Args:
            page: A page of the document.
            number: From 1.
            vocabulary: The document's vocabulary.
            letters: Letters of each size on the pages before; this page's are added.
        """
        try:
            content = content_of(page)
            on_page = letters_by_size(content.words)
            read = read_page(content, number, vocabulary, text_size(on_page, letters))
            letters.update(on_page)
        except (ArithmeticError, LookupError, ValueError):
            # A damaged page can hold any number, such as a size of 10^300.
            return PageFailure(
                number,
                damaged_page(number),
            )
        return read


def _vocabulary(document: pdfium.PdfDocument) -> Vocabulary:
    """Return the words of all pages that can be read."""
    vocabulary = Vocabulary()
    for index in range(len(document)):
        try:
            page = document[index]
        except pdfium.PdfiumError:
            continue
        with text_of(page) as text_page:
            vocabulary.add(_raw_text(text_page))
        page.close()
    return vocabulary


def _raw_text(text_page: Any) -> str:
    """Return the text of a page as PDFium orders it; its hyphens at line ends are `-`."""
    length = pdfium_c.FPDFText_CountChars(text_page)
    if length <= 0:
        return ""
    buffer = (pdfium_c.c_ushort * (length + 1))()
    pdfium_c.FPDFText_GetText(text_page, 0, length, buffer)
    text = bytes(buffer).decode("utf-16-le", "replace").rstrip("\0")
    return _HYPHEN.sub("-\n", text)
