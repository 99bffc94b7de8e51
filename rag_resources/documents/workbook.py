"""Reads workbooks, XLSX and ODS by their XML and XLS by xlrd, and delimited text as one sheet.

No library reads XLSX with number formats, errors and formulas that were never calculated from as
many files; ODS holds the texts that people see.

`core.sheets` turns the cells into blocks; `core.number_formats` writes their numbers.
"""

import csv
import io
import itertools
import posixpath
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import BinaryIO
from xml.etree import ElementTree

import xlrd
from xlrd.formatting import std_format_strings

from rag_resources.core.documents import Page, PageFailure
from rag_resources.core.encodings import decoded
from rag_resources.core.errors import InvalidSourceError
from rag_resources.core.number_formats import GENERAL, day_text, formatted
from rag_resources.core.page_text import storable
from rag_resources.core.sheets import Merge, Row, sheet_page, truth
from rag_resources.documents.archives import (
    BROKEN,
    archive_of,
    check_parts,
    damaged,
    protected,
    tree_of,
)
from rag_resources.documents.readers import identity_of
from rag_resources.languages.messages import _

MOST_CELLS = 2_000_000
"""Most cells with a value in an ODS sheet, including repeated ones."""
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
_CELL = re.compile(r"\$?([A-Za-z]{1,3})\$?(\d{1,7})$")
_ID = re.compile(r"(?:^|\})id$")
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")
_TABLE, _OFFICE, _STYLE, _TEXT = (
    f"{{urn:oasis:names:tc:opendocument:xmlns:{name}:1.0}}"
    for name in ("table", "office", "style", "text")
)
_SPACES = {f"{_TEXT}{name}" for name in ("s", "tab", "line-break")}


class WorkbookReader:
    """Reads workbooks: each sheet is a page, each row of a table a block, each cell a run.

    The text of a hidden sheet is listed as removed.
    """

    name = "workbook"
    reader_hash = identity_of(name, 5, "xlrd")

    def read(self, file: BinaryIO) -> Iterator[Page | PageFailure]:
        """Yield the sheets in order.

        Raises:
            InvalidSourceError: It is damaged, protected by a password or malicious.
        """
        content = file.read()
        if content.startswith(_OLE) or not zipfile.is_zipfile(file):
            yield from _read_xls(content)
            return
        with archive_of(file, "XLSX") as archive:
            check_parts(archive)
            if "content.xml" in archive.namelist():
                yield from _read_ods(archive)
            else:
                yield from _read_xlsx(archive)


def _read_xlsx(archive: zipfile.ZipFile) -> Iterator[Page | PageFailure]:
    of_archive = _related(archive, "").values()
    main = next(part for kind, part in of_archive if kind.endswith("/officeDocument"))
    book, related = tree_of(archive, main), _related(archive, main)
    strings: list[str] = []
    formats: list[str] = []
    for kind, part in related.values():
        if kind.endswith("/sharedStrings"):
            strings = [_string(each) for each in tree_of(archive, part).findall("{*}si")]
        elif kind.endswith("/styles"):
            formats = _formats(tree_of(archive, part))
    about = book.find("{*}workbookPr")
    from_1904 = about is not None and about.get("date1904", "").lower() in ("1", "true")

    def text_of(cell: ElementTree.Element) -> str:
        return _cell_text(cell, strings, formats, from_1904=from_1904)

    for number, (sheet, part) in enumerate(_sheets(book, related), start=1):
        hidden = sheet.get("state", "visible") != "visible"
        try:
            rows, merges = _sheet(archive, part, text_of)
        except (*BROKEN, KeyError) as error:
            yield PageFailure(number, damaged("XLSX", error).message)
            continue
        yield sheet_page(number, sheet.get("name", ""), rows, merges, hidden=hidden)


def _sheets(
    book: ElementTree.Element, related: Mapping[str, tuple[str, str]]
) -> Iterator[tuple[ElementTree.Element, str]]:
    """Yield what the workbook says about each sheet of cells, and its part of the archive."""
    for sheet in book.iterfind("{*}sheets/{*}sheet"):
        key = next((value for name, value in sheet.items() if _ID.search(name)), "")
        kind, part = related.get(key, ("", ""))
        if kind.endswith("/worksheet"):
            yield sheet, part


def _related(archive: zipfile.ZipFile, of: str) -> dict[str, tuple[str, str]]:
    """Type and part of every relationship of a part, by id; those of the archive for no part."""
    folder, name = posixpath.split(of.replace("\\", "/"))
    names = {each.lower().replace("\\", "/"): each for each in archive.namelist()}
    listed = names.get(posixpath.join(folder, "_rels", f"{name}.rels").lower())
    found = {}
    for each in tree_of(archive, listed) if listed else ():
        target = each.get("Target", "").replace("\\", "/")
        path = posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/")
        if path.lower() in names:
            found[each.get("Id", path)] = each.get("Type", ""), names[path.lower()]
    return found


def _formats(styles: ElementTree.Element) -> list[str]:
    """Return the number format of every style of cells."""
    codes = {str(key): code.replace("$", "") for key, code in std_format_strings.items()}
    for each in styles.iterfind("{*}numFmts/{*}numFmt"):
        codes[each.get("numFmtId", "")] = each.get("formatCode", GENERAL)
    used = styles.iterfind("{*}cellXfs/{*}xf")
    return [codes.get(each.get("numFmtId", "0"), GENERAL) for each in used]


def _sheet(
    archive: zipfile.ZipFile, part: str, text_of: Callable[[ElementTree.Element], str]
) -> tuple[list[Row], list[Merge]]:
    rows: dict[int, dict[int, str]] = {}
    merges: list[Merge] = []
    number = 0
    with archive.open(part) as stream:
        for __, element in ElementTree.iterparse(stream):  # noqa: S314 - `check_parts` refused any DTD
            if element.tag.endswith("}row"):
                number, column = int(element.get("r") or number + 1), 0
                for cell in element.iterfind("{*}c"):
                    number, column = _place(cell.get("r", "")) or (number, column + 1)
                    if text := text_of(cell):
                        rows.setdefault(number, {})[column] = text
                element.clear()
            elif element.tag.endswith("}mergeCell"):
                first, _, last = element.get("ref", "").partition(":")
                start, end = _place(first), _place(last)
                if start and end:
                    merges.append(Merge(*start, *end))
    return [Row(each, dict(sorted(rows[each].items()))) for each in sorted(rows)], merges


def _cell_text(
    cell: ElementTree.Element, strings: Sequence[str], formats: Sequence[str], *, from_1904: bool
) -> str:
    value, formula = cell.findtext("{*}v") or "", cell.findtext("{*}f")
    kind, style = cell.get("t", "n"), cell.get("s", "")
    if formula and not value:  # It was never calculated.
        return _unescaped(f"={formula}")
    if kind == "inlineStr":
        inline = cell.find("{*}is")
        return _unescaped(value) if inline is None else _string(inline)
    if kind == "s":
        return strings[int(value)] if value.isdecimal() and int(value) < len(strings) else ""
    if kind == "b" and value:
        return truth(value.strip() in ("1", "true"))
    try:
        if kind == "d":
            return day_text(datetime.fromisoformat(value))
        if kind == "n":
            known = style.isdecimal() and int(style) < len(formats)
            code = formats[int(style)] if known else GENERAL
            return formatted(float(value), code, from_1904=from_1904)
    except ValueError:
        return value.strip()
    return _unescaped(value)


def _string(element: ElementTree.Element) -> str:
    """Return a string without the readings of East Asian ones."""
    texts = (*element.iterfind("{*}t"), *element.iterfind("{*}r/{*}t"))
    return _unescaped("".join(each.text or "" for each in texts))


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)


def _place(name: str) -> tuple[int, int] | None:
    """Row and column of a cell such as `B2`, from 1."""
    found = _CELL.match(name)
    if not found:
        return None
    column = 0
    for letter in found[1].upper():
        column = column * 26 + ord(letter) - ord("A") + 1
    return int(found[2]), column


def _read_xls(content: bytes) -> Iterator[Page]:
    if content.startswith(_OLE) and _ENCRYPTED in content:
        raise protected()
    try:
        book = xlrd.open_workbook(
            file_contents=content, formatting_info=True, logfile=io.StringIO()
        )
    except Exception as error:  # xlrd checks little: damage raises anything.
        if "encrypted" in str(error):
            raise protected() from error
        raise damaged("XLS", error) from error
    for number, sheet in enumerate(book.sheets(), start=1):
        merges = [Merge(r1 + 1, c1 + 1, r2, c2) for r1, r2, c1, c2 in sheet.merged_cells]
        rows = (
            Row(row + 1, {column + 1: _xls_text(book, cell) for column, cell in enumerate(cells)})
            for row, cells in enumerate(sheet.get_rows())
        )
        yield sheet_page(number, sheet.name, rows, merges, hidden=bool(sheet.visibility))


def _xls_text(book: xlrd.Book, cell: xlrd.sheet.Cell) -> str:
    if cell.ctype == xlrd.XL_CELL_ERROR:
        return xlrd.error_text_from_code.get(int(cell.value), "")
    if cell.ctype == xlrd.XL_CELL_BOOLEAN:
        return truth(bool(cell.value))
    if cell.ctype not in (xlrd.XL_CELL_NUMBER, xlrd.XL_CELL_DATE):
        return str(cell.value)
    code = book.format_map[book.xf_list[cell.xf_index or 0].format_key].format_str
    return formatted(float(cell.value), code or GENERAL, from_1904=bool(book.datemode))


def _read_ods(archive: zipfile.ZipFile) -> Iterator[Page]:
    if b"encryption-data" in archive.read("META-INF/manifest.xml"):
        raise protected()
    root = tree_of(archive, "content.xml")
    hidden = {
        style.get(f"{_STYLE}name")
        for style in root.iter(f"{_STYLE}style")
        if any(each.get(f"{_TABLE}display") == "false" for each in style)
    }
    for number, table in enumerate(root.iter(f"{_TABLE}table"), start=1):
        merges: list[Merge] = []
        rows = list(_ods_rows(table, merges))
        is_hidden = table.get(f"{_TABLE}style-name") in hidden
        yield sheet_page(number, table.get(f"{_TABLE}name", ""), rows, merges, hidden=is_hidden)


def _ods_rows(table: ElementTree.Element, merges: list[Merge]) -> Iterator[Row]:
    """Yield the rows with text; the merged ranges are added to a list.

    Raises:
        InvalidSourceError: The repeats make more cells than can be read.
    """
    number = count = 0
    for row in table.iter(f"{_TABLE}table-row"):
        cells: dict[int, str] = {}
        column = 0
        repeats = _repeats(row, "number-rows-repeated")
        for cell in row:
            across = _repeats(cell, "number-columns-repeated")
            if text := _ods_text(cell):
                count += across * repeats
                if count > MOST_CELLS:
                    raise InvalidSourceError(
                        _("It gives more than {megabytes} MB of text. Split the file.").format(
                            megabytes=MOST_CELLS * 100 // 1024**2
                        )
                    )
                cells |= dict.fromkeys(range(column + 1, column + across + 1), text)
                last_row = number + _repeats(cell, "number-rows-spanned")
                last_column = column + _repeats(cell, "number-columns-spanned")
                if (last_row, last_column) > (number + 1, column + 1):
                    merges.append(Merge(number + 1, column + 1, last_row, last_column))
            column += across
        if cells:
            yield from (Row(each, cells) for each in range(number + 1, number + repeats + 1))
        number += repeats


def _ods_text(cell: ElementTree.Element) -> str:
    """Return a cell as it is shown; a date is ISO 8601."""
    about = {key.removeprefix(_OFFICE): value for key, value in cell.items()}
    shown = "\n".join(map(_shown, cell.findall(f"{_TEXT}p"))).strip()
    if about.get("value-type") == "boolean":
        return truth(about.get("boolean-value") == "true")
    if about.get("value-type") == "date":
        try:
            return day_text(datetime.fromisoformat(about.get("date-value", "")))
        except ValueError:
            return shown
    return shown


def _shown(paragraph: ElementTree.Element) -> str:
    """Return the text of a paragraph; its runs of spaces and line ends are elements."""
    parts = [paragraph.text or ""]
    for child in paragraph:
        if child.tag != f"{_OFFICE}annotation":
            parts += [" " if child.tag in _SPACES else _shown(child), child.tail or ""]
    return "".join(parts)


def _repeats(element: ElementTree.Element, name: str) -> int:
    value = element.get(f"{_TABLE}{name}", "")
    return int(value) if value.isdecimal() and 0 < int(value) <= 2**20 else 1


_SAMPLE_CHARS = 64 * 1024
_DELIMITERS = (",", ";", "\t", "|")
_SAYS_DELIMITER = re.compile('\ufeff?"?sep=([,;\t|])"?\n', re.IGNORECASE)
"""The first line with which a file declares its delimiter to Excel."""

_MAX_FIELD_CHARS = 10 * 1024**2


class CsvReader:
    """Reads delimited text in any encoding: one page, without a sheet's name."""

    name = "csv"
    reader_hash = identity_of(name, 2, "charset-normalizer")

    def read(self, file: BinaryIO) -> Iterator[Page | PageFailure]:
        """Yield the only page.

        Raises:
            InvalidSourceError: It is not text, or not CSV.
        """
        text = storable(decoded(file.read(), "CSV"))
        csv.field_size_limit(_MAX_FIELD_CHARS)
        try:
            page = sheet_page(1, "CSV", _rows(text), hidden=False)
        except csv.Error as error:
            raise damaged("CSV", error) from error
        yield page


def _rows(text: str) -> Iterator[Row]:
    said = _SAYS_DELIMITER.match(text)
    rows = csv.reader(io.StringIO(text), delimiter=said[1] if said else delimiter_of(text))
    for number, values in enumerate(rows, start=1):
        if not said or number > 1:
            yield Row(number, dict(enumerate(values, start=1)))


def delimiter_of(text: str) -> str:
    """Return the delimiter that cuts the first lines into the most equal rows.

    If two do so equally well, the one with more columns wins; a comma if none cuts anything.
    `csv.Sniffer` is not used, because it takes the decimal comma of `1,5;2,5` for the delimiter.
    """
    sample = text[:_SAMPLE_CHARS]

    def fit(delimiter: str) -> tuple[float, int]:
        rows = csv.reader(io.StringIO(sample), delimiter=delimiter)
        try:
            widths = [len(row) for row in itertools.islice(rows, 200) if row]
        except csv.Error:
            return 0.0, 0
        if not widths:
            return 0.0, 0
        width = max(set(widths), key=lambda each: (widths.count(each), each))
        return (widths.count(width) / len(widths) if width > 1 else 0.0), width

    return max(_DELIMITERS, key=fit)
