"""Text measures and normal forms: token estimate, query normal form, sentences with exact offsets.

Building chunks belongs in `core.chunking`; PostgreSQL does the stemming for search.
"""

import hashlib
import math
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from sentencex import get_sentence_boundaries

from rag_resources.core.rules import rules

CHARS_PER_TOKEN = 4
"""Characters per token of the estimate that is used unless a model has its own tokenizer."""

_WHITE_SPACE = re.compile(r"\s+")
# `sentencex` (1.0.32) panics on multi-byte white space after an initial ("Q\xa0.").
_WIDE_SPACE = re.compile(r"[^\S\x00-\x7f]")
# The time of `sentencex` is quadratic in the quotation marks of a paragraph: minutes for a megabyte
# of inline code. So texts longer than this are cut into blocks first.
_BLOCK_CHARS = 10_000
_BLOCK_ENDS = ("\n\n", "\n", ". ")

# Abbreviations at the end of a text. After an opening one (a title or a reference) the sentence
# always goes on. After any other it goes on only before a lower-case letter or a digit.
_RULES = rules().sentences
_ABBREVIATION = re.compile(
    rf"(?<!\w)(?:(?P<opening>{'|'.join(_RULES.opening)})|{'|'.join(_RULES.closing)})\.$",
    re.IGNORECASE,
)
_ABBREVIATION_CHARS = 12
"""More than the longest abbreviation with its full stop and the character before it."""
_GOES_ON = re.compile(rf"^[ºª«(\s]*[{_RULES.small_letters}0-9ºª]")
_LINE_BREAK = re.compile(r"[\r\n]")


@dataclass(frozen=True, slots=True)
class Span:
    """Half-open range of characters of a text, in Python code points."""

    start: int
    end: int

    @property
    def length(self) -> int:
        """Characters in the span."""
        return self.end - self.start


def count_tokens(text: str) -> int:
    """Estimate the tokens of a text as `ceil(characters / 4)`."""
    return math.ceil(len(text) / CHARS_PER_TOKEN)


def normalize_query(query: str) -> str:
    """Return the normal form of a golden question; equal forms mean the same question.

    Unicode NFC, case folding, each run of white space as one space. Property 32.
    """
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", query).casefold())
    return _WHITE_SPACE.sub(" ", folded).strip()


def content_sha256(text: str) -> bytes:
    """Return the SHA-256 of a text in UTF-8, as the SQL function `text_sha256` does."""
    return hashlib.sha256(text.encode()).digest()


def is_blank(text: str) -> bool:
    """Whether a text is empty or has only white space."""
    return not text.strip()


def sentences(text: str) -> list[Span]:
    """Cut a Spanish text into sentences with `sentencex`, joined at abbreviations it misses.

    Returns:
        Spans in order, none blank, trimmed of surrounding white space; every character outside
        them is white space.
    """
    merged: list[Span] = []
    for start, end in _boundaries(text):
        span = _trimmed(text, start, end)
        if span.length == 0:
            continue
        if merged and _continues(text, merged[-1], span):
            merged[-1] = Span(merged[-1].start, span.end)
        else:
            merged.append(span)
    return merged


def _boundaries(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    opened: int | None = None  # Where the sentence begins that the block before was cut in.
    while start < len(text):
        end, is_inside = _block_end(text, start)
        block = _WIDE_SPACE.sub(" ", text[start:end])
        found = [
            (start + boundary["start_index"], start + boundary["end_index"])
            for boundary in get_sentence_boundaries("es", block)
        ]
        if opened is not None:
            found[0] = (opened, found[0][1])
        opened = found.pop()[0] if is_inside else None
        yield from found
        start = end


def _block_end(text: str, start: int) -> tuple[int, bool]:
    """Return the end of a block, and whether it is inside a sentence."""
    limit = start + _BLOCK_CHARS
    if len(text) <= limit:
        return len(text), False
    for mark in _BLOCK_ENDS:
        end = text.rfind(mark, start, limit) + len(mark)
        if end > start + _BLOCK_CHARS // 2:
            return end, False
    space = text.rfind(" ", start + _BLOCK_CHARS // 2, limit)
    return (space + 1 if space >= 0 else limit), True


def _trimmed(text: str, start: int, end: int) -> Span:
    piece = text[start:end]
    left = len(piece) - len(piece.lstrip())
    return Span(start + left, max(start + left, start + len(piece.rstrip())))


def _continues(text: str, left: Span, right: Span) -> bool:
    """Whether a boundary found by the segmenter is only the full stop of an abbreviation."""
    if _LINE_BREAK.search(text, left.end, right.start):
        return False
    tail = text[max(left.start, left.end - _ABBREVIATION_CHARS) : left.end]
    abbreviation = _ABBREVIATION.search(tail)
    if not abbreviation:
        return False
    if abbreviation["opening"]:
        return True
    return bool(_GOES_ON.match(text[right.start : right.start + 4]))
