"""How the numbers of a table with dates changed from one period to the next. Property 56.

It is computed exactly, from the cells of a sheet as they are shown. A cell that cannot be read
without guessing has no temporal context.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

from rag_resources.core.places import NoteSpan
from rag_resources.core.sheets import looks_like_header

MONTHS = (
    *("enero", "febrero", "marzo", "abril", "mayo", "junio"),
    *("julio", "agosto", "septiembre", "octubre", "noviembre", "diciembre"),
)
_ISO = re.compile(r"(\d{4})-(\d{1,2})(?:-(\d{1,2})(?: \d{1,2}:\d{2}(?::\d{2})?)?)?$")
_DAY_FIRST = re.compile(r"(?:(\d{1,2})[/.-])?(\d{1,2})[/.-](\d{4})$")
_NAMED = re.compile(r"(?:(\d{1,2}) (?:de )?)?([a-zé]{3,10})\.?(?: de | del |[ -/])(\d{4}|\d{2})$")
_YEAR = re.compile(r"(19|20)\d\d$")
_CELL = re.compile(r"([A-Z]{1,3})(\d+)(:[A-Z]{1,3}\d+)?$")
_UNIT = re.compile(r"^(?:€|\$|£|EUR|USD)|(?:€|\$|£|%|EUR|USD|euros)$", re.IGNORECASE)
# By decimal mark.
_NUMBER = {
    ",": re.compile(r"[-+]?(?:\d+|\d{1,3}(?:\.\d{3})+)(?:,\d+)?$"),
    ".": re.compile(r"[-+]?(?:\d+|\d{1,3}(?:,\d{3})+)(?:\.\d+)?$"),
}
_CENTURY = 2000
_LEAST_ROWS = 2


@dataclass(frozen=True, slots=True)
class Reading:
    """A number in a cell, with the date of its row.

    Attributes:
        cell: Such as `C4`.
    """

    day: date
    value: Decimal
    cell: str

    def to_json(self) -> dict[str, Any]:
        """Return the camelCase form."""
        return {"date": self.day.isoformat(), "value": str(self.value), "cell": self.cell}


@dataclass(frozen=True, slots=True)
class Change:
    """A number of a column, and the number of the period before it.

    Attributes:
        column: Header of the column.
        previous: None if the table has no earlier row, or its cell is blank or no number.
    """

    column: str
    reading: Reading
    previous: Reading | None

    @property
    def change(self) -> Fraction | None:
        """`(value - previous) / |previous|`, exact; None if the previous one is missing or 0."""
        if self.previous is None or not self.previous.value:
            return None
        value, previous = Fraction(self.reading.value), Fraction(self.previous.value)
        return (value - previous) / abs(previous)

    def to_json(self) -> dict[str, Any]:
        """Return the camelCase form; the change in percent has two decimals."""
        change = self.change
        return {
            "column": self.column,
            **self.reading.to_json(),
            "previous": self.previous.to_json() if self.previous else None,
            "changePercent": None if change is None else float(round(change * 100, 2)),
        }


def temporal_context(
    text: str, spans: Sequence[NoteSpan], start: int, end: int
) -> tuple[Change, ...]:
    """Return the changes in the rows of a passage, row by row, from left to right.

    A table counts if it has a header and a column with one date in every row, without repeats. Its
    columns of numbers then have changes. Rows are compared in the order of their dates.

    Args:
        text: The note, a section of a sheet.
        spans: All spans of the note, in order, with their cells.
        start: Offset of the passage in the note.
        end: After its last character.

    Properties: 56.
    """
    found: list[tuple[int, Change]] = []
    for header, *rows in _tables(text, spans):
        for number, change in _changes(header.cells, [row.cells for row in rows]):
            row = rows[number]
            if row.start < end and start < row.end:
                found.append((row.start, change))
    return tuple(change for _, change in sorted(found, key=lambda each: each[0]))


@dataclass(frozen=True, slots=True)
class _Cell:
    text: str
    name: str


_Cells = Mapping[str, _Cell]


@dataclass(slots=True)
class _Row:
    """A row of a sheet in a note.

    Attributes:
        cells: By the letters of their column.
        number: Its number in the sheet; 0 if all its cells are merged ones.
    """

    start: int
    end: int
    cells: dict[str, _Cell]
    number: int


def _tables(text: str, spans: Sequence[NoteSpan]) -> Iterator[list[_Row]]:
    """The tables that have a header, each with its header first."""
    table: list[_Row] = []
    for row in (*_rows(text, spans), None):
        if row is None or (table and not _belongs(text, table, row)):
            if looks_like_header([cell.text for cell in table[0].cells.values()] if table else []):
                yield table
            table = []
        if row is not None:
            table.append(row)


def _belongs(text: str, table: Sequence[_Row], row: _Row) -> bool:
    """Whether a row is the next of a table; the part of a long table begins with its header."""
    last = table[-1]
    if text[last.end : row.start].count("\n") > 1:
        return False
    return len(table) == 1 or 0 in (last.number, row.number) or row.number == last.number + 1


def _rows(text: str, spans: Sequence[NoteSpan]) -> Iterator[_Row]:
    row: _Row | None = None
    for span in spans:
        found = _CELL.match(span.cells or "")
        if not found:
            continue
        column, number, merged = found.groups()
        cell = _Cell(text[span.start : span.end], found[0])
        if row is None or "\n" in text[row.end : span.start]:
            if row is not None:
                yield row
            row = _Row(span.start, span.end, {}, 0)
        row.end = span.end
        row.cells[column] = cell
        row.number = row.number if merged else int(number)
    if row is not None:
        yield row


def _changes(header: _Cells, rows: Sequence[_Cells]) -> list[tuple[int, Change]]:
    """The changes of a table, each with the number of its row."""
    dated = next(filter(None, (_dates(rows, column) for column in header)), None)
    if not dated:
        return []
    dates_column, days = dated
    order = sorted(range(len(rows)), key=lambda number: days[number])
    changes = []
    for column, name in header.items():
        values = _numbers(rows, column) if column != dates_column else None
        if not values:
            continue
        readings = {
            number: Reading(days[number], value, rows[number][column].name)
            for number, value in values.items()
        }
        before = {after: earlier for earlier, after in pairwise(order)}
        changes += [
            (number, Change(name.text, reading, readings.get(before.get(number, -1))))
            for number, reading in readings.items()
        ]
    return changes


def _dates(rows: Sequence[_Cells], column: str) -> tuple[str, list[date]] | None:
    days = [parse_day(row[column].text) if column in row else None for row in rows]
    known = [day for day in days if day is not None]
    complete = len(known) == len(rows) >= _LEAST_ROWS
    return (column, known) if complete and len(set(known)) == len(known) else None


def _numbers(rows: Sequence[_Cells], column: str) -> dict[int, Decimal] | None:
    """The numbers of a column by row; None if one of its cells is a text or not clear."""
    texts = {
        number: _UNIT.sub("", row[column].text).strip()
        for number, row in enumerate(rows)
        if column in row and not row[column].text.startswith("#")  # an error
    }
    mark = _decimal_mark(texts.values())
    if mark is None or len(texts) < _LEAST_ROWS:
        return None
    grouping = "." if mark == "," else ","
    return {
        number: Decimal(text.replace(grouping, "").replace(mark, "."))
        for number, text in texts.items()
    }


def _decimal_mark(texts: Collection[str]) -> str | None:
    """The decimal mark under which all texts are numbers; None if none or either is possible."""
    fitting = [mark for mark, form in _NUMBER.items() if all(map(form.match, texts))]
    if len(fitting) == len(_NUMBER) and any(mark in text for text in texts for mark in _NUMBER):
        return None  # `1.234`: a thousand, or a little more than one.
    return fitting[0] if fitting else None


def parse_day(text: str) -> date | None:
    """Return the day that a cell names, the first of a month or year; None if it names none.

    It reads `2024-03-01`, `2024-03`, `1/3/2024`, `03/2024`, `marzo de 2024`, `mar-24` and `2024`.
    """
    folded = text.strip().lower()
    try:
        if found := _ISO.match(folded):
            return date(int(found[1]), int(found[2]), int(found[3] or 1))
        if found := _DAY_FIRST.match(folded):
            return date(int(found[3]), int(found[2]), int(found[1] or 1))
        if found := _NAMED.match(folded):
            year = int(found[3]) if len(found[3]) > len("24") else _CENTURY + int(found[3])
            return date(year, _month(found[2]), int(found[1] or 1))
        return date(int(folded), 1, 1) if _YEAR.match(folded) else None
    except ValueError:
        return None


def _month(name: str) -> int:
    """The number of a month by its name or its first three letters or more."""
    fits = [number for number, month in enumerate(MONTHS, start=1) if month.startswith(name)]
    if name in ("set", "sept", "setiembre"):
        return MONTHS.index("septiembre") + 1
    if len(fits) != 1:
        raise ValueError(name)
    return fits[0]
