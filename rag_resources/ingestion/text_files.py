"""Decodes files of notes, whole or line by line, whatever encoding they are in.

The meaning of the text is decided by the module of each format: `markdown`, `jsonl`, `csv_file`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TextIO

from rag_resources.core.encodings import MARKS, decoded, likely_encoding
from rag_resources.core.errors import InvalidSourceError
from rag_resources.ingestion.source_file import InvalidRecordError, too_large

BOM = "\ufeff"
NUL = "\0"
_SAMPLE_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a file.

    Attributes:
        number: 1-based.
        text: With its line end, without NUL characters; empty if the line is too long.
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
        InvalidRecordError: The file is larger than `max_bytes` or is not text.
        OSError: The file cannot be read.
    """
    with path.open("rb") as file:
        raw = file.read(max_bytes + 1)
    if len(raw) > max_bytes:
        raise too_large(max_bytes)
    try:
        return raw.decode("utf-8").removeprefix(BOM)
    except UnicodeDecodeError:
        pass
    try:
        return decoded(raw, path.suffix.removeprefix(".").upper())
    except InvalidSourceError as error:
        raise InvalidRecordError(error.message) from error


def numbered_lines(path: Path, *, line_ends: Literal["\n", ""], max_chars: int) -> Iterator[Line]:
    r"""Read a file line by line, with one line in memory.

    A line that is not UTF-8 is decoded in the likeliest encoding of the file.

    Args:
        path: The file.
        line_ends: As in `open(newline=)`: "\n" only, or "" for \n, \r and \r\n; always kept.
        max_chars: A longer line is skipped and yielded as a problem.

    Raises:
        OSError: The file cannot be read.
    """
    ends = ("\n",) if line_ends else ("\n", "\r")
    with path.open("rb") as start:
        sample = start.read(_SAMPLE_BYTES)
    marked = next((name for mark, name in MARKS.items() if sample.startswith(mark)), "utf-8")
    other = ""
    with path.open(encoding=marked, errors="surrogateescape", newline=line_ends) as file:
        number = 0
        while text := file.readline(max_chars + 1):
            number += 1
            if len(text) > max_chars and not text.endswith(ends):
                _skip_line(file, ends, max_chars)
                yield Line(number, "", problem=too_large(max_chars).message)
                continue
            if not text.isascii() and not text.isprintable() and _has_bad_bytes(text):
                other = other or likely_encoding(sample)
                text = text.encode("utf-8", "surrogateescape").decode(other, "replace")
            kept = text.replace(NUL, "") if NUL in text else text
            yield Line(number, kept, len(text) - len(kept))


def _has_bad_bytes(text: str) -> bool:
    return any("\udc80" <= letter <= "\udcff" for letter in text)


def _skip_line(file: TextIO, ends: tuple[str, ...], max_chars: int) -> None:
    while (piece := file.readline(max_chars + 1)) and not piece.endswith(ends):
        pass
