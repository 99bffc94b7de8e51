"""Text measures and normal forms: token estimate, query normal form, sentences with exact offsets.

Chunk building lives in `core.chunking`; stemming for search lives in PostgreSQL.
"""

import hashlib
import math
import re
import unicodedata
from dataclasses import dataclass

from sentencex import get_sentence_boundaries

CHARS_PER_TOKEN = 4
"""Characters per token of the estimate used everywhere unless a model brings a tokenizer."""

_WHITE_SPACE = re.compile(r"\s+")

# Abbreviations after which a sentence goes on, whatever follows: titles and references.
_OPENING_ABBREVIATION = re.compile(
    r"(?<!\w)(?:sr|sra|srta|sres|dr|dra|d|dña|prof|excmo|excma|ilmo|ilma|arq|lic|art|arts|cap|pág|págs|núm|núms|n|"
    r"vol|fig|tel|teléf|avda|av|apdo|ref|vid|cf|vs|p|pp|ej|ee|rr|ff)\.\s*$",
    re.IGNORECASE,
)
# Abbreviations that may close a sentence: it goes on only before a small letter or a digit.
_CLOSING_ABBREVIATION = re.compile(
    r"(?<!\w)(?:etc|aprox|máx|mín|izq|izda|dcha|dto|dpto|uds|ud|hnos|cía|uu|hh|aa|[a-z]|min|seg|h|kg|km|"
    r"ene|feb|mar|abr|jun|jul|ago|sept|sep|oct|nov|dic)\.\s*$",
    re.IGNORECASE,
)
_GOES_ON = re.compile(r"^[ºª«(\s]*[a-záéíóúüñàèìòùç0-9ºª]")
_LINE_BREAK = re.compile(r"[\r\n]")


@dataclass(frozen=True, slots=True)
class Span:
    """Half-open character range of a text, in Python code points."""

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
    """Return the form in which two golden questions are the same.

    Unicode NFC, case folding, white space folded to one space. Property 32.
    """
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", query).casefold())
    return _WHITE_SPACE.sub(" ", folded).strip()


def content_sha256(text: str) -> bytes:
    """Return the SHA-256 of a text in UTF-8, as the SQL function `text_sha256` does."""
    return hashlib.sha256(text.encode()).digest()


def is_blank(text: str) -> bool:
    """Whether a text has no character that is not white space."""
    return not text.strip()


def sentences(text: str) -> list[Span]:
    """Cut a Spanish text into sentences by `sentencex`, with the abbreviations it misses merged.

    Returns:
        Spans in order, none blank, trimmed of surrounding white space; every character outside
        them is white space.
    """
    merged: list[Span] = []
    for boundary in get_sentence_boundaries("es", text):
        span = _trimmed(text, boundary["start_index"], boundary["end_index"])
        if span.length == 0:
            continue
        if merged and _continues(text, merged[-1], span):
            merged[-1] = Span(merged[-1].start, span.end)
        else:
            merged.append(span)
    return merged


def _trimmed(text: str, start: int, end: int) -> Span:
    piece = text[start:end]
    left = len(piece) - len(piece.lstrip())
    return Span(start + left, max(start + left, start + len(piece.rstrip())))


def _continues(text: str, left: Span, right: Span) -> bool:
    """Whether a border found by the segmenter is only the full stop of an abbreviation."""
    if _LINE_BREAK.search(text, left.end, right.start):
        return False
    tail = text[max(left.start, left.end - 12) : left.end]
    if _OPENING_ABBREVIATION.search(tail):
        return True
    return bool(
        _CLOSING_ABBREVIATION.search(tail) and _GOES_ON.match(text[right.start : right.start + 4])
    )
