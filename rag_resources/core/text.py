"""Text measures and normal forms: spans, token estimate, query normal form.

Sentences belong in `core.sentences`; PostgreSQL does the stemming for search.
"""

import hashlib
import math
import re
import unicodedata
from collections.abc import Collection
from dataclasses import dataclass

CHARS_PER_TOKEN = 4
"""Characters per token of the estimate that is used unless a model has its own tokenizer."""

_WHITE_SPACE = re.compile(r"\s+")
_PUNCTUATION = re.compile(r"[¿?¡!.,;:…«»“”\"'()]")
_ACCENTS = re.compile("[\u0300-\u0302\u0308]")
"""Grave, acute, circumflex and diaeresis; the tilde of ñ is not an accent."""
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
_UNSTORABLE = {0: "\ufffd"} | dict.fromkeys(range(0xD800, 0xE000), "\ufffd")


@dataclass(frozen=True, slots=True)
class Span:
    """Half-open range of characters of a text, in Python code points."""

    start: int
    end: int

    @property
    def length(self) -> int:
        """Characters in the span."""
        return self.end - self.start

    def overlaps(self, other: "Span") -> bool:
        """Whether the two have a character in common."""
        return self.start < other.end and other.start < self.end


def count_tokens(text: str) -> int:
    """Estimate the tokens of a text as `ceil(characters / 4)`."""
    return math.ceil(len(text) / CHARS_PER_TOKEN)


def normalize_query(query: str) -> str:
    """Return the normal form of a golden question; equal forms mean the same question.

    Unicode NFC, case folding, each run of white space as one space. Property 32.
    """
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", query).casefold())
    return _WHITE_SPACE.sub(" ", folded).strip()


def fold_question(query: str) -> str:
    """Return the normal form of a question without accents and punctuation; ñ stays ñ."""
    decomposed = unicodedata.normalize("NFD", normalize_query(_PUNCTUATION.sub(" ", query)))
    return unicodedata.normalize("NFC", _ACCENTS.sub("", decomposed))


def without(text: str, categories: Collection[str]) -> str:
    """Return a text without the characters of some Unicode categories that ASCII has none of."""
    # Only what is not ASCII is looked at one by one; that is little of a text in Spanish.
    return _NOT_ASCII.sub(
        lambda found: "".join(
            letter for letter in found[0] if unicodedata.category(letter) not in categories
        ),
        text,
    )


def storable(text: str) -> str:
    """Replace what PostgreSQL cannot store in a text: NUL and unpaired surrogates."""
    return text.translate(_UNSTORABLE)


def content_sha256(text: str) -> bytes:
    """Return the SHA-256 of a text in UTF-8, as the SQL function `text_sha256` does."""
    return hashlib.sha256(text.encode()).digest()


def is_blank(text: str) -> bool:
    """Whether a text is empty or has only white space."""
    return not text.strip()
