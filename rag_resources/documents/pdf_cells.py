"""The types of cells and tables, which `documents.pdf_grids` and `documents.pdf_tables` find."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from rag_resources.documents.pdf_geometry import Rectangle
from rag_resources.documents.pdf_lines import Segment, lines_of
from rag_resources.documents.pdf_words import Word

_MAX_CELL_WORDS = 250
"""Cells with more words, in the median of the filled ones, are frames around text."""


@dataclass(slots=True)
class Cell:
    """A cell of a table; empty if it has no words."""

    words: list[Word]
    box: Rectangle

    @property
    def text(self) -> str:
        """The words, with spaces."""
        return " ".join(word.text for word in self.words)


@dataclass(slots=True)
class Table:
    """Rows of cells, as many in every row."""

    rows: list[list[Cell]]
    left: float
    top: float
    right: float
    bottom: float
    header_rows: int = 0
    order: int = 0

    @property
    def box(self) -> Rectangle:
        """Left, top, right, bottom."""
        return self.left, self.top, self.right, self.bottom

    @property
    def size(self) -> float:
        """Size of the letters; it has no effect, since a table is never cut."""
        return 0.0


def is_number(text: str) -> bool:
    """Whether a cell holds a number, an amount, a share, or a mark for a missing one."""
    digits = sum(c.isdigit() for c in text)
    letters = sum(c.isalpha() for c in text)
    return (digits > 0 and letters <= digits // 2) or text in {"-", "–", "—", "…", "n.d.", "*"}


def table_of(rows: Sequence[Sequence[Cell]]) -> Table | None:
    """Make a table of rows of cells without its empty rows and columns; None if it is too small."""
    kept = [row for row in rows if any(cell.words for cell in row)]
    if not kept:
        return None
    width = range(len(kept[0]))
    columns = [c for c in width if any(row[c].words for row in kept)]
    if len(kept) < 2 or len(columns) < 2:
        return None
    cells = [[row[c] for c in columns] for row in kept]
    filled = [cell for row in cells for cell in row if cell.words]
    if len(filled) < 3 or median([len(cell.words) for cell in filled]) > _MAX_CELL_WORDS:
        return None
    for cell in filled:
        cell.words[:] = in_reading_order(cell.words)
    boxes = [cell.box for cell in filled]
    return Table(
        rows=cells,
        left=min(box[0] for box in boxes),
        top=min(box[1] for box in boxes),
        right=max(box[2] for box in boxes),
        bottom=max(box[3] for box in boxes),
        header_rows=_header_rows(cells),
        order=min(word.order for cell in filled for word in cell.words),
    )


def in_reading_order(words: Sequence[Word]) -> list[Word]:
    """Return the words of a cell line by line."""
    lines = lines_of(Segment([word]) for word in words)
    return [word for line in lines for segment in line for word in segment.words]


def _header_rows(rows: Sequence[Sequence[Cell]]) -> int:
    """Count the rows at the top that are heads: bold, or words over numbers."""
    count = 0
    for row in rows[:4]:
        filled = [cell for cell in row if cell.words]
        if any(is_number(cell.text) for cell in filled[1:]) and not _all_bold(filled):
            break
        if _all_bold(filled) or (_numbers_below(rows, count) and count < 3):
            count += 1
            continue
        break
    return min(count, len(rows) - 1)


def _all_bold(cells: Sequence[Cell]) -> bool:
    return bool(cells) and all(word.style.bold for cell in cells for word in cell.words)


def _numbers_below(rows: Sequence[Sequence[Cell]], row: int) -> bool:
    below = [cell for line in rows[row + 1 :] for cell in line[1:] if cell.words]
    return bool(below) and sum(is_number(cell.text) for cell in below) >= 0.5 * len(below)
