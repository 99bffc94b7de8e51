"""The cells of a sheet as blocks of a page: tables with their header, and lines above them.

Readers of workbooks and CSV files find the cells; `core.page_text` holds the page.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rag_resources.core.documents import BlockKind, Page
from rag_resources.core.page_text import Cell, PageText

WIDE_COLUMNS = 40
"""Tables with more columns are cut into blocks of columns; each repeats the first column."""
HIDDEN = "hidden"
"""The reason why the text of a hidden sheet is removed."""
_BLANK = Cell("")
_MAX_HEADER_CHARS = 100
_NUMBER = re.compile(r"[-+]?[\d.,\s]*\d[\d.,\s]*(?:[%€$£]|EUR|USD)?$")
_YEAR_OR_DATE = re.compile(r"(?:19|20)\d\d(?:-\d\d){0,2}$")


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a sheet.

    Attributes:
        number: From 1.
        cells: Texts by column, from 1; blank ones may be missing.
    """

    number: int
    cells: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class Merge:
    """A range of merged cells, with the first cell's text."""

    first_row: int
    first_column: int
    last_row: int
    last_column: int

    @property
    def name(self) -> str:
        """Such as `B2:D2`."""
        first = cell_name(self.first_row, self.first_column)
        return f"{first}:{cell_name(self.last_row, self.last_column)}"


def column_name(column: int) -> str:
    """Return the letters of a column: 1 is `A`, 28 is `AB`."""
    letters = ""
    while column:
        column, rest = divmod(column - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters


def cell_name(row: int, column: int) -> str:
    """Return the name of a cell, such as `B2`."""
    return f"{column_name(column)}{row}"


def truth(value: bool) -> str:
    """Return a truth value as a Spanish workbook shows it."""
    return "VERDADERO" if value else "FALSO"


def sheet_page(
    number: int, name: str, rows: Iterable[Row], merges: Sequence[Merge] = (), *, hidden: bool
) -> Page:
    """Return a sheet as a page; all text of a hidden sheet is removed from it."""
    page = PageText()
    add_sheet(page, rows, merges)
    made = page.page(number, sheet=name)
    if not hidden:
        return made
    removed = PageText()
    removed.add_removed(made.text, HIDDEN)
    return removed.page(number, sheet=name)


def add_sheet(page: PageText, rows: Iterable[Row], merges: Sequence[Merge] = ()) -> None:
    """Add the cells of a sheet to a page.

    A table is a run of rows without an empty row between them. Its header is the first row with
    several cells if that has only short texts, years or dates, and another row follows. Rows of
    one cell above the header are paragraphs. The text of cells that are merged over several rows
    is repeated in each of these rows, with the name of the range.

    Args:
        page: Where to add.
        rows: From top to bottom.
        merges: The merged ranges of the sheet.
    """
    for table in _tables(_named(rows, merges)):
        _add_table(page, table)


_NamedRow = dict[int, Cell]


def _named(rows: Iterable[Row], merges: Sequence[Merge]) -> Iterator[tuple[int, _NamedRow]]:
    starts = {(merge.first_row, merge.first_column): merge for merge in merges}
    down: dict[int, tuple[Merge, str]] = {}
    for row in rows:
        cells: _NamedRow = {}
        down = {at: kept for at, kept in down.items() if kept[0].last_row >= row.number}
        filled = {at: text for at, text in row.cells.items() if text.strip()}
        if not filled:
            continue
        for column, text in filled.items():
            merge = starts.get((row.number, column))
            name = merge.name if merge else cell_name(row.number, column)
            cells[column] = Cell(text, name)
            if merge and merge.last_row > row.number:
                down[column] = merge, text
        for column, (merge, text) in down.items():
            cells.setdefault(column, Cell(text, merge.name))
        yield row.number, dict(sorted(cells.items()))


def _tables(rows: Iterable[tuple[int, _NamedRow]]) -> Iterator[list[_NamedRow]]:
    table: list[_NamedRow] = []
    last = 0
    for number, cells in rows:
        if table and number > last + 1:
            yield table
            table = []
        table.append(cells)
        last = number
    if table:
        yield table


def _add_table(page: PageText, table: list[_NamedRow]) -> None:
    header = _header_index(table)
    for row in table[:header] if header is not None else []:
        for cell in row.values():
            page.add_row(BlockKind.PARAGRAPH, [cell])
    body = table[header:] if header is not None else table
    columns = sorted({column for row in body for column in row})
    for block in _column_blocks(columns):
        for position, row in enumerate(body):
            is_header = header is not None and position == 0
            kind = BlockKind.TABLE_HEADER if is_header else BlockKind.TABLE_ROW
            page.add_row(kind, [row.get(column, _BLANK) for column in block])


def _column_blocks(columns: Sequence[int]) -> Iterator[Sequence[int]]:
    yield columns[:WIDE_COLUMNS]
    step = WIDE_COLUMNS - 1
    for start in range(WIDE_COLUMNS, len(columns), step):
        yield [columns[0], *columns[start : start + step]]


def _header_index(table: Sequence[_NamedRow]) -> int | None:
    for index, row in enumerate(table):
        if len(row) == 1:
            continue
        names = [cell.text.strip() for cell in row.values()]
        fits = len(names) * 2 >= max(len(each) for each in table)
        return index if fits and index + 1 < len(table) and looks_like_header(names) else None
    return None


def looks_like_header(texts: Sequence[str]) -> bool:
    """Whether the cells of a row may name columns: at least two short texts, years or dates."""
    return len(texts) > 1 and all(map(_is_name, texts))


def _is_name(text: str) -> bool:
    if not text.strip() or len(text) > _MAX_HEADER_CHARS or text.startswith("#"):
        return False
    return bool(_YEAR_OR_DATE.match(text)) or not _NUMBER.match(text)
