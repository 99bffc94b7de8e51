"""Reads CSV and other delimited text as one sheet; cells are named as in a workbook.

`core.sheets` turns the cells into blocks. CSV files of notes are read in `ingestion`.
"""

import csv
import io
import itertools
import re
from collections.abc import Iterator
from typing import BinaryIO

from rag_resources.core.documents import Page, PageFailure
from rag_resources.core.encodings import decoded
from rag_resources.core.page_text import storable
from rag_resources.core.sheets import Row, sheet_page
from rag_resources.documents.archives import damaged
from rag_resources.documents.reader_versions import identity_of

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
