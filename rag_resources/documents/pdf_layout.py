"""Columns and reading order of the segments of a page.

Segments are divided into columns where white space runs down between them. Regions that look like
columns but are read row by row go to `documents.pdf_tables`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

from rag_resources.documents.pdf_cells import Table, is_number
from rag_resources.documents.pdf_lines import WIDE_GAP, Segment, lines_of

_NARROW = 4.0
"""Times the size; a narrower column holds bullets or numbers."""

_FILLED = 0.6
"""Lines of prose fill at least this share of their column, in the median."""

_SHORT_LINE = 25
"""Characters; lines of cells are shorter, in the median."""

_TIGHT = 1.9
"""Times the size; lines of prose are not farther apart."""


Item = Segment | Table
Row = list[Item]


@dataclass(slots=True)
class Column:
    """Lines and tables from top to bottom."""

    items: list[Table | list[Segment]] = field(default_factory=list)


@dataclass(slots=True)
class Layout:
    """The columns of a page in reading order.

    Attributes:
        side_by_side: Whether there is prose in columns beside each other.
    """

    columns: list[Column] = field(default_factory=list)
    side_by_side: bool = False


TableFinder = Callable[[Sequence[Row]], list[Table | Row]]
"""Finds tables in rows between whose segments white space runs down; returns the other rows."""


def lay_out(items: Sequence[Item], find_tables: TableFinder) -> Layout:
    """Put segments and tables into columns in reading order.

    Args:
        items: Segments, and the tables that were found between rules.
        find_tables: For rows that are aligned without being columns of prose.
    """
    layout = Layout()
    _cut(list(items), layout, find_tables)
    return layout


def _cut(items: list[Item], layout: Layout, find_tables: TableFinder) -> None:
    """Add the columns of a region: rows from top to bottom, each run of columns left to right."""
    if not items:
        return
    open_rows: list[Table | Row] = []
    for run, gutters in _runs(_rows(items)):
        sides = _sides(run, gutters)
        if sides is None:
            open_rows += find_tables(run) if gutters else run
            continue
        _close(open_rows, layout)
        open_rows = []
        layout.side_by_side = True
        for side in sides:
            _cut(side, layout, find_tables)
    _close(open_rows, layout)


def _close(rows: Sequence[Table | Row], layout: Layout) -> None:
    """Make a column of rows."""
    if not rows:
        return
    column = Column()
    for row in rows:
        found = [row] if isinstance(row, Table) else row
        segments = [item for item in found if isinstance(item, Segment)]
        column.items += lines_of(segments)
        column.items += [item for item in found if isinstance(item, Table)]
    layout.columns.append(column)


def _rows(items: Sequence[Item]) -> list[Row]:
    """Group items that overlap in height, from top to bottom."""
    rows: list[Row] = []
    bottom = float("-inf")
    for item in sorted(items, key=lambda item: (item.top, item.left)):
        # Letters hardly fill the upper fifth of their box: touching lines are not one row.
        margin = 0.2 * item.size
        if rows and item.top + margin < bottom:
            rows[-1].append(item)
        else:
            rows.append([item])
        bottom = max(bottom, item.bottom - margin)
    return rows


Gap = tuple[float, float]


def _gaps(row: Row) -> list[Gap]:
    """Return where a row is white, from the left edge of the world to the right one."""
    gaps, end = [], float("-inf")
    for item in sorted(row, key=lambda item: item.left):
        if item.left > end:
            gaps.append((end, item.left))
        end = max(end, item.right)
    return [*gaps, (end, float("inf"))]


def _shared(first: Sequence[Gap], second: Sequence[Gap], width: float) -> list[Gap]:
    """Return the common parts of two lists of gaps that are at least this wide."""
    shared = []
    for left, right in first:
        for other_left, other_right in second:
            low, high = max(left, other_left), min(right, other_right)
            if high - low >= width:
                shared.append((low, high))
    return shared


def _inner(gaps: Sequence[Gap], rows: Sequence[Row]) -> list[Gap]:
    """Return the gaps that have something on both sides."""
    left = min(item.left for row in rows for item in row)
    right = max(item.right for row in rows for item in row)
    return [gap for gap in gaps if gap[0] >= left and gap[1] <= right]


def _runs(rows: Sequence[Row]) -> Iterator[tuple[list[Row], list[Gap]]]:
    """Cut rows into the longest runs through which white space runs down.

    Returns:
        Each run with its inner gaps, left to right; a run without any is a single row.
    """
    run: list[Row] = []
    gaps: list[Gap] = []
    for row in rows:
        size = median([item.size for item in row]) or 10.0
        row_gaps = _gaps(row)
        shared = _shared(gaps, row_gaps, WIDE_GAP * size)
        if run and _inner(shared, [*run, row]):
            run.append(row)
            gaps = shared
            continue
        if run:
            yield from _finished(run, gaps)
        run, gaps = [row], row_gaps
    if run:
        yield from _finished(run, gaps)


def _finished(run: list[Row], gaps: Sequence[Gap]) -> Iterator[tuple[list[Row], list[Gap]]]:
    inner = _inner(gaps, run)
    if inner:
        yield run, inner
        return
    for row in run:
        yield [row], []


def _sides(run: Sequence[Row], gutters: Sequence[Gap]) -> tuple[list[Item], list[Item]] | None:
    """Split a run at its widest gutter between columns; None if there is none."""
    for gutter in sorted(gutters, key=lambda gap: gap[0] - gap[1]):
        left = [item for row in run for item in row if item.right <= gutter[0] + 0.1]
        right = [item for row in run for item in row if item.left >= gutter[1] - 0.1]
        if left and right and _are_columns(left, right):
            return left, right
    return None


def _are_columns(left: Sequence[Item], right: Sequence[Item]) -> bool:
    """Whether two sides of a gutter are read one after the other, not row by row."""
    lines = min(_line_count(left), _line_count(right))
    if lines < 2 or _overlap_in_height(left, right) < 0.3:
        return False
    if _is_narrow(left) or _is_narrow(right):
        return False
    prose = _is_prose(left) + _is_prose(right)
    if prose == 2:
        return True
    drawn_apart = _switches(left, right) <= max(1, lines // 8)
    return drawn_apart and lines >= 3 and not _are_rows(left, right)


def _line_count(items: Sequence[Item]) -> int:
    """Count lines; those of a table count, too."""
    segments = [item for item in items if isinstance(item, Segment)]
    tables = [item for item in items if isinstance(item, Table)]
    return len(lines_of(segments)) + sum(len(table.rows) for table in tables)


def _overlap_in_height(left: Sequence[Item], right: Sequence[Item]) -> float:
    """Return the common height of two sides as a share of the lower one."""
    spans = [(min(i.top for i in side), max(i.bottom for i in side)) for side in (left, right)]
    common = min(spans[0][1], spans[1][1]) - max(spans[0][0], spans[1][0])
    return common / (min(bottom - top for top, bottom in spans) or 1.0)


def _is_narrow(items: Sequence[Item]) -> bool:
    width = max(item.right for item in items) - min(item.left for item in items)
    size = median([item.size for item in items]) or 1.0
    return width < _NARROW * size


def _is_prose(items: Sequence[Item]) -> bool:
    """Whether a side is text in lines that fill their column."""
    lines = lines_of(item for item in items if isinstance(item, Segment))
    if len(lines) < 3:
        return any(isinstance(item, Table) for item in items) and not lines
    left = min(line[0].left for line in lines)
    right = max(line[-1].right for line in lines)
    size = median([line[0].size for line in lines])
    pitch = median([b[0].top - a[0].top for a, b in pairwise(lines)])
    filled = median([(line[-1].right - line[0].left) / (right - left or 1.0) for line in lines])
    words = median([sum(len(segment.words) for segment in line) for line in lines])
    text = "".join(segment.text for line in lines for segment in line)
    letters = sum(character.isalpha() for character in text)
    return filled >= _FILLED and pitch <= _TIGHT * size and words >= 3 and letters > 0.5 * len(text)


def _are_rows(left: Sequence[Item], right: Sequence[Item]) -> bool:
    """Whether the lines of two sides stand beside each other and are short or numbers, as cells."""
    fewer, more = sorted(
        (lines_of(i for i in side if isinstance(i, Segment)) for side in (left, right)), key=len
    )
    if not fewer:
        return False
    bottoms = [line[0].bottom for line in more]
    beside = sum(_is_near(line[0].bottom, bottoms, 0.15 * line[0].size) for line in fewer)
    texts = [[" ".join(s.text for s in line) for line in lines] for lines in (fewer, more)]
    short = all(median(map(len, side)) <= _SHORT_LINE for side in texts)
    numbers = any(sum(map(is_number, side)) > 0.5 * len(side) for side in texts)
    return beside >= 0.8 * len(fewer) and (short or numbers)


def _is_near(value: float, others: Sequence[float], distance: float) -> bool:
    return any(abs(value - other) <= distance for other in others)


def _switches(left: Sequence[Item], right: Sequence[Item]) -> int:
    """Count how often the file switches between drawing the two sides."""
    drawn = sorted([(item.order, 0) for item in left] + [(item.order, 1) for item in right])
    return sum(a[1] != b[1] for a, b in pairwise(drawn))
