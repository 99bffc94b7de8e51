"""Reads workbooks: XLSX and ODS by their XML; XLS by calamine.

calamine gives values without their number formats. So XLSX and ODS have readers of their own
(`documents.workbook_xml`, `documents.workbook_ods`), and the formats of XLS are read separately.
"""

import io
import os
import zipfile
from collections.abc import Iterator, Mapping
from datetime import date, datetime, time, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

from python_calamine import (
    CalamineError,
    CalamineSheet,
    CalamineWorkbook,
    PasswordError,
    SheetTypeEnum,
    SheetVisibleEnum,
    ZipError,
)

from rag_resources.core.documents import Page, PageFailure
from rag_resources.core.errors import InvalidSourceError
from rag_resources.core.number_formats import day_text, formatted
from rag_resources.core.sheets import Merge, Row, sheet_page, truth
from rag_resources.documents.archives import archive_of, check_parts, damaged, parse_xml
from rag_resources.documents.reader_versions import identity_of
from rag_resources.documents.workbook_ods import is_ods, read_ods
from rag_resources.documents.workbook_xls import CellFormats, formats_by_sheet, general
from rag_resources.documents.workbook_xml import KIND, is_xlsx, read_xlsx
from rag_resources.languages.messages import _

_OLD_KIND = "XLS"
_MANIFEST = "META-INF/manifest.xml"
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")


class WorkbookReader:
    """Reads workbooks: each sheet is a page, each row of a table a block, each cell a run.

    The text of a hidden sheet is listed as removed.
    """

    name = "workbook"
    reader_hash = identity_of(name, 4, "python-calamine", "xlrd")

    def read(self, file: BinaryIO) -> Iterator[Page | PageFailure]:
        """Yield the sheets in order.

        Raises:
            InvalidSourceError: It is damaged, protected by a password or malicious.
        """
        if zipfile.is_zipfile(file):
            with archive_of(file, KIND) as archive:
                if is_xlsx(archive):
                    yield from read_xlsx(archive)
                    return
                check_parts(archive)
                _refuse_encrypted(archive)
                if is_ods(archive):
                    yield from read_ods(archive)
                    return
        yield from _read_by_calamine(file)


def _refuse_encrypted(archive: zipfile.ZipFile) -> None:
    """Refuse an ODS file with a password, whose parts are listed as encrypted."""

    def start(tag: str, __: Mapping[str, str]) -> None:
        if tag == "encryption-data":
            raise InvalidSourceError(
                _("The file is protected by a password. Save a copy without it.")
            )

    if _MANIFEST in archive.namelist():
        parse_xml(archive, _MANIFEST, start=start)


def _read_by_calamine(file: BinaryIO) -> Iterator[Page | PageFailure]:
    file.seek(0)
    content = file.read()
    if content.startswith(_OLE) and _ENCRYPTED in content:
        raise InvalidSourceError(_("The file is protected by a password. Save a copy without it."))
    workbook = _opened(content)
    formats = formats_by_sheet(content) if content.startswith(_OLE) else {}
    sheets = [each for each in workbook.sheets_metadata if each.typ is SheetTypeEnum.WorkSheet]
    for number, about in enumerate(sheets, start=1):
        try:
            sheet = workbook.get_sheet_by_name(about.name)
            hidden = about.visible is not SheetVisibleEnum.Visible
            rows = _rows(sheet, formats.get(about.name, general))
            yield sheet_page(number, about.name, rows, _merges(sheet), hidden=hidden)
        except (CalamineError, ZipError, OSError, ValueError) as error:
            reason = damaged(_OLD_KIND, error)
            yield PageFailure(number, reason.message)


def _opened(content: bytes) -> CalamineWorkbook:
    try:
        try:
            return CalamineWorkbook.from_filelike(io.BytesIO(content))
        except CalamineError:
            if not content.startswith(_OLE):
                raise
            return _opened_as_xls(content)
    except PasswordError as error:
        raise InvalidSourceError(
            _("The file is protected by a password. Save a copy without it.")
        ) from error
    except (CalamineError, ZipError, OSError, ValueError) as error:
        raise damaged(_OLD_KIND, error) from error


def _opened_as_xls(content: bytes) -> CalamineWorkbook:
    """Open a file under a name ending in `.xls`, so that calamine's error names the problem.

    The file is in memory: a process that is killed leaves at most a dangling link.
    """
    with open(os.memfd_create("workbook"), "wb") as copy, TemporaryDirectory() as folder:  # noqa: PTH123 - a descriptor
        copy.write(content)
        copy.flush()
        link = Path(folder, "workbook.xls")
        link.symlink_to(f"/proc/self/fd/{copy.fileno()}")
        return CalamineWorkbook.from_path(link)


def _rows(sheet: CalamineSheet, formats: CellFormats) -> Iterator[Row]:
    first_row, first_column = sheet.start or (0, 0)
    for row, values in enumerate(sheet.to_python(skip_empty_area=True), start=first_row):
        cells = {
            column + 1: _text(value, formats(row, column))
            for column, value in enumerate(values, start=first_column)
            if value != ""
        }
        yield Row(row + 1, cells)


def _merges(sheet: CalamineSheet) -> list[Merge]:
    return [
        Merge(first[0] + 1, first[1] + 1, last[0] + 1, last[1] + 1)
        for first, last in sheet.merged_cell_ranges or ()
    ]


def _text(value: Any, code: str) -> str:
    if isinstance(value, bool):
        return truth(value)
    if isinstance(value, int | float):
        return formatted(value, code)
    if isinstance(value, date | datetime | time | timedelta):
        return day_text(value)
    return str(value)
