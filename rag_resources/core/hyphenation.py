"""Decides whether the hyphen of a word broken at the end of a line belongs to the word.

A hyphen of the typesetter is removed ("desa-" "rrollo"); one of the writer stays ("teórico-"
"práctico").
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

SOFT_HYPHEN = "\u00ad"
HYPHENS = ("-", "\u2010", SOFT_HYPHEN)

MAX_WORDS = 500_000
"""Most different words of a vocabulary; the rest of a huge document adds none."""

_LONGEST_WORD = 200
"""Characters at the end of a line that are examined."""

_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_ADDRESS = re.compile(r"\S/-?$|(?:://|www\.)\S+[-/._=&?#%]$")
"""The end of a line that breaks a path or a web address."""

_SCHEME = re.compile(r"(?:://|www\.)\S*$")

_BEFORE_NUMBER = re.compile(r"(?:[^\W_][-\u2010]|\d\u2013)$")
"""The end of a line that breaks a range of numbers, a date, or a code such as `GX-600`."""

_LAST = re.compile(r"([^\W\d_]+)[-\u2010\u00ad]$")
_FIRST = re.compile(r"[^\W\d_]+")


class LineEnd(Enum):
    """How the last word of a line continues: not at all, without its hyphen, or with it."""

    SPACE = "space"
    WITHOUT_HYPHEN = "without hyphen"
    AS_IT_IS = "as it is"


@dataclass(slots=True)
class Vocabulary:
    """The words of a document or corpus, as far as they are not broken themselves."""

    words: set[str] = field(default_factory=set)

    def add(self, text: str) -> None:
        """Add the words of a text; parts of words at the ends of lines are not among them."""
        if len(self.words) >= MAX_WORDS:
            return
        broken = False
        for line in text.splitlines():
            found = _WORD.findall(line.casefold())
            ends = line.rstrip().endswith(HYPHENS)
            self.words.update(found[broken : len(found) - ends])
            broken = ends

    def __contains__(self, word: str) -> bool:
        return word.casefold() in self.words

    @classmethod
    def of(cls, texts: Iterable[str]) -> "Vocabulary":
        """Return the vocabulary of some texts."""
        vocabulary = cls()
        for text in texts:
            vocabulary.add(text)
        return vocabulary


def line_end(line: str, following: str, vocabulary: Vocabulary) -> LineEnd:
    """Return how the last word of a line continues in the next line.

    A path or web address continues directly, and so does a hyphen before a digit. A soft hyphen is
    always removed. Another hyphen is removed if the joined word occurs elsewhere. It is also
    removed if the hyphenated word does not occur elsewhere and the parts are not both words.
    """
    line = line[-_LONGEST_WORD:]
    address = _ADDRESS.search(line)
    if address and (_SCHEME.search(line) or not following[:1].isupper()):
        # A line that ends in `/-` was broken by the typesetter after the slash.
        return LineEnd.WITHOUT_HYPHEN if line.endswith("/-") else LineEnd.AS_IT_IS
    if following[:1].isdigit() and _BEFORE_NUMBER.search(line):
        return LineEnd.AS_IT_IS
    last, first = _LAST.search(line), _FIRST.match(following)
    if last is None or first is None:
        return LineEnd.SPACE
    if line.endswith(SOFT_HYPHEN):
        return LineEnd.WITHOUT_HYPHEN
    before, after = last[1], first[0]
    if not after[0].islower() and not before.isupper():
        return LineEnd.AS_IT_IS
    if before + after in vocabulary:
        return LineEnd.WITHOUT_HYPHEN
    compound = f"{before}-{after}" in vocabulary
    parts = len(before) > 2 and len(after) > 2 and before in vocabulary and after in vocabulary
    return LineEnd.AS_IT_IS if compound or parts else LineEnd.WITHOUT_HYPHEN
