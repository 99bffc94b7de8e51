"""Reads the XML of OpenDocument spreadsheets: values with their number formats, errors, merges.

`core.sheets` turns the cells into blocks; other kinds of workbooks are read in
`documents.workbook`.
"""

import re
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from rag_resources.core.documents import Page
from rag_resources.core.errors import InvalidSourceError
from rag_resources.core.number_formats import GENERAL, day_text, formatted
from rag_resources.core.sheets import Merge, Row, sheet_page, truth
from rag_resources.documents.archives import parse_xml
from rag_resources.languages.messages import _

MOST_CELLS = 2_000_000
"""Most cells with a value in a sheet, including repeated ones."""

_CONTENT, _STYLES = "content.xml", "styles.xml"
_MEGABYTES = MOST_CELLS * 100 // 1024**2
_FORMATS = ("number-style", "currency-style", "percentage-style")
_TRUTH = "BOOLEAN"
_NO_CELL_TEXT = ("annotation", "shapes", "forms", "tracked-changes", "dde-links")
_DURATION = re.compile(r"(-?)PT(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?$")


def is_ods(archive: zipfile.ZipFile) -> bool:
    """Whether an office file is an OpenDocument spreadsheet."""
    names = archive.namelist()
    return _CONTENT in names and "mimetype" in names and b"spreadsheet" in archive.read("mimetype")


def read_ods(archive: zipfile.ZipFile) -> Iterator[Page]:
    """Yield the sheets in order.

    Raises:
        InvalidSourceError: It repeats more cells than can be read, or has a DTD.
        ExpatError: It is not XML.
    """
    styles = _CellStyles()
    for part in (_STYLES, _CONTENT):
        if part in archive.namelist():
            parse_xml(archive, part, start=styles.start, end=styles.end, text=styles.text)
    content = _Content(styles)
    parse_xml(archive, _CONTENT, start=content.start, end=content.end, text=content.text)
    for number, sheet in enumerate(content.sheets, start=1):
        hidden = sheet.style in styles.hidden_tables
        yield sheet_page(number, sheet.name, sheet.rows, sheet.merges, hidden=hidden)


class _CellStyles:
    """The number format of every style of cells, in the notation of XLSX; and hidden tables."""

    def __init__(self) -> None:
        self.hidden_tables: set[str] = set()
        self._codes: dict[str, str] = {}
        self._format_of: dict[str, str] = {}
        self._parent_of: dict[str, str] = {}
        self._style = ""
        self._format = ""
        self._literal: list[str] | None = None

    def code(self, style: str) -> str:
        """Return the number format of a style, or of its parent styles."""
        seen: set[str] = set()
        while style and style not in seen:
            seen.add(style)
            if style in self._format_of:
                return self._codes.get(self._format_of[style], GENERAL)
            style = self._parent_of.get(style, "")
        return GENERAL

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        if tag in _FORMATS:
            self._format = attributes.get("name", "")
            self._codes[self._format] = ""
        elif tag == "boolean-style":
            self._codes[attributes.get("name", "")] = _TRUTH
        elif tag == "style":
            self._style = attributes.get("name", "")
            if "data-style-name" in attributes:
                self._format_of[self._style] = attributes["data-style-name"]
            self._parent_of[self._style] = attributes.get("parent-style-name", "")
        elif tag == "table-properties" and attributes.get("display") == "false":
            self.hidden_tables.add(self._style)
        elif self._format and tag == "number":
            self._codes[self._format] += _digits(attributes)
        elif self._format and tag in ("text", "currency-symbol"):
            self._literal = []

    def end(self, tag: str) -> None:
        if tag in _FORMATS:
            self._format = ""
        elif self._literal is not None and tag in ("text", "currency-symbol"):
            literal = "".join(self._literal).replace('"', "")
            # A percentage is written as its value; the signs of negative numbers are in the value.
            self._codes[self._format] += "%" if "%" in literal else f'"{literal.strip("()-+")}"'
            self._literal = None

    def text(self, text: str) -> None:
        if self._literal is not None:
            self._literal.append(text)


def _digits(attributes: Mapping[str, str]) -> str:
    """The places of a number such as `000.0#`."""
    whole, most, least = (
        int(value) if (value := attributes.get(name, "")).isdecimal() else None
        for name in ("min-integer-digits", "decimal-places", "min-decimal-places")
    )
    if most is None:
        return "0" * (whole or 1) + ".##########"
    least = most if least is None else min(least, most)
    decimals = "0" * least + "#" * (most - least)
    return "0" * (whole or 0) + ("" if whole else "#") + (f".{decimals}" if decimals else "")


@dataclass(slots=True)
class _Sheet:
    name: str
    style: str
    rows: list[Row] = field(default_factory=list)
    merges: list[Merge] = field(default_factory=list)


@dataclass(slots=True)
class _Cell:
    """A cell that is open, with the paragraphs of its text."""

    attributes: Mapping[str, str]
    paragraphs: list[str] = field(default_factory=list)


class _Content:
    """Collects the cells of all sheets."""

    def __init__(self, styles: _CellStyles) -> None:
        self.sheets: list[_Sheet] = []
        self._styles = styles
        self._column_styles: list[tuple[int, str]] = []
        self._row = self._column = 0
        self._row_repeats = 1
        self._row_style = ""
        self._cells: dict[int, str] = {}
        self._cell: _Cell | None = None
        self._skipping = 0
        self._count = 0
        self._in_paragraph = False

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        if self._skipping or tag in _NO_CELL_TEXT:
            self._skipping += 1
        elif tag == "table" and self._cell is None:
            self.sheets.append(_Sheet(attributes.get("name", ""), attributes.get("style-name", "")))
            self._row, self._column_styles, self._column = 0, [], 0
        elif tag == "table-column":
            self._column += _repeats(attributes, "number-columns-repeated")
            style = attributes.get("default-cell-style-name", "")
            self._column_styles.append((self._column, style))
        elif tag == "table-row":
            self._row += 1
            self._row_repeats = _repeats(attributes, "number-rows-repeated")
            self._row_style = attributes.get("default-cell-style-name", "")
            self._column, self._cells = 0, {}
        elif tag in ("table-cell", "covered-table-cell"):
            self._cell = _Cell(attributes)
        elif self._cell is not None:
            self._start_text(tag, attributes, self._cell.paragraphs)

    def _start_text(self, tag: str, attributes: Mapping[str, str], paragraphs: list[str]) -> None:
        if tag == "p":
            paragraphs.append("")
            self._in_paragraph = True
        elif paragraphs and tag == "s":
            paragraphs[-1] += " " * min(_repeats(attributes, "c"), 100)
        elif paragraphs and tag in ("tab", "line-break"):
            paragraphs[-1] += "\t" if tag == "tab" else "\n"

    def end(self, tag: str) -> None:
        if self._skipping:
            self._skipping -= 1
        elif tag == "p":
            self._in_paragraph = False
        elif tag in ("table-cell", "covered-table-cell") and self._cell is not None:
            self._close_cell(self._cell)
            self._cell = None
        elif tag == "table-row" and self.sheets:
            self._close_row()

    def text(self, text: str) -> None:
        if self._in_paragraph and not self._skipping and self._cell is not None:
            self._cell.paragraphs[-1] += text

    def _close_cell(self, cell: _Cell) -> None:
        repeats = _repeats(cell.attributes, "number-columns-repeated")
        value = self._value(cell)
        if value:
            self._count_in(repeats)
            columns = range(self._column + 1, self._column + repeats + 1)
            self._cells.update(dict.fromkeys(columns, value))
        down = _repeats(cell.attributes, "number-rows-spanned")
        across = _repeats(cell.attributes, "number-columns-spanned")
        if self.sheets and value and (down > 1 or across > 1):
            row, column = self._row, self._column + 1
            self.sheets[-1].merges.append(Merge(row, column, row + down - 1, column + across - 1))
        self._column += repeats

    def _close_row(self) -> None:
        if self._cells:
            self._count_in(len(self._cells) * (self._row_repeats - 1))
            numbers = range(self._row, self._row + self._row_repeats)
            self.sheets[-1].rows += [Row(number, self._cells) for number in numbers]
        self._row += self._row_repeats - 1

    def _count_in(self, cells: int) -> None:
        """Count cells with a value before they are created.

        Raises:
            InvalidSourceError: There are too many.
        """
        self._count += cells
        if self._count > MOST_CELLS:
            raise InvalidSourceError(
                _(
                    "It gives more than {megabytes} MB of text. Raise EXTRACTION__OUTPUT_MB or "
                    "split the file."
                ).format(megabytes=_MEGABYTES)
            )

    def _value(self, cell: _Cell) -> str:
        about, shown = cell.attributes, "\n".join(cell.paragraphs).strip()
        kind = about.get("value-type", "")
        if kind == "boolean":
            return truth(about.get("boolean-value") == "true")
        if kind == "date":
            return _day(about.get("date-value", ""), shown)
        if kind == "time":
            return _duration(about.get("time-value", ""), shown)
        if kind in ("float", "currency", "percentage"):
            return self._number(about, shown)
        return shown or about.get("string-value", "")

    def _number(self, about: Mapping[str, str], shown: str) -> str:
        try:
            number = float(about.get("value", ""))
        except ValueError:
            return shown
        code = self._styles.code(about.get("style-name") or self._default_style())
        return truth(bool(number)) if code == _TRUTH else formatted(number, code)

    def _default_style(self) -> str:
        if self._row_style:
            return self._row_style
        found = (style for last, style in self._column_styles if self._column < last)
        return next(found, "")


def _repeats(attributes: Mapping[str, str], name: str) -> int:
    value = attributes.get(name, "")
    return int(value) if value.isdecimal() and 0 < int(value) <= 2**20 else 1


def _day(value: str, shown: str) -> str:
    try:
        return day_text(datetime.fromisoformat(value))
    except ValueError:
        return shown or value


def _duration(value: str, shown: str) -> str:
    found = _DURATION.match(value)
    if not found:
        return shown or value
    hours, minutes, seconds = (float(part or 0) for part in found.groups()[1:])
    length = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    return day_text(-length if found[1] else length)
