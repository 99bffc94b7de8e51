"""Decodes files as UTF-8, whole or line by line; errors say where the bad byte is.

The meaning of the text is decided by the module of each format: `markdown`, `jsonl`, `csv_file`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TextIO

from rag_resources.ingestion.source_file import InvalidRecordError, too_large
from rag_resources.languages.messages import _

BOM = "\ufeff"
NUL = "\0"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a file.

    Attributes:
        number: 1-based.
        text: With its line end, without NUL characters. If there is a problem, it is unusable:
            bytes that are not UTF-8 became surrogates, or the line is too long and left empty.
        nul_characters: Number of NUL characters removed.
        problem: Why the line cannot be used, in Spanish; empty if it can.
    """

    number: int
    text: str
    nul_characters: int = 0
    problem: str = ""


def read_text(path: Path, *, max_bytes: int) -> str:
    """Read a whole file without its byte order mark.

    Raises:
        InvalidRecordError: The file is larger than `max_bytes` or is not UTF-8.
        OSError: The file cannot be read.
    """
    with path.open("rb") as file:
        raw = file.read(max_bytes + 1)
    if len(raw) > max_bytes:
        raise too_large(max_bytes)
    try:
        return raw.decode("utf-8").removeprefix(BOM)
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InvalidRecordError(_not_utf8(error.start, line), offset=error.start) from error


def numbered_lines(path: Path, *, line_ends: Literal["\n", ""], max_chars: int) -> Iterator[Line]:
    r"""Read a file line by line, with one line in memory.

    Args:
        path: The file.
        line_ends: As in `open(newline=)`: "\n" only, or "" for \n, \r and \r\n; always kept.
        max_chars: A longer line is skipped and yielded as a problem.

    Raises:
        OSError: The file cannot be read.
    """
    ends = ("\n",) if line_ends else ("\n", "\r")
    offset = 0
    # A byte that is not UTF-8 becomes a surrogate, which valid UTF-8 never contains. So a bad line
    # is recognised, its offset is known, and the next line can be read.
    with path.open(encoding="utf-8", errors="surrogateescape", newline=line_ends) as file:
        number = 0
        while text := file.readline(max_chars + 1):
            number += 1
            if len(text) > max_chars and not text.endswith(ends):
                offset += _byte_length(text) + _skip_line(file, ends, max_chars)
                yield Line(number, "", problem=too_large(max_chars).message)
                continue
            yield _checked(number, text, offset)
            offset += _byte_length(text)


def _checked(number: int, text: str, offset: int) -> Line:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        position = offset + _byte_length(text[: error.start])
        return Line(number, text, problem=_not_utf8(position, number))
    if number == 1:
        text = text.removeprefix(BOM)
    nul_characters = text.count(NUL)
    return Line(number, text.replace(NUL, "") if nul_characters else text, nul_characters)


def _skip_line(file: TextIO, ends: tuple[str, ...], max_chars: int) -> int:
    """Skip to the end of the line and return the number of bytes skipped."""
    skipped = 0
    while piece := file.readline(max_chars + 1):
        skipped += _byte_length(piece)
        if piece.endswith(ends):
            break
    return skipped


def _byte_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogateescape"))


def _not_utf8(offset: int, line: int) -> str:
    return _(
        "It is not UTF-8: invalid byte at position {offset} (line {line}). If the text is "
        "Latin-1, convert it with “iconv -f latin1 -t utf-8”."
    ).format(offset=offset, line=line)
