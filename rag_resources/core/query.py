"""Analyses a question by rules, without a model: its intent and its sub-questions.

The keywords are in `languages/es/rules/questions.toml`. Intents from a language model, and
hypothetical answers, belong in `retrieval.transform`.
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
"""Longest question that is searched."""
MAX_SUB_QUERIES = 5
"""Each sub-query is searched; more would cost time and dilute the question itself."""


class Intent(StrEnum):
    """The kind of answer that a question asks for."""

    FACTUAL = "factual"
    CAUSAL = "causal"
    TEMPORAL = "temporal"
    COMPARATIVE = "comparative"
    ABSTRACT = "abstract"


@dataclass(frozen=True, slots=True)
class TransformedQuery:
    """A question and what is searched besides it. Properties 15 and 16.

    Attributes:
        original: The question, unchanged.
        sub_queries: Its sub-questions, at least two, or none.
        hypothetical_answer: A made-up answer to search with (HyDE); None without a language model.
        transformed_at: Timezone-aware.
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
    """Match any of the expressions, as whole words."""
    return re.compile(rf"\b(?:{'|'.join(expressions)})\b")


# Matched against `_folded` text.
_IDIOMS = _whole_words(_RULES.idioms)
# Tried in this order. Property 17.
_KEYWORDS = {Intent(name): _whole_words(words) for name, words in _RULES.intents.items()}


def classify(query: str) -> Intent:
    """Classify the intent of a question by its keywords.

    Keywords match as whole words, in any case, with or without accents, composed or not; "porque"
    is not "por qué".

    Returns:
        The first of causal, temporal, comparative and factual with a keyword in the question;
        otherwise abstract.

    Property: 17.
    """
    # An idiom is replaced by a mark, so that the words around it do not form another expression.
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

# Quoted or bracketed text belongs to the question around it; a URL may contain a "?".
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
# Tag questions, which only ask for confirmation of what was said before.
_TAGS = frozenset(_RULES.tags)


def decompose(query: str) -> tuple[str, ...]:
    """Find the distinct sub-questions of a question.

    Each ends with its own question mark, or they are joined by "y también", "y además" or "; y".
    Text between questions (a greeting, "¿verdad?") is not a question.

    Returns:
        Two to `MAX_SUB_QUERIES` pieces of the query, verbatim, in order, each with a letter or
        digit and no two equal when normalised; or none.

    Property: 18.
    """
    distinct: dict[str, str] = {}
    for piece in _questions(query):
        bare = normalize_query(piece).strip(_MARKS)
        if any(map(str.isalnum, bare)) and bare not in _TAGS:
            distinct.setdefault(bare, piece.strip(_DANGLING).strip())
    return tuple(distinct.values())[:MAX_SUB_QUERIES] if len(distinct) > 1 else ()


def _questions(query: str) -> Iterator[str]:
    """Cut at the borders, and yield the pieces next to a question mark or a joiner."""
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
    """Replace enclosed text by blanks of the same length, unless there is nothing else."""
    outside = _ENCLOSED.sub(lambda match: " " * len(match[0]), query)
    return outside if any(map(str.isalnum, outside)) else query


def _has_mark(text: str) -> bool:
    return "?" in text or "¿" in text
