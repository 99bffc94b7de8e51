"""Reads CSV files (comma, semicolon or tab, with a header): one note per row.

The meaning of the columns is decided in `records`.
"""

import csv
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from rag_resources.core.quoting import shown
from rag_resources.core.types import NoteRecord, RejectedRecord
from rag_resources.ingestion.records import CONTENT_FIELDS, build_note, is_content_field
from rag_resources.ingestion.source_file import (
    InvalidRecordError,
    SourceFile,
    SourceOptions,
)
from rag_resources.ingestion.text_files import Line, numbered_lines
from rag_resources.languages.messages import _

DELIMITERS = ",;\t"


class _Rows:
    """The rows of a file with their line and problem, read one at a time.

    Attributes:
        line: Line on which the current row starts, 1-based.
        nul_characters: NUL characters removed from the current row.
    """

    def __init__(self, path: Path, max_chars: int) -> None:
        # This limit is process-wide, and its default (131,072) is too small for a note.
        csv.field_size_limit(max(csv.field_size_limit(), max_chars))
        self._max_chars = max_chars
        self._problem = ""
        self.line = 0
        self.nul_characters = 0
        lines = numbered_lines(path, line_ends="", max_chars=max_chars)
        head = list(_until_text(lines))
        delimiter = _sniff_delimiter(head[-1].text if head else "")
        # Strict, because an unclosed quotation mark would otherwise silently swallow the rest.
        texts = self._texts(chain(head, lines))
        self._reader = csv.reader(texts, delimiter=delimiter, strict=True)

    def next_row(self) -> list[str] | None:
        """Return the next non-empty row; None at the end.

        Raises:
            InvalidRecordError: The row cannot be read; later rows still can.
        """
        while True:
            self.line = self._reader.line_num + 1
            self._problem = ""
            self.nul_characters = 0
            try:
                row = next(self._reader, None)
            except csv.Error as error:
                raise InvalidRecordError(self._problem or self._malformed()) from error
            if self._problem:
                raise InvalidRecordError(self._problem)
            if row is None or row:
                return row

    def _malformed(self) -> str:
        return _(
            "Lines {first} to {last} are not valid CSV: a quotation mark is not closed, or a "
            "field has more than {megabytes} MB."
        ).format(
            first=self.line,
            last=max(self.line, self._reader.line_num),
            megabytes=f"{self._max_chars / 1024**2:.3g}",
        )

    def _texts(self, lines: Iterator[Line]) -> Iterator[str]:
        for line in lines:
            self._problem = self._problem or line.problem
            self.nul_characters += line.nul_characters
            yield line.text


def read_csv(file: SourceFile, options: SourceOptions) -> Iterator[NoteRecord | RejectedRecord]:
    """Yield a note or a rejection per row; a single rejection if the header is unusable."""
    rows = _Rows(file.path, options.max_note_bytes)
    try:
        header = _header(rows)
    except InvalidRecordError as error:
        yield error.rejected(file.name)
        return
    while True:
        try:
            row = rows.next_row()
            if row is None:
                return
            yield build_note(
                _fields(header, row),
                file=file,
                location=file.at_line(rows.line),
                max_bytes=options.max_note_bytes,
                nul_characters=rows.nul_characters,
            )
        except InvalidRecordError as error:
            yield error.rejected(file.at_line(rows.line))


def _until_text(lines: Iterator[Line]) -> Iterator[Line]:
    for line in lines:
        yield line
        if line.problem or line.text.strip():
            return


def _sniff_delimiter(header: str) -> str:
    """Return the delimiter that gives the header a content column, or else the most columns."""

    def preference(delimiter: str) -> tuple[bool, int]:
        names = next(csv.reader([header], delimiter=delimiter), [])
        return any(is_content_field(name) for name in names), len(names)

    return max(DELIMITERS, key=preference)


def _header(rows: _Rows) -> list[str]:
    header = [name.strip() for name in rows.next_row() or []]
    if not any(is_content_field(name) for name in header):
        raise InvalidRecordError(
            _("The header has no column of content ({known}); it has these: {found}.").format(
                known=", ".join(CONTENT_FIELDS), found=shown(", ".join(header)) or "—"
            ),
            header=header,
        )
    repeated = [name for name, count in Counter(header).items() if name and count > 1]
    if repeated:
        raise InvalidRecordError(
            _("The column “{column}” is repeated in the header.").format(column=shown(repeated[0])),
            header=header,
        )
    return header


def _fields(header: list[str], row: list[str]) -> dict[str, str]:
    """Pair names with cells; empty cells are missing values, unnamed columns are ignored."""
    if len(row) != len(header):
        reason = _("The row has {found} fields and the header {expected}.").format(
            found=len(row), expected=len(header)
        )
        if len(row) > len(header):
            reason += _(" A cell that contains the separator goes in quotation marks.")
        raise InvalidRecordError(reason)
    return {name: cell for name, cell in zip(header, row, strict=True) if name and cell}
