"""Reads places of a PDF file again: the text within a box, and pictures of pages with boxes.

So a citation is verified against the file itself, not against the text once read from it.
"""

import re
import unicodedata
from collections.abc import Sequence
from contextlib import suppress
from io import BytesIO
from typing import BinaryIO

import pypdfium2 as pdfium
from PIL import ImageDraw

from rag_resources.core.errors import InvalidSourceError
from rag_resources.core.hyphenation import HYPHENS
from rag_resources.core.places import Box
from rag_resources.documents.pdf_cells import in_reading_order
from rag_resources.documents.pdf_geometry import turned
from rag_resources.documents.pdf_page import PageContent, content_of, damaged_page, moved, open_pdf
from rag_resources.documents.pdf_words import Word

DOTS_PER_INCH = 110
"""Resolution of pictures: body text can be read, and a page takes some 100 kB."""

MAX_PIXELS = 4_000
"""Longest side of a picture; larger pages, such as plans on A0, are scaled down."""

_POINTS_PER_INCH = 72
_MARGIN = 1.0
_COLOUR = (214, 39, 40)
_IGNORED = re.compile(r"[\s|]+")


class PdfFile:
    """A PDF file, open for reading places.

    Args:
        file: Open until `close`.

    Raises:
        InvalidSourceError: The file is encrypted, damaged, or not a PDF.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._document = open_pdf(file)
        self._read: tuple[int, PageContent] | None = None

    def close(self) -> None:
        """Free the memory of the file."""
        self._document.close()

    def text_in(self, number: int, box: Box) -> str:
        """Read the words whose middle is in a box of a page.

        Args:
            number: Of the page, from 1.
            box: On the page shown.

        Raises:
            InvalidSourceError: The page does not exist or cannot be read.
        """
        content = self._content(number)
        words = [word for word in content.words if _is_in(word, box)]
        if not words:
            return ""
        turn = max(
            {word.style.turn for word in words},
            key=lambda turn: sum(word.style.turn == turn for word in words),
        )
        size = content.frame.size
        upright = [moved(word, turned(word.box, turn, size)) for word in words]
        return " ".join(word.text for word in in_reading_order(upright))

    def picture(self, number: int, boxes: Sequence[Box] = ()) -> bytes:
        """Return a page as PNG, with boxes drawn on it.

        Args:
            number: Of the page, from 1.
            boxes: On the page shown.

        Raises:
            InvalidSourceError: The page does not exist or cannot be read.
        """
        page = self._page(number)
        try:
            longest = max(page.get_size()) or 1.0
            scale = min(DOTS_PER_INCH / _POINTS_PER_INCH, MAX_PIXELS / longest)
            image = page.render(scale=scale).to_pil().convert("RGB")
        finally:
            page.close()
        draw = ImageDraw.Draw(image)
        for box in boxes:
            sides = (box.left - 1, box.top - 1, box.right + 1, box.bottom + 1)
            draw.rectangle([side * scale for side in sides], outline=_COLOUR, width=2)
        png = BytesIO()
        image.save(png, format="PNG", optimize=True)
        return png.getvalue()

    def _page(self, number: int) -> pdfium.PdfPage:
        if 1 <= number <= len(self._document):
            with suppress(pdfium.PdfiumError):
                return self._document[number - 1]
        raise InvalidSourceError(damaged_page(number))

    def _content(self, number: int) -> PageContent:
        if self._read is None or self._read[0] != number:
            page = self._page(number)
            try:
                self._read = number, content_of(page)
            finally:
                page.close()
        return self._read[1]


def _is_in(word: Word, box: Box) -> bool:
    x, y = (word.left + word.right) / 2, (word.top + word.bottom) / 2
    return (
        box.left - _MARGIN <= x <= box.right + _MARGIN
        and box.top - _MARGIN <= y <= box.bottom + _MARGIN
    )


def is_same_text(stored: str, read: str) -> bool:
    """Whether a stored text equals the text read at its place.

    White space, the bars between cells, and a hyphen at the end of the line do not count.
    """
    return _bare(stored) == _bare(read)


def _bare(text: str) -> str:
    bare = _IGNORED.sub("", unicodedata.normalize("NFC", text))
    return bare.rstrip("".join(HYPHENS))
