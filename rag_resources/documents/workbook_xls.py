"""Reads the number formats of the cells of XLS workbooks; their values are read by calamine."""

import io
from collections.abc import Callable, Mapping

import structlog
import xlrd

from rag_resources.core.number_formats import GENERAL

CellFormats = Callable[[int, int], str]
"""The number format of the cell in a row and column, counted from 0."""

_log = structlog.get_logger()


def general(_row: int, _column: int) -> str:
    """Return the format of a cell whose format is unknown."""
    return GENERAL


def formats_by_sheet(content: bytes) -> Mapping[str, CellFormats]:
    """Return the number formats of an XLS workbook, by the names of its sheets.

    Empty for a file that xlrd cannot read but calamine can: its numbers are useful without formats.
    """
    try:
        book = xlrd.open_workbook(
            file_contents=content, formatting_info=True, logfile=io.StringIO()
        )
    except Exception as error:  # noqa: BLE001 - it checks little, so damage raises anything
        _log.info("no_number_formats", error=type(error).__name__)
        return {}
    return {sheet.name: _formats(book, sheet) for sheet in book.sheets()}


def _formats(book: xlrd.Book, sheet: xlrd.sheet.Sheet) -> CellFormats:
    codes = {
        index: book.format_map[each.format_key].format_str
        for index, each in enumerate(book.xf_list)
        if each.format_key in book.format_map
    }

    def code(row: int, column: int) -> str:
        if row >= sheet.nrows or column >= sheet.row_len(row):
            return GENERAL
        return codes.get(sheet.cell_xf_index(row, column), GENERAL)

    return code
