"""Lines of text with the properties that separate blocks, and which lines are headings."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from rag_resources.documents.pdf_geometry import Rectangle
from rag_resources.documents.pdf_lines import Segment
from rag_resources.documents.pdf_words import Word

_FEW_LETTERS = 150

_SPACED_LETTERS = 5
"""A line with this many single letters has words with spaced-out letters."""


@dataclass(slots=True)
class TextLine:
    """A line of a column.

    Attributes:
        marked: Whether a bullet is drawn before it, as a shape and not as a letter.
    """

    words: list[Word]
    left: float
    top: float
    right: float
    bottom: float
    size: float
    bold: bool
    mono: bool
    marked: bool

    @property
    def text(self) -> str:
        """The words, with spaces."""
        return " ".join(word.text for word in self.words)

    @property
    def box(self) -> Rectangle:
        """Left, top, right, bottom."""
        return self.left, self.top, self.right, self.bottom


def letters_by_size(words: Iterable[Word]) -> Counter[float]:
    """Count the letters of each size."""
    letters = Counter[float]()
    for word in words:
        letters[word.style.size] += len(word.text)
    return letters


def body_size(letters: Mapping[float, int]) -> float:
    """Return the size of most letters."""
    return max(letters, key=lambda size: (letters[size], -size), default=10.0)


def text_size(page: Mapping[float, int], before: Mapping[float, int]) -> float:
    """Return the size of the text of a page; larger letters belong to headings.

    It is the document's size if the page has text of this size, or hardly any text. Most letters of
    a page with a large table in small letters, or with only a title, are not body text.

    Args:
        page: Letters of each size on the page.
        before: The same, of the pages before it.
    """
    size = body_size(before)
    if before and (page.get(size, 0) >= _FEW_LETTERS or sum(page.values()) < 2 * _FEW_LETTERS):
        return size
    return body_size(page)


def text_line(segments: Sequence[Segment], marks: Sequence[Rectangle]) -> TextLine:
    """Return a line made of segments.

    Args:
        segments: From left to right.
        marks: Areas of the page that have the size of a bullet.
    """
    words = [word for segment in segments for word in segment.words]
    if any(first.right > second.left + 1 for first, second in pairwise(segments)):
        # Lowered figures that the file draws after the whole line.
        words.sort(key=lambda word: word.left)
    words = _unspaced(words)
    letters = sum(len(word.text) for word in words)
    tallest = max(segments, key=lambda segment: (len(segment.text), segment.size))
    left = min(segment.left for segment in segments)
    return TextLine(
        words=words,
        left=left,
        top=tallest.top,
        right=max(segment.right for segment in segments),
        bottom=tallest.bottom,
        size=body_size(letters_by_size(words)),
        bold=sum(len(w.text) for w in words if w.style.bold) > 0.9 * letters,
        mono=sum(len(w.text) for w in words if w.style.mono) > 0.9 * letters,
        marked=any(
            tallest.top < (mark[1] + mark[3]) / 2 < tallest.bottom
            and 0 < left - mark[2] < 2.5 * tallest.size
            for mark in marks
        ),
    )


def _unspaced(words: list[Word]) -> list[Word]:
    """Join letters that are set apart for display, as in `P L A N`."""
    letters = [word.text for word in words if len(word.text) == 1 and word.text.isalpha()]
    if len(letters) < _SPACED_LETTERS or len(letters) < 0.8 * len(words):
        return words
    if letters == sorted(letters):
        return words  # the letters of an index
    gaps = [second.left - first.right for first, second in pairwise(words)]
    usual = median(gaps)
    joined = [words[0]]
    for word, gap in zip(words[1:], gaps, strict=True):
        last = joined[-1]
        if gap > 1.5 * usual:
            joined.append(word)
        else:
            top, bottom = min(last.top, word.top), max(last.bottom, word.bottom)
            text = last.text + word.text
            joined[-1] = Word(text, last.left, top, word.right, bottom, last.style, last.order)
    return joined


BULLETS = "•▪■◦●○‣⁃∙·►▶➢➤✓✔❖◆◇□–—-*"

_NUMBERING = re.compile(r"^(?:\d{1,2}(?:\.\d{1,2}){0,5})\.?$")
_LARGER = 1.12
"""Times the size of the page's text; larger text is a heading."""

_MAX_HEADING_CHARS = 200
_MAX_BOLD_HEADING_CHARS = 150
_MAX_HEADING_LINES = 4
_HEADING_SIZES = (1.75, 1.4, 1.15)
"""Times the size of the page's text, of headings of level 1, 2 and 3; smaller ones are level 4."""


def is_heading(lines: Sequence[TextLine], size: float) -> bool:
    """Whether the lines of a block are a heading: larger, bold or in capitals, and short.

    Args:
        lines: The block's lines.
        size: Size of the page's text.
    """
    text = " ".join(line.text for line in lines)
    letters = [c for c in text if c.isalpha()]
    if len(letters) < 2 or len(text) > _MAX_HEADING_CHARS or len(lines) > _MAX_HEADING_LINES:
        return False
    line_size = median([line.size for line in lines])
    if line_size >= _LARGER * size:
        return not (text.endswith(".") and len(text) > 80)
    if lines[0].words[0].text in BULLETS or text.endswith((".", ",", ";")):
        return False
    if line_size < 0.95 * size or len(text) > _MAX_BOLD_HEADING_CHARS or len(lines) > 2:
        return False
    if all(line.bold for line in lines):
        return True
    upper = sum(c.isupper() for c in letters)
    return (
        len(letters) >= 4
        and upper >= 0.95 * len(letters)
        and len(text) <= 80
        and (len(lines[0].words) <= 10)
    )


def heading_level(lines: Sequence[TextLine], size: float) -> int:
    """Return the level of a heading, from 1: by its numbering if it has any, or by its size."""
    first = lines[0].words[0].text
    if _NUMBERING.match(first) and len(lines[0].words) > 1:
        depth = len([part for part in first.split(".") if part])
        if depth > 1:
            return depth
    ratio = median([line.size for line in lines]) / size
    for level, smallest in enumerate(_HEADING_SIZES, start=1):
        if ratio >= smallest:
            return level
    return len(_HEADING_SIZES) + 1
