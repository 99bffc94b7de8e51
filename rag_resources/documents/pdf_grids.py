"""Tables of a page whose cells are drawn with lines.

Tables whose columns are only aligned are found by `documents.pdf_tables`.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median

from rag_resources.documents.pdf_cells import Cell, Table, is_number, table_of
from rag_resources.documents.pdf_drawings import Drawings, Rule
from rag_resources.documents.pdf_geometry import Rectangle
from rag_resources.documents.pdf_lines import Segment, lines_of
from rag_resources.documents.pdf_words import Word

_NEAR = 3.0
"""Points between lines that are meant to meet."""

_WHITE_ROW = 0.6
"""Times the size: white space through all cells that separates rows."""

_MAX_TRACKS = 200
"""Rows or columns; a grid with more is a drawing."""


@dataclass(slots=True)
class _Grid:
    """Lines that touch each other."""

    horizontal: list[Rule] = field(default_factory=list)
    vertical: list[Rule] = field(default_factory=list)


def find_grids(words: Sequence[Word], drawings: Drawings) -> tuple[list[Table], list[Word]]:
    """Return the tables drawn with lines, and the words outside of them."""
    tables: list[Table] = []
    rest = list(words)
    for grid in _grids(drawings):
        columns, rows = _tracks(grid)
        if not (2 <= len(columns) <= _MAX_TRACKS and 2 <= len(rows) <= _MAX_TRACKS):
            continue
        left, right, top, bottom = columns[0], columns[-1], rows[0], rows[-1]
        inside = [w for w in rest if _is_inside(w, (left, top, right, bottom))]
        if len(inside) < 2:
            continue
        table = _table(grid, columns, rows, inside)
        if table is not None:
            tables.append(table)
            taken = {id(word) for word in inside}
            rest = [word for word in rest if id(word) not in taken]
    return tables, rest


def _is_inside(word: Word, box: Rectangle) -> bool:
    x, y = (word.left + word.right) / 2, (word.top + word.bottom) / 2
    return box[0] <= x <= box[2] and box[1] <= y <= box[3]


def merged(rules: Iterable[Rule]) -> list[Rule]:
    """Join lines that continue each other."""
    result: list[Rule] = []
    for rule in sorted(rules, key=lambda rule: (round(rule.at), rule.start)):
        for other in reversed(result[-4:]):
            if abs(other.at - rule.at) <= 1.5 and rule.start <= other.end + _NEAR:
                result[result.index(other)] = Rule(
                    other.at, min(other.start, rule.start), max(other.end, rule.end)
                )
                break
        else:
            result.append(rule)
    return result


def _grids(drawings: Drawings) -> list[_Grid]:
    """Group lines that touch; from the largest group down."""
    horizontal, vertical = merged(drawings.horizontal), merged(drawings.vertical)
    parent = list(range(len(horizontal) + len(vertical)))

    def root(index: int) -> int:
        while parent[index] != index:
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    for i, across in enumerate(horizontal):
        for j, down in enumerate(vertical, len(horizontal)):
            if (
                across.start - _NEAR <= down.at <= across.end + _NEAR
                and down.start - _NEAR <= across.at <= down.end + _NEAR
            ):
                parent[root(i)] = root(j)
    grids: dict[int, _Grid] = defaultdict(_Grid)
    for i, rule in enumerate(horizontal):
        grids[root(i)].horizontal.append(rule)
    for j, rule in enumerate(vertical, len(horizontal)):
        grids[root(j)].vertical.append(rule)
    return sorted(grids.values(), key=lambda g: -len(g.horizontal) - len(g.vertical))


def _clustered(values: Iterable[float]) -> list[float]:
    """Return values with those that are nearly the same as one."""
    result: list[float] = []
    for value in sorted(values):
        if not result or value - result[-1] > _NEAR:
            result.append(value)
    return result


def _tracks(grid: _Grid) -> tuple[list[float], list[float]]:
    """Return the edges of columns and rows; open sides end where the lines end."""
    columns = [rule.at for rule in grid.vertical]
    rows = [rule.at for rule in grid.horizontal]
    if columns and rows:
        columns += [min(rule.start for rule in grid.horizontal)]
        columns += [max(rule.end for rule in grid.horizontal)]
        rows += [min(rule.start for rule in grid.vertical)]
        rows += [max(rule.end for rule in grid.vertical)]
    return _clustered(columns), _clustered(rows)


def _table(
    grid: _Grid, columns: Sequence[float], rows: Sequence[float], words: Sequence[Word]
) -> Table | None:
    """Fill the cells of a grid; None if it is not a table."""
    owner = _owners(grid, columns, rows)
    held: dict[tuple[int, int], list[Word]] = defaultdict(list)
    for word in words:
        x, y = (word.left + word.right) / 2, (word.top + word.bottom) / 2
        column = _track_of(x, columns)
        row = _track_of(y, rows)
        held[owner[row, column]].append(word)
    extents = _extents(owner, columns, rows)
    bands = [
        [
            Cell(
                held.get((row, column), []),
                extents.get((row, column), _slot(row, column, columns, rows)),
            )
            for column in range(len(columns) - 1)
        ]
        for row in range(len(rows) - 1)
    ]
    cells = [line for band in bands for line in _split_band(band)]
    return table_of(cells)


def _slot(row: int, column: int, columns: Sequence[float], rows: Sequence[float]) -> Rectangle:
    return columns[column], rows[row], columns[column + 1], rows[row + 1]


def _track_of(value: float, edges: Sequence[float]) -> int:
    for index in range(len(edges) - 1):
        if value <= edges[index + 1]:
            return index
    return len(edges) - 2


def _owners(
    grid: _Grid, columns: Sequence[float], rows: Sequence[float]
) -> dict[tuple[int, int], tuple[int, int]]:
    """Say for each slot of the grid which slot is the upper left one of its cell."""
    owner: dict[tuple[int, int], tuple[int, int]] = {}
    down = [_rules_at(grid.vertical, column) for column in columns]
    across = [_rules_at(grid.horizontal, row) for row in rows]
    for row in range(len(rows) - 1):
        for column in range(len(columns) - 1):
            middle_x = (columns[column] + columns[column + 1]) / 2
            middle_y = (rows[row] + rows[row + 1]) / 2
            if column and not _crosses(down[column], middle_y):
                owner[row, column] = owner[row, column - 1]
            elif row and not _crosses(across[row], middle_x):
                owner[row, column] = owner[row - 1, column]
            else:
                owner[row, column] = (row, column)
    return owner


def _rules_at(rules: Sequence[Rule], at: float) -> list[Rule]:
    return [rule for rule in rules if abs(rule.at - at) <= _NEAR]


def _crosses(rules: Sequence[Rule], position: float) -> bool:
    return any(rule.start - 1 <= position <= rule.end + 1 for rule in rules)


def _extents(
    owner: dict[tuple[int, int], tuple[int, int]],
    columns: Sequence[float],
    rows: Sequence[float],
) -> dict[tuple[int, int], Rectangle]:
    """Return the box of every cell, by its upper left slot."""
    extents: dict[tuple[int, int], Rectangle] = {}
    for (row, column), cell in owner.items():
        left, top, right, bottom = _slot(row, column, columns, rows)
        if cell in extents:
            known = extents[cell]
            left, top = min(left, known[0]), min(top, known[1])
            right, bottom = max(right, known[2]), max(bottom, known[3])
        extents[cell] = left, top, right, bottom
    return extents


def _split_band(band: list[Cell]) -> list[list[Cell]]:
    """Cut a row between lines into the rows of text that it holds, if it holds several.

    Tables with lines only around the head, or only between columns, have all their rows in one.
    """
    lines = [_lines(cell.words) for cell in band]
    filled = [cell_lines for cell_lines in lines if cell_lines]
    tallest = max((len(cell_lines) for cell_lines in filled), default=0)
    if tallest < 2 or len(filled) < 2:
        return [band]
    tops = [line[0].top for line in max(lines, key=len)]
    size = median([line[0].size for line in max(lines, key=len)])
    starts = [
        top
        for top in tops
        if sum(any(abs(line[0].top - top) < 0.4 * size for line in cell) for cell in filled)
        >= max(2, 0.6 * len(filled))
    ]
    numbers = sum(_is_number(line) for cell in filled for line in cell)
    if len(starts) < 2 or numbers < 0.3 * sum(map(len, filled)) or len(starts) < 0.5 * tallest:
        parts = _cut_at(band, [float("-inf"), *_white_rows(band)])
        return parts if all(_is_row(part) for part in parts) else [band]
    return _cut_at(band, [float("-inf"), *(start - 0.4 * size for start in starts[1:])])


def _white_rows(band: Sequence[Cell]) -> list[float]:
    """Return heights below which a line of text begins after white space through all cells."""
    words = sorted((word for cell in band for word in cell.words), key=lambda word: word.top)
    heights: list[float] = []
    bottom = words[0].bottom if words else 0.0
    for word in words:
        if word.top - bottom > _WHITE_ROW * word.style.size:
            heights.append((bottom + word.top) / 2)
        bottom = max(bottom, word.bottom)
    return heights


def _is_row(cells: Sequence[Cell]) -> bool:
    """Whether cells have text beside each other, or only a label on the left."""
    filled = [bool(cell.words) for cell in cells]
    return sum(filled) > 1 or filled[0]


def _cut_at(band: Sequence[Cell], starts: Sequence[float]) -> list[list[Cell]]:
    ends = [*starts[1:], float("inf")]
    rows = []
    for start, end in zip(starts, ends, strict=True):
        row = []
        for cell in band:
            left, top, right, bottom = cell.box
            words = [word for word in cell.words if start <= word.top < end]
            row.append(Cell(words, (left, max(top, start), right, min(bottom, end))))
        rows.append(row)
    return rows


def _lines(words: Sequence[Word]) -> list[list[Segment]]:
    return lines_of(Segment([word]) for word in words)


def _is_number(line: Sequence[Segment]) -> bool:
    return is_number(" ".join(segment.text for segment in line))
