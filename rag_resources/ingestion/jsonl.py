"""Reads JSON Lines files: one note per line.

The meaning of the fields is decided in `records`.
"""

import json
from collections.abc import Iterator
from typing import Any

from rag_resources.core.text import is_blank
from rag_resources.core.types import NoteRecord, RejectedRecord
from rag_resources.ingestion.records import build_note
from rag_resources.ingestion.source_file import InvalidRecordError, SourceFile, SourceOptions
from rag_resources.ingestion.text_files import Line, numbered_lines
from rag_resources.languages.messages import _


def read_jsonl(file: SourceFile, options: SourceOptions) -> Iterator[NoteRecord | RejectedRecord]:
    """Yield a note or a rejection per non-blank line; only one line is in memory."""
    lines = numbered_lines(file.path, line_ends="\n", max_chars=options.max_note_bytes)
    for line in lines:
        if is_blank(line.text) and not line.problem:
            continue
        location = file.at_line(line.number)
        try:
            yield build_note(
                _fields(line),
                file=file,
                location=location,
                max_bytes=options.max_note_bytes,
                nul_characters=line.nul_characters,
            )
        except InvalidRecordError as error:
            yield error.rejected(location)


def load_json(text: str, *, first_line: int = 1) -> Any:
    """Parse JSON; read `NaN`, which some programs write for a missing value, as null.

    Raises:
        InvalidRecordError: The text is not JSON; the message has line and column.
    """
    text = text.rstrip()
    try:
        return json.loads(text, parse_constant=lambda _: None)
    except json.JSONDecodeError as error:
        is_open = 0 < len(text) == error.pos or error.msg.startswith("Unterminated")
        message = (
            _(
                "It is not valid JSON (line {line}, column {column}): quotes, a brace or a "
                "bracket are not closed."
            )
            if is_open
            else _("is not valid JSON (line {line}, column {column})")
        )
        place = {"line": first_line + error.lineno - 1, "column": error.colno}
        raise InvalidRecordError(message.format(**place), **place) from error
    # Raised for brackets nested a thousand deep and for numbers of thousands of digits.
    except (RecursionError, ValueError) as error:
        raise InvalidRecordError(
            _("the JSON cannot be read: too deep, or a number that is too long")
        ) from error


def _fields(line: Line) -> dict[str, Any]:
    if line.problem:
        raise InvalidRecordError(line.problem)
    fields = load_json(line.text, first_line=line.number)
    if not isinstance(fields, dict):
        raise InvalidRecordError(
            _("The line is not a JSON object: the fields, in braces, are missing.")
        )
    return fields
