"""What a question asks for: its intent and the questions inside it, by rules, without a model.

The words that tell are in `languages/es/rules/questions.toml`. A language model's opinion of the
intent, and made-up answers, are `retrieval.transform`.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from rag_resources.core.rules import rules
from rag_resources.core.text import normalize_query

MAX_QUERY_CHARS = 2_000
"""Of a question; a longer one is not searched."""
MAX_SUB_QUERIES = 5
"""Each one is searched: more would cost time and dilute the question itself."""


class Intent(StrEnum):
    """What kind of answer a question wants."""

    FACTUAL = "factual"
    CAUSAL = "causal"
    TEMPORAL = "temporal"
    COMPARATIVE = "comparative"
    ABSTRACT = "abstract"


@dataclass(frozen=True, slots=True)
class TransformedQuery:
    """A question and what is searched beside it. Properties 15 and 16.

    Attributes:
        original: The question, unchanged.
        sub_queries: The questions inside it, at least two, or none.
        hypothetical_answer: A made-up answer to search with (HyDE); None without a language model.
        transformed_at: Aware.
    """

    original: str
    intent: Intent
    sub_queries: tuple[str, ...]
    hypothetical_answer: str | None
    transformed_at: datetime

    def to_json(self) -> dict[str, object]:
        """Return the camelCase form of the command line, HTTP and the store."""
        return {
            "originalQuery": self.original,
            "intent": self.intent.value,
            "subQueries": list(self.sub_queries),
            "hypotheticalAnswer": self.hypothetical_answer,
            "timestamp": self.transformed_at.isoformat(),
        }


# --- Intent -----------------------------------------------------------------------------------


_RULES = rules().questions


def _whole_words(expressions: Sequence[str]) -> re.Pattern[str]:
    """Match any of some expressions, as whole words."""
    return re.compile(rf"\b(?:{'|'.join(expressions)})\b")


# Matched against `_folded` text.
_IDIOMS = _whole_words(_RULES.idioms)
# In the order in which they are tried. Property 17.
_KEYWORDS = {Intent(name): _whole_words(words) for name, words in _RULES.intents.items()}


def classify(query: str) -> Intent:
    """Tell what kind of answer a question wants by its keywords.

    Whole words, whatever their case, accents optional, composed or not: "porque" is not "por qué".

    Returns:
        The first of causal, temporal, comparative and factual with a keyword in the question;
        else abstract.

    Property: 17.
    """
    # A mark in the place of an idiom, or the words around it could meet and mean something.
    text = _IDIOMS.sub("·", _folded(query))
    matches = (intent for intent, keywords in _KEYWORDS.items() if keywords.search(text))
    return next(matches, Intent.ABSTRACT)


def _folded(text: str) -> str:
    letters = "".join(
        character
        for character in unicodedata.normalize("NFD", text)
        if unicodedata.category(character) not in {"Mn", "Cf"}  # accents, soft hyphens
    )
    return " ".join(letters.casefold().split())


# --- Sub-queries ------------------------------------------------------------------------------

# What is quoted or in brackets belongs to the question around it; a URL has its own "?".
_ENCLOSED = re.compile(
    r"""«[^«»]*»|“[^“”]*”|"[^"]*"|\([^()]*\)|https?://\S*[^\s?.,;]""", re.IGNORECASE
)


def _accents_optional(word: str) -> str:
    """Match a word with its accents, composed or not, or without."""
    return "".join(
        f"(?:{letter}|{bare[0]}{bare[1]}?)" if len(bare) > 1 else letter
        for letter, bare in ((letter, unicodedata.normalize("NFD", letter)) for letter in word)
    )


_AND = f"(?:{'|'.join(_RULES.joiners['and'])})"
_ALSO = f"(?:{'|'.join(map(_accents_optional, _RULES.joiners['also']))})"
_END = r"(?![\w\u0300-\u036f])"
_BORDER = re.compile(
    rf"""
      (?P<joiner> ; \s* (?: {_AND}{_END} (?: [\s,]+ {_ALSO}{_END} )? | {_ALSO}{_END} ) ,?
                | (?<!\w) {_AND} [\s,]+ {_ALSO}{_END} ,? )
    | (?P<closing> \? [?!]* )
    | (?= ¿ )
    """,
    re.IGNORECASE | re.VERBOSE,
)
_DANGLING = " \t\r\n\u00a0,;:-–—"
_MARKS = _DANGLING + "¿?¡!."
# They ask for a yes to what was said before.
_TAGS = frozenset(_RULES.tags)


def decompose(query: str) -> tuple[str, ...]:
    """Find the distinct questions inside a question.

    They end with a question mark of their own or are joined by "y también", "y además" or "; y".
    What stands between questions (a greeting, "¿verdad?") is none.

    Returns:
        From two to `MAX_SUB_QUERIES` pieces of the query, verbatim, in order, each with a letter or
        digit and no two the same when normalised; or none.

    Property: 18.
    """
    distinct: dict[str, str] = {}
    for piece in _questions(query):
        bare = normalize_query(piece).strip(_MARKS)
        if any(map(str.isalnum, bare)) and bare not in _TAGS:
            distinct.setdefault(bare, piece.strip(_DANGLING).strip())
    return tuple(distinct.values())[:MAX_SUB_QUERIES] if len(distinct) > 1 else ()


def _questions(query: str) -> Iterator[str]:
    """Cut at the borders, and give the pieces with a question mark or a joiner beside them."""
    text = _without_enclosed(query)
    start, joined = 0, False
    for border in _BORDER.finditer(text):
        end = border.end("closing") if border["closing"] else border.start()
        joins = border["joiner"] is not None
        if joined or joins or _has_mark(text[start:end]):
            yield query[start:end]
        start, joined = border.end(), joins
    if joined or _has_mark(text[start:]):
        yield query[start:]


def _without_enclosed(query: str) -> str:
    """Blank what is enclosed, at the same length, unless there is nothing else."""
    outside = _ENCLOSED.sub(lambda match: " " * len(match[0]), query)
    return outside if any(map(str.isalnum, outside)) else query


def _has_mark(text: str) -> bool:
    return "?" in text or "¿" in text
