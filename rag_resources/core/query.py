"""What a question asks for: its intent and the questions inside it, by rules, without a model.

A language model's opinion of the intent, and made-up answers, are `retrieval.transform`.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

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


def _whole_words(*lists: str) -> re.Pattern[str]:
    """Match any of the expressions of lists separated by " / ", as whole words."""
    expressions = [one.strip() for listed in lists for one in listed.split(" / ")]
    return re.compile(rf"\b(?:{'|'.join(expressions)})\b")


# Matched against `_folded` text: small letters, no accents (an ñ is an n), single spaces.
# Here the words of a question ask nothing. A bare "que", "como" or "cuando" elsewhere does count,
# since people leave out accents, although it can be a conjunction or a relative pronoun.
_IDIOMS = _whole_words(
    "mientras que / ya que / asi que / puesto que / sino que / siempre que / cada vez que",
    "a menos que / salvo que / mas que nada / antes que nada / mas o menos / (?:al|por lo) menos",
    "(?:hay|habia|habra|hubo) que / (?:da|das|dan|dio|dar|dieron|daba) la razon",
    r"(?:ten(?:go|emos|eis|er|ia\w*|dr\w+)|tiene[ns]?|tuv\w+) (?:que|(?:toda )?(?:la )?razon)",
    "asi como / tal (?:y )?como / tal cual / lo cual / como siempre / como si",
    "en cuanto al? / un[oa]s cuant[oa]s",
    # In front of, and to face up to.
    r"(?:esta\w*|hay|habia|queda\w*|viv\w+|sent\w+|justo|en|de|hac\w+|hizo|hicimos) frente al?",
)

# In the order in which they are tried. Property 17.
_KEYWORDS: Mapping[Intent, re.Pattern[str]] = {
    Intent.CAUSAL: _whole_words(
        r"por que / como (?:es|fue) que / a que se deb\w+ / se deb(?:e|en|io|ieron|ia|ian) al?",
        "causas? / caus(?:ar|an|o|aba|aron|antes?|ad[oa]s?) / motivos? / razon(?:es)?",
        "provoc(?:a|an|ar|o|aba|aron|ad[oa]s?) / que origin(?:o|aron) / que hizo que",
        "consecuencias? / que efectos? / por culpa / a raiz de / debido al?",
    ),
    Intent.TEMPORAL: _whole_words(
        "cuando / fechas? / (?:ultima|primera) vez / (?:antes|despues) (?:del?|que)",
        "que (?:dia|ano|hora|semana|momento|epoca|siglo|decada)s? / que mes(?:es)?",
        "(?:hace|cada) cuant[oa]s? / cuanto tiempo / cuanto hace(?! falta)",
        "cuant[oa]s (?:horas|dias|semanas|meses|anos) hace",
    ),
    Intent.COMPARATIVE: _whole_words(
        r"diferencias? / se diferencian? / compara\w* / comparemos / versus / vs / frente al?",
        "semejanzas? / similitud(?:es)? / se parecen / en que se (?:parece|distinguen?)",
        r"(?:mejor|peor|mayor|menor|igual) que / tan \w+ como",
        "(?:distint[oa]|diferente)(?: del?|s? (?:al?|que))",
        # Not "qué más" (what else), "más de un año", nor "el libro más largo que he leído".
        r"(?<!que )(?<!quien )(?<!algo )(?<!nada )(?<!nadie )(?:mas|menos)(?! de\b)"
        r"(?: \w+){0,3} que"
        r"(?! (?:no|se|me|te|les?|nos|he|ha|hemos|han|hay|habia\w*|existen?|tengo|tenemos)\b)",
        # "¿Quién cocina mejor, mi madre o mi tía?"
        r"(?:mejor|peor|mayor|menor|(?:mas|menos) \w+)(?: \w+){0,4},(?: \w+){1,6} o",
    ),
    Intent.FACTUAL: _whole_words(
        "que / quien(?:es)? / a?donde / cual(?:es)? / cuant[oa]s? / cuan / como"
    ),
}


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
_ALSO = r"(?:tambi(?:é|e\u0301?)n|adem(?:á|a\u0301?)s)"
_END = r"(?![\w\u0300-\u036f])"
_BORDER = re.compile(
    rf"""
      (?P<joiner> ; \s* (?: [ye]{_END} (?: [\s,]+ {_ALSO}{_END} )? | {_ALSO}{_END} ) ,?
                | (?<!\w) [ye] [\s,]+ {_ALSO}{_END} ,? )
    | (?P<closing> \? [?!]* )
    | (?= ¿ )
    """,
    re.IGNORECASE | re.VERBOSE,
)
_DANGLING = " \t\r\n\u00a0,;:-–—"
_MARKS = _DANGLING + "¿?¡!."
# They ask for a yes to what was said before.
_TAGS = frozenset({"no", "verdad", "cierto", "vale", "eh"})


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
