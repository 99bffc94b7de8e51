"""Headings among the blocks of a page, and their levels."""

import re
from collections.abc import Sequence
from statistics import median

from rag_resources.documents.pdf_text_lines import TextLine

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
