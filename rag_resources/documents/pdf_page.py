"""A page of a PDF file: what is shown on it, in reading order, with structure and places."""

import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

import ftfy
import ftfy.badness
import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_c

from rag_resources.core.documents import BlockKind, Page, Route
from rag_resources.core.errors import InvalidSourceError
from rag_resources.core.hyphenation import Vocabulary
from rag_resources.core.page_quality import text_quality
from rag_resources.documents.archives import damaged, protected
from rag_resources.documents.pdf_blocks import PageBlock, blocks_of
from rag_resources.documents.pdf_drawings import Drawings, read_drawings, turned_drawings
from rag_resources.documents.pdf_geometry import Frame, Rectangle, frame_of, turned, turned_back
from rag_resources.documents.pdf_grids import find_grids
from rag_resources.documents.pdf_layout import Layout, lay_out
from rag_resources.documents.pdf_lines import segments_of
from rag_resources.documents.pdf_tables import AlignedTables
from rag_resources.documents.pdf_text import PageText
from rag_resources.documents.pdf_text_lines import TextLine, body_size, letters_by_size
from rag_resources.documents.pdf_words import Word, form_words, read_words
from rag_resources.languages.messages import _

NEEDS_OCR = "PAGE_NEEDS_OCR"
"""Code of the message about a page that shows something, but has no text."""

HIDDEN = "hidden"
OFF_PAGE = "off_page"
CLIPPED = "clipped"

_SCAN = 0.5
"""An image over this share of a page is a scan of it."""
_MOSTLY = 0.6
"""Share of the letters of a page."""


@dataclass(frozen=True, slots=True)
class PageContent:
    """The visible content of a page, before it is laid out.

    Attributes:
        recognised: Whether the text is from OCR, behind a scan of the page.
    """

    frame: Frame
    words: list[Word]
    unseen: dict[str, list[Word]]
    drawings: Drawings
    recognised: bool = False


@contextmanager
def text_of(page: Any) -> Iterator[Any]:
    """Open the text of a page."""
    text_page = pdfium_c.FPDFText_LoadPage(page)
    try:
        yield text_page
    finally:
        pdfium_c.FPDFText_ClosePage(text_page)


def content_of(page: Any) -> PageContent:
    """Return the visible content of a page."""
    frame = frame_of(page)
    with text_of(page) as text_page:
        words = read_words(text_page, frame)
    words += form_words(page, frame, len(words))
    drawings = read_drawings(page, frame)
    recognised = is_recognised_scan(words, drawings, frame.size)
    seen, unseen = split_by_visibility(words, drawings, frame.size, ignore_paint=recognised)
    return PageContent(frame, _with_weight(_repaired(seen)), unseen, drawings, recognised)


def read_page(
    content: PageContent, number: int, vocabulary: Vocabulary, size: float | None = None
) -> Page:
    """Return a page with its text, blocks and places.

    Args:
        content: The page's content.
        number: From 1.
        vocabulary: The document's; it decides which hyphens at line ends are removed.
        size: Size of the page's text; by default that of most letters.
    """
    written = PageText(vocabulary)
    ordered: list[Word] = []
    has_tables = side_by_side = False
    size = size or body_size(letters_by_size(content.words))
    for turn in _turns(content.words):
        words, drawings = _in_direction(content, turn)
        layout = _laid_out(words, drawings)
        blocks = blocks_of(layout.columns, size, drawings.areas)
        for block in blocks:
            _turn_back(block, turn, content.frame.size)
            written.add(block)
            ordered += block.words
        has_tables |= any(block.kind is BlockKind.TABLE_ROW for block in blocks)
        side_by_side |= layout.side_by_side
    written.add_unseen(content.unseen)
    has_images = content.drawings.has_picture(content.frame.size)
    shows = has_images or bool(content.drawings.areas)
    return Page(
        number,
        written.text,
        route=_route(content),
        blocks=tuple(written.blocks),
        removed=tuple(written.removed),
        quality=text_quality(" ".join(word.text for word in ordered)) if ordered else None,
        has_images=has_images,
        has_tables=has_tables,
        has_multiple_columns=side_by_side,
        notices=(NEEDS_OCR,) if not content.words and shows else (),
        left_out={
            reason: sum(len(word.text) for word in words)
            for reason, words in content.unseen.items()
        },
    )


def _route(content: PageContent) -> Route:
    if not content.words:
        return Route.NONE
    return Route.OCR if content.recognised else Route.TEXT


def _turns(words: Sequence[Word]) -> list[int]:
    """Return the directions of the text on a page, the most frequent first."""
    letters = [0] * 4
    for word in words:
        letters[word.style.turn] += len(word.text)
    return sorted((turn for turn in range(4) if letters[turn]), key=lambda turn: -letters[turn])


def _in_direction(content: PageContent, turn: int) -> tuple[list[Word], Drawings]:
    """Return the words of one direction and the drawings, turned to read from left to right."""
    words = [word for word in content.words if word.style.turn == turn]
    if not turn:
        return words, content.drawings
    size = content.frame.size
    upright = [moved(word, turned(word.box, turn, size)) for word in words]
    return upright, turned_drawings(content.drawings, turn, size)


def _laid_out(words: Sequence[Word], drawings: Drawings) -> Layout:
    """Find the tables of a page, and put them and the other words into columns."""
    tables, rest = find_grids(words, drawings)
    segments = segments_of(rest, drawings.vertical)
    return lay_out([*tables, *segments], AlignedTables(drawings.horizontal))


def moved(word: Word, box: Rectangle) -> Word:
    """Return a word with another box."""
    left, top, right, bottom = box
    return replace(word, left=left, top=top, right=right, bottom=bottom)


def _turn_back(block: PageBlock, turn: int, size: tuple[float, float]) -> None:
    """Give the lines, cells and words of a block their boxes on the page shown."""
    if not turn:
        return
    parts: list[TextLine | Word] = [*block.lines, *block.words]
    for part in parts:
        part.left, part.top, part.right, part.bottom = turned_back(part.box, turn, size)
    for cell in block.cells:
        cell.box = turned_back(cell.box, turn, size)


def _with_weight(words: list[Word]) -> list[Word]:
    """Return words that are bold only where bold is the exception on the page.

    Some fonts claim to be bold and are not.
    """
    letters = sum(len(word.text) for word in words)
    bold = sum(len(word.text) for word in words if word.style.bold)
    if bold > _MOSTLY * letters:
        for word in words:
            word.style = replace(word.style, bold=False)
    return words


def _repaired(words: list[Word]) -> list[Word]:
    """Repair letters that were stored in the wrong encoding, such as `PolÃ­tica`.

    Everything else stays as it is: accents, quotes, dashes.
    """
    if ftfy.badness.is_bad(" ".join(word.text for word in words)):
        for word in words:
            if ftfy.badness.is_bad(word.text):
                word.text = unicodedata.normalize("NFC", ftfy.fix_encoding(word.text))
    for word in words:
        if len(word.text) == 1 and "\ue000" <= word.text <= "\uf8ff":
            word.text = "•"  # the mark of a list, in a font of symbols
        if "\xad" in word.text:
            # Within a word it marks where the word could be broken; at its end it is drawn.
            word.text = word.text[:-1].replace("\xad", "") + word.text[-1]
    return [word for word in words if word.text.strip()]


def open_pdf(file: BinaryIO) -> pdfium.PdfDocument:
    """Open a PDF file.

    Raises:
        InvalidSourceError: The file is encrypted, damaged, has no pages, or is not a PDF.
    """
    try:
        document = pdfium.PdfDocument(file)
    except pdfium.PdfiumError as error:
        if getattr(error, "err_code", None) == pdfium_c.FPDF_ERR_PASSWORD:
            raise protected() from error
        raise damaged("PDF", error) from error
    if not len(document):
        document.close()
        raise InvalidSourceError(_("The PDF has no pages."))
    return document


def damaged_page(number: int) -> str:
    """Say that a page cannot be read."""
    return _("Page {number} of the PDF cannot be read: it is damaged. The others are read.").format(
        number=number
    )


def is_recognised_scan(
    words: Sequence[Word], drawings: Drawings, size: tuple[float, float]
) -> bool:
    """Whether the page is a scan with all its words invisible behind it, as OCR writes them."""
    if not words or any(word.style.painted for word in words):
        return False
    page = size[0] * size[1] or 1.0
    return any(
        (right - left) * (bottom - top) / page >= _SCAN
        for left, top, right, bottom in drawings.images
    )


def split_by_visibility(
    words: Sequence[Word],
    drawings: Drawings,
    size: tuple[float, float],
    *,
    ignore_paint: bool = False,
) -> tuple[list[Word], dict[str, list[Word]]]:
    """Return the words that can be seen, and the others by reason.

    Args:
        words: The page's words.
        drawings: The page's drawings.
        size: The page's size.
        ignore_paint: Whether words count as visible although nothing is painted.
    """
    seen: list[Word] = []
    unseen: dict[str, list[Word]] = defaultdict(list)
    backgrounds = [*drawings.areas, *drawings.images]
    for word in words:
        reason = _reason(word, backgrounds, drawings, size, ignore_paint=ignore_paint)
        if reason is None:
            seen.append(word)
        else:
            unseen[reason].append(word)
    return seen, dict(unseen)


def _reason(
    word: Word,
    backgrounds: Sequence[Rectangle],
    drawings: Drawings,
    size: tuple[float, float],
    *,
    ignore_paint: bool,
) -> str | None:
    if not _overlap(word.box, (0.0, 0.0, *size)):
        return OFF_PAGE
    if not ignore_paint and not word.style.painted:
        return HIDDEN
    if word.style.white and not any(_overlap(word.box, box) for box in backgrounds):
        return HIDDEN
    if drawings.clips and _is_clipped(word, drawings):
        return CLIPPED
    return None


def _is_clipped(word: Word, drawings: Drawings) -> bool:
    """Whether a word lies in a clipped text object, on the part that does not show."""
    x, y = (word.left + word.right) / 2, (word.top + word.bottom) / 2
    return any(
        bounds[0] <= x <= bounds[2] and bounds[1] <= y <= bounds[3] and not _overlap(word.box, clip)
        for bounds, clip in drawings.clips
    )


def _overlap(first: Rectangle, second: Rectangle) -> bool:
    return (
        first[0] < second[2]
        and second[0] < first[2]
        and first[1] < second[3]
        and second[1] < first[3]
    )
