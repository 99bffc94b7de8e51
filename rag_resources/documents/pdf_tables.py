"""Tables of a page whose columns are aligned, without lines around the cells.

Tables drawn with lines are found by `documents.pdf_grids`.
"""

import re
from bisect import bisect
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from rag_resources.documents.pdf_cells import Cell, Table, is_number, table_of
from rag_resources.documents.pdf_drawings import Rule
from rag_resources.documents.pdf_geometry import Rectangle
from rag_resources.documents.pdf_layout import Item, Row
from rag_resources.documents.pdf_lines import WIDE_GAP, Segment, lines_of
from rag_resources.documents.pdf_text_lines import BULLETS

_CROSSED = 0.15
"""Share of the rows that may extend over a gutter between two columns."""

_APART = 1.75
"""Times the size, and times the usual white space: lines farther apart are not of one table."""

_PAGE_DIGITS = 4
_MANY_ROWS = 6
"""With this many rows, one more may extend over a gutter: a head over several columns."""

_NEXT_LINE = 1.45
"""Times the size; a line farther down is another row."""

_SHORT_CELL = 40
"""Characters; cells of a table without numbers or rules have fewer, in the median."""

_FILLED_CELLS = 0.4
"""Share of the cells of a table; the numbers of a diagram fill fewer."""

_MARKER = re.compile(
    r"^(?:[•▪■◦●○‣–—·*-]|[\uf0a7\uf0b7]|\(?[0-9ivxIVX]{1,4}[.)]|\(?[a-zA-Z][.)]|(?:\d+\.)+\d*)$"
)


class AlignedTables:
    """Finds tables in rows of segments that white space separates.

    Args:
        horizontal: The horizontal rules of the page; they separate rows of a table.
    """

    def __init__(self, horizontal: Sequence[Rule]) -> None:
        self._rules = sorted(horizontal, key=lambda rule: rule.at)

    def __call__(self, rows: Sequence[Row]) -> list[Table | Row]:
        """Return the rows, with each table in place of its rows."""
        if any(isinstance(item, Table) for row in rows for item in row):
            return list(rows)
        segments = [item for row in rows for item in row if isinstance(item, Segment)]
        lines = lines_of(segments)
        if _ends_in_pages([line for line in lines if len(line) > 1]):
            return list(rows)
        return [part for group in _groups(lines) for part in self._parts(group)]

    def _parts(self, lines: Sequence[list[Segment]]) -> list[Table | Row]:
        """Return neighbouring lines, with each table in place of its lines."""
        start, end = _core(lines)
        table = self._table(lines[start:end]) if end - start >= 2 else None
        if table is None:
            return [list[Item](line) for line in lines]
        before: list[Table | Row] = [list[Item](line) for line in lines[:start]]
        after: list[Table | Row] = [list[Item](line) for line in lines[end:]]
        return [*before, table, *after]

    def _table(self, lines: Sequence[Sequence[Segment]]) -> Table | None:
        gutters = _gutters(lines)
        if not gutters:
            return None
        rows = [_cells(line, gutters) for line in lines]
        rules = self._rules_between(lines)
        if not _is_table(rows, rules):
            return None
        return table_of(self._joined(rows))

    def _rules_between(self, lines: Sequence[Sequence[Segment]]) -> int:
        left = min(line[0].left for line in lines)
        right = max(line[-1].right for line in lines)
        top, bottom = lines[0][0].top - 15, lines[-1][0].bottom + 15
        return sum(
            top <= rule.at <= bottom
            and min(rule.end, right) - max(rule.start, left) > 0.5 * (right - left)
            for rule in self._rules
        )

    def _joined(self, rows: Sequence[list[Cell]]) -> list[list[Cell]]:
        """Join the lines of rows that are written on several lines."""
        joined: list[list[Cell]] = []
        for row in rows:
            if joined and not self._is_ruled_off(joined[-1], row) and _continues(joined[-1], row):
                joined[-1] = [_both(a, b) for a, b in zip(joined[-1], row, strict=True)]
            else:
                joined.append(row)
        return joined

    def _is_ruled_off(self, above: Sequence[Cell], below: Sequence[Cell]) -> bool:
        top = max(cell.box[3] for cell in above if cell.words)
        bottom = min(cell.box[1] for cell in below if cell.words)
        low, high = min(top, bottom) - 2, max(top, bottom) + 2
        return any(low <= rule.at <= high for rule in self._rules)


def _ends_in_pages(lines: Sequence[Sequence[Segment]]) -> bool:
    """Whether lines end in page numbers that grow, as those of a table of contents."""
    ends = [line[-1].text for line in lines]
    pages = [int(end) for end in ends if end.isdecimal() and len(end) <= _PAGE_DIGITS]
    return (
        len(lines) >= _MANY_ROWS
        and len(pages) >= 0.8 * len(lines)
        and pages == sorted(pages)
        and median(map(len, lines)) <= 3
        and len({line[0].text for line in lines}) == len(lines)
        and median(len(line[0].text) + len(line[-2].text) for line in lines) > _SHORT_CELL / 2
    )


def _groups(lines: Sequence[list[Segment]]) -> list[list[list[Segment]]]:
    """Cut lines where much more white space is between them than elsewhere."""
    spaces = [below[0].top - above[0].bottom for above, below in pairwise(lines)]
    usual = median(spaces) if spaces else 0.0
    groups = [[lines[0]]]
    for line, space in zip(lines[1:], spaces, strict=True):
        if space > max(_APART * line[0].size, _APART * usual):
            groups.append([line])
        else:
            groups[-1].append(line)
    return groups


def _core(lines: Sequence[Sequence[Segment]]) -> tuple[int, int]:
    """Return the part of the lines from the first to the last one with several segments."""
    several = [index for index, line in enumerate(lines) if len(line) > 1]
    if not several:
        return 0, 0
    end = several[-1] + 1
    while end < len(lines):
        above, line = lines[end - 1], lines[end]
        if line[0].top - above[0].bottom > 0.35 * line[0].size or line[0].left <= above[0].left + 1:
            break
        end += 1
    return several[0], end


def _gutters(lines: Sequence[Sequence[Segment]]) -> list[tuple[float, float]]:
    """Return the white columns between the segments of most lines, left to right."""
    several = [line for line in lines if len(line) > 1]
    size = median([line[0].size for line in lines])
    edges = sorted(
        [(segment.left, 1) for line in several for segment in line]
        + [(segment.right, -1) for line in several for segment in line]
    )
    allowed = int(_CROSSED * len(several)) + (len(several) >= _MANY_ROWS)
    gutters: list[tuple[float, float]] = []
    depth, start = 0, None
    for position, step in edges:
        before, depth = depth, depth + step
        if before > allowed >= depth:
            start = position
        elif before <= allowed < depth and start is not None:
            if position - start >= 0.5 * WIDE_GAP * size:
                gutters.append((start, position))
            start = None
    return gutters


def _cells(line: Sequence[Segment], gutters: Sequence[tuple[float, float]]) -> list[Cell]:
    """Put the words of a line into columns."""
    middles = [(left + right) / 2 for left, right in gutters]
    size = line[0].size
    cells = [Cell([], (0.0, 0.0, 0.0, 0.0)) for _ in range(len(middles) + 1)]
    for segment in line:
        if all(is_number(word.text) for word in segment.words):
            # Numbers of several columns, so wide that they nearly touch.
            for word in segment.words:
                cells[bisect(middles, (word.left + word.right) / 2)].words.append(word)
        else:
            # Words that reach over several columns stay together, in the first of them.
            cells[bisect(middles, segment.left + 0.5 * size)].words += segment.words
    for cell in cells:
        if cell.words:
            cell.box = _around(cell)
    return cells


def _around(cell: Cell) -> Rectangle:
    return (
        min(word.left for word in cell.words),
        min(word.top for word in cell.words),
        max(word.right for word in cell.words),
        max(word.bottom for word in cell.words),
    )


def _is_table(rows: Sequence[Sequence[Cell]], rules: int) -> bool:
    """Whether aligned rows are a table, and not a list, a table of contents or a form."""
    several = [row for row in rows if sum(bool(cell.words) for cell in row) > 1]
    columns = len(rows[0])
    if len(several) < 2 or (len(several) < 3 and not rules):
        return False
    first = [row[0].text for row in several if row[0].words]
    markers = sum(bool(_MARKER.match(text)) for text in first)
    bullets = sum(text in BULLETS for text in first)
    if (columns == 2 and markers > 0.6 * len(first)) or bullets > 0.4 * len(first):
        return False
    filled = sum(bool(cell.words) for row in rows for cell in row)
    if filled < _FILLED_CELLS * len(rows) * columns or _is_contents(several):
        return False
    others = [cell for row in several for cell in row[1:] if cell.words]
    numbers = sum(is_number(cell.text) for cell in others) / len(others)
    length = median([len(cell.text) for cell in others])
    if numbers >= 0.4 or rules >= 2:
        return length <= 2 * _SHORT_CELL
    return length <= _SHORT_CELL and (columns > 2 or len(several) >= 4)


def _is_contents(rows: Sequence[Sequence[Cell]]) -> bool:
    """Whether rows end in page numbers that grow, as in a table of contents."""
    ends = [next(cell.text for cell in reversed(row) if cell.words) for row in rows]
    pages = [int(end) for end in ends if end.isdecimal() and len(end) <= 4]
    filled = median([sum(bool(cell.words) for cell in row) for row in rows])
    return (
        filled <= 3
        and len(pages) >= 0.8 * len(rows)
        and pages == sorted(pages)
        and len(rows) > 2
        and len({len(cell.text) for row in rows for cell in row[:1]}) > 2
    )


def _continues(above: Sequence[Cell], below: Sequence[Cell]) -> bool:
    """Whether a line continues the cells of the row above."""
    top = max(cell.words[-1].bottom for cell in above if cell.words)
    filled = [cell for cell in below if cell.words]
    size = filled[0].words[0].style.size
    pitch = filled[0].words[0].bottom - top
    if pitch > _NEXT_LINE * size:
        return False
    if any(is_number(cell.text) for cell in filled):
        return not above[0].words[0:0] and _label_goes_on(above, below)
    if below[0].words:
        return _label_goes_on(above, below)
    return all(cell.words for cell, lower in zip(above, below, strict=True) if lower.words)


def _label_goes_on(above: Sequence[Cell], below: Sequence[Cell]) -> bool:
    """Whether a label was broken before its values: a lower-case word under a lone label."""
    lone = bool(above[0].words) and not any(cell.words for cell in above[1:])
    return lone and bool(below[0].words) and below[0].text[0].islower()


def _both(above: Cell, below: Cell) -> Cell:
    words = [*above.words, *below.words]
    both = Cell(words, (0.0, 0.0, 0.0, 0.0))
    if words:
        both.box = _around(both)
    return both
