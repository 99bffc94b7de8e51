"""Reads the XML of XLSX workbooks: values with their number formats, errors, merged cells.

`core.sheets` turns the cells into blocks; other kinds of workbooks are read in
`documents.workbook`.
"""

import posixpath
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import count
from xml.parsers.expat import ExpatError

from rag_resources.core.documents import Page, PageFailure
from rag_resources.core.number_formats import BUILT_IN, GENERAL, day_text, formatted
from rag_resources.core.sheets import Merge, Row, sheet_page, truth
from rag_resources.documents.archives import damaged, parse_xml

KIND = "XLSX"
_CELL = re.compile(r"\$?([A-Za-z]{1,3})\$?(\d{1,7})$")
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")
_LETTERS = 26
_MAIN = "/officeDocument"


def is_xlsx(archive: zipfile.ZipFile) -> bool:
    """Whether the main part of an office file is a workbook in XML."""
    found = False

    def start(tag: str, _: Mapping[str, str]) -> None:
        nonlocal found
        found = found or tag == "workbook"

    main = _main_part(archive)
    if main is not None and main.lower().endswith(".xml"):
        parse_xml(archive, main, start=start)
    return found


def read_xlsx(archive: zipfile.ZipFile) -> Iterator[Page | PageFailure]:
    """Yield the sheets of an XLSX workbook in order; one that cannot be read is a failure.

    Raises:
        InvalidSourceError: A part is malicious.
        KeyError, ExpatError: The parts that all sheets need are missing or damaged.
    """
    workbook = _Workbook(archive)
    for number, (name, part, hidden) in enumerate(workbook.sheets, start=1):
        sheet = _Sheet(workbook)
        try:
            parse_xml(archive, part, start=sheet.start, end=sheet.end, text=sheet.text)
        except (ExpatError, KeyError, zipfile.BadZipFile, zlib.error, EOFError) as error:
            reason = damaged(KIND, error)
            yield PageFailure(number, reason.message)
            continue
        yield sheet_page(number, name, sheet.rows(), sheet.merges, hidden=hidden)


class _Workbook:
    """The parts that all sheets share: strings, number formats, the first day.

    Attributes:
        sheets: Name, part of the archive, and whether it is hidden.
    """

    def __init__(self, archive: zipfile.ZipFile) -> None:
        main = _main_part(archive) or ""
        related = _relationships(archive, main)
        self.from_1904 = False
        self._named: list[tuple[str, str, bool]] = []
        parse_xml(archive, main, start=self._start)
        self.sheets = [
            (name, related[key][1], hidden)
            for name, key, hidden in self._named
            if key in related and related[key][0].endswith("/worksheet")
        ]
        self.strings = _Strings()
        self.formats: Sequence[str] = ()
        for kind, part in related.values():
            if kind.endswith("/sharedStrings") and part in archive.namelist():
                of = self.strings
                parse_xml(archive, part, start=of.start, end=of.end, text=of.text)
            elif kind.endswith("/styles") and part in archive.namelist():
                styles = _Styles()
                parse_xml(archive, part, start=styles.start, end=styles.end)
                self.formats = styles.formats()

    def _start(self, tag: str, attributes: Mapping[str, str]) -> None:
        if tag == "workbookPr":
            self.from_1904 = attributes.get("date1904", "").lower() in ("1", "true")
        elif tag == "sheet":
            hidden = attributes.get("state", "visible") != "visible"
            self._named.append((attributes.get("name", ""), attributes.get("id", ""), hidden))


class _Strings:
    """The shared strings, without the readings of East Asian ones."""

    def __init__(self) -> None:
        self.all: list[str] = []
        self._parts: list[str] = []
        self._in_text = self._in_reading = False

    def start(self, tag: str, _: Mapping[str, str]) -> None:
        if tag == "si":
            self._parts = []
        elif tag == "rPh":
            self._in_reading = True
        elif tag == "t":
            self._in_text = not self._in_reading

    def end(self, tag: str) -> None:
        if tag == "si":
            self.all.append(_unescaped("".join(self._parts)))
        elif tag == "rPh":
            self._in_reading = False
        elif tag == "t":
            self._in_text = False

    def text(self, text: str) -> None:
        if self._in_text:
            self._parts.append(text)


class _Styles:
    """The number format of every style of cells."""

    def __init__(self) -> None:
        self._codes: dict[str, str] = {str(key): code for key, code in BUILT_IN.items()}
        self._ids: list[str] = []
        self._in_cells = False

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        if tag == "numFmt":
            self._codes[attributes.get("numFmtId", "")] = attributes.get("formatCode", GENERAL)
        elif tag == "cellXfs":
            self._in_cells = True
        elif tag == "xf" and self._in_cells:
            self._ids.append(attributes.get("numFmtId", "0"))

    def end(self, tag: str) -> None:
        if tag == "cellXfs":
            self._in_cells = False

    def formats(self) -> list[str]:
        return [self._codes.get(key, GENERAL) for key in self._ids]


class _Sheet:
    """Collects the cells of a sheet."""

    def __init__(self, workbook: _Workbook) -> None:
        self.merges: list[Merge] = []
        self._workbook = workbook
        self._rows: dict[int, dict[int, str]] = {}
        self._row = self._column = 0
        self._type = self._style = ""
        self._value: list[str] = []
        self._inline: list[str] = []
        self._formula: list[str] = []
        self._into: list[str] | None = None
        self._in_reading = False

    def rows(self) -> Iterator[Row]:
        """Yield the rows from top to bottom."""
        for number in sorted(self._rows):
            yield Row(number, dict(sorted(self._rows[number].items())))

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        if tag == "c":
            self._open_cell(attributes)
        elif tag == "v":
            self._into = self._value
        elif tag == "f":
            self._into = self._formula
        elif tag == "t":
            self._into = None if self._in_reading else self._inline
        elif tag == "rPh":
            self._in_reading = True
        elif tag == "row":
            number = attributes.get("r", "")
            self._row = int(number) if number.isdecimal() else self._row + 1
            self._column = 0
        elif tag == "mergeCell":
            self._merge(attributes.get("ref", ""))

    def end(self, tag: str) -> None:
        if tag == "c":
            text = self._cell()
            if text:
                self._rows.setdefault(self._row, {})[self._column] = text
        elif tag in ("v", "t", "f"):
            self._into = None
        elif tag == "rPh":
            self._in_reading = False

    def text(self, text: str) -> None:
        if self._into is not None:
            self._into.append(text)

    def _open_cell(self, attributes: Mapping[str, str]) -> None:
        self._value, self._inline, self._formula = [], [], []
        self._type, self._style = attributes.get("t", "n"), attributes.get("s", "")
        place = _place(attributes.get("r", ""))
        if place:
            self._row, self._column = place
        else:
            self._column += 1

    def _cell(self) -> str:
        value = "".join(self._value)
        if self._formula and not value:  # It was never calculated.
            return _unescaped("=" + "".join(self._formula))
        if self._type == "inlineStr":
            return _unescaped("".join(self._inline) or value)
        if self._type == "s":
            strings = self._workbook.strings.all
            return strings[int(value)] if value.isdecimal() and int(value) < len(strings) else ""
        if self._type == "b" and value:
            return truth(value.strip() in ("1", "true"))
        if self._type == "n":
            return self._number(value)
        return _iso_day(value) if self._type == "d" else _unescaped(value)

    def _number(self, value: str) -> str:
        try:
            number = float(value)
        except ValueError:
            return value.strip()
        formats = self._workbook.formats
        known = self._style.isdecimal() and int(self._style) < len(formats)
        code = formats[int(self._style)] if known else GENERAL
        return formatted(number, code, from_1904=self._workbook.from_1904)

    def _merge(self, ref: str) -> None:
        first, _, last = ref.partition(":")
        start, end = _place(first), _place(last)
        if start and end:
            self.merges.append(Merge(*start, *end))


def _place(name: str) -> tuple[int, int] | None:
    """Row and column of a cell such as `B2`, from 1."""
    found = _CELL.match(name)
    if not found:
        return None
    column = 0
    for letter in found[1].upper():
        column = column * _LETTERS + ord(letter) - ord("A") + 1
    return int(found[2]), column


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text) if "_x" in text else text


def _iso_day(value: str) -> str:
    try:
        return day_text(datetime.fromisoformat(value))
    except ValueError:
        return value


def _main_part(archive: zipfile.ZipFile) -> str | None:
    related = _relationships(archive, "")
    return next((part for kind, part in related.values() if kind.endswith(_MAIN)), None)


def _relationships(archive: zipfile.ZipFile, of: str) -> dict[str, tuple[str, str]]:
    """Type and part of every relationship of a part, by id; those of the archive for no part."""
    folder, name = posixpath.split(of.replace("\\", "/"))
    names = {each.lower().replace("\\", "/"): each for each in archive.namelist()}
    listed = names.get(posixpath.join(folder, "_rels", f"{name}.rels").lower())
    found: dict[str, tuple[str, str]] = {}
    unnamed = count()

    def start(tag: str, attributes: Mapping[str, str]) -> None:
        if tag != "Relationship" or attributes.get("TargetMode") == "External":
            return
        target = attributes.get("Target", "").replace("\\", "/")
        path = posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/")
        key = attributes.get("Id", f"?{next(unnamed)}")
        found[key] = attributes.get("Type", ""), names.get(path.lower(), path)

    if listed:
        parse_xml(archive, listed, start=start)
    return found
