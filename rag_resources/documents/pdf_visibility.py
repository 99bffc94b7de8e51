"""Decides which words of a PDF page are visible to a reader.

Text can be invisible, white on white, outside of the page, or clipped away. One plan had 147,172
such characters.
"""

from collections import defaultdict
from collections.abc import Sequence

from rag_resources.documents.pdf_drawings import Drawings
from rag_resources.documents.pdf_geometry import Rectangle
from rag_resources.documents.pdf_words import Word

HIDDEN = "hidden"
OFF_PAGE = "off_page"
CLIPPED = "clipped"

_SCAN = 0.5
"""An image over this share of a page is a scan of it."""


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
