"""Reads JSON Lines, and CSV with a header: one note per line or row.

The meaning of the fields is decided in `records`.
"""

import csv
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, TextIO

from rag_resources.core.encodings import MARKS, likely_encoding
from rag_resources.core.quoting import shown
from rag_resources.core.text import is_blank
from rag_resources.core.types import NoteRecord, RejectedRecord
from rag_resources.ingestion.records import CONTENT_FIELDS, build_note, is_content_field
from rag_resources.ingestion.source_file import (
    MAX_NOTE_BYTES,
    InvalidRecordError,
    SourceFile,
)
from rag_resources.languages.messages import _

DELIMITERS = ",;\t"
_SAMPLE_BYTES = 256 * 1024


def opened(path: Path, *, newline: Literal["\n", ""]) -> TextIO:
    """Open a file of text by its byte order mark, as UTF-8, or in its likeliest encoding."""
    with path.open("rb") as start:
        sample = start.read(_SAMPLE_BYTES)
    encoding = next((name for mark, name in MARKS.items() if sample.startswith(mark)), "")
    if not encoding:
        try:
            with path.open(encoding="utf-8") as file:
                for _line in file:
                    pass
            encoding = "utf-8"
        except UnicodeDecodeError:
            encoding = likely_encoding(sample)
    return path.open(encoding=encoding, errors="replace", newline=newline)


def read_jsonl(file: SourceFile) -> Iterator[NoteRecord | RejectedRecord]:
    """Yield a note or a rejection per non-blank line; only one line is in memory."""
    with opened(file.path, newline="\n") as lines:
        for number, line in enumerate(lines, start=1):
            if is_blank(line):
                continue
            location = file.at_line(number)
            try:
                fields = load_object(line, number)
                yield build_note(fields, file=file, location=location)
            except InvalidRecordError as error:
                yield error.rejected(location)


def load_object(line: str, number: int) -> dict[str, Any]:
    """Parse a line that is a JSON object; `NaN` is null.

    Raises:
        InvalidRecordError: It is not; the message has line and column.
    """
    try:
        value = json.loads(line.replace("\0", ""), parse_constant=lambda _: None)
    except (RecursionError, ValueError) as error:  # Too deep, or a number that is too long.
        column = getattr(error, "colno", 1)
        raise InvalidRecordError(
            _("is not valid {kind} (line {line}, column {column})").format(
                kind="JSON", line=number, column=column
            )
        ) from error
    if not isinstance(value, dict):
        raise InvalidRecordError(
            _("The line is not a JSON object: the fields, in braces, are missing.")
        )
    return value


def read_csv(file: SourceFile) -> Iterator[NoteRecord | RejectedRecord]:
    """Yield a note or a rejection per row; a single rejection if the header is unusable."""
    # This limit is process-wide, and its default (131,072) is too small for a note.
    csv.field_size_limit(max(csv.field_size_limit(), MAX_NOTE_BYTES))
    with opened(file.path, newline="") as text:
        delimiter = _delimiter(next((line for line in text if line.strip()), ""))
        text.seek(0)
        # Strict, because an unclosed quotation mark would otherwise silently swallow the rest.
        lines = (line.replace("\0", "") for line in text)
        rows = csv.reader(lines, delimiter=delimiter, strict=True)
        try:
            header = _header(next((row for row in rows if row), []))
        except (csv.Error, InvalidRecordError) as error:
            yield RejectedRecord(file.name, getattr(error, "message", "") or _malformed(1, rows))
            return
        while True:
            line = rows.line_num + 1
            location = file.at_line(line)
            try:
                row = next(rows, None)
                if row is None:
                    return
                if row:
                    fields = _fields(header, row)
                    yield build_note(fields, file=file, location=location)
            except csv.Error:
                yield RejectedRecord(location, _malformed(line, rows))
            except InvalidRecordError as error:
                yield error.rejected(location)


def _malformed(first: int, rows: Any) -> str:
    return _(
        "Lines {first} to {last} are not valid CSV: a quotation mark is not closed, or a field is "
        "too long."
    ).format(first=first, last=max(first, rows.line_num))


def _delimiter(header: str) -> str:
    """Return the delimiter that gives the header a content column, or else the most columns."""

    def preference(delimiter: str) -> tuple[bool, int]:
        names = next(csv.reader([header], delimiter=delimiter), [])
        return any(is_content_field(name) for name in names), len(names)

    return max(DELIMITERS, key=preference)


def _header(row: list[str]) -> list[str]:
    header = [name.strip() for name in row]
    if not any(is_content_field(name) for name in header):
        raise InvalidRecordError(
            _("The header has no column of content ({known}); it has these: {found}.").format(
                known=", ".join(CONTENT_FIELDS), found=shown(", ".join(header)) or "—"
            )
        )
    repeated = [name for name, count in Counter(header).items() if name and count > 1]
    if repeated:
        raise InvalidRecordError(
            _("The column “{column}” is repeated in the header.").format(column=shown(repeated[0]))
        )
    return header


def _fields(header: list[str], row: list[str]) -> dict[str, str]:
    """Pair names with cells; empty cells are missing values, unnamed columns are ignored."""
    if len(row) != len(header):
        raise InvalidRecordError(
            _("The row has {found} fields and the header {expected}.").format(
                found=len(row), expected=len(header)
            )
        )
    return {name: cell for name, cell in zip(header, row, strict=True) if name and cell}
