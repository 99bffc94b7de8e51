"""Analyses a question by rules, without a model: its intent and its sub-questions.

The keywords of each language are in `languages/*/rules/questions.toml`. Intents from a language
model, and hypothetical answers, belong in `retrieval.transform`.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cache
from itertools import islice

from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.quoting import shown
from rag_resources.core.rules import QuestionRules, question_rules, rules
from rag_resources.core.text import normalize_query, without
from rag_resources.languages.files import LANGUAGES
from rag_resources.languages.messages import _

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
            "hydeAnswer": self.hypothetical_answer,
            "timestamp": self.transformed_at.isoformat(),
        }


# --- Intent -----------------------------------------------------------------------------------


def _whole_words(expressions: Sequence[str]) -> re.Pattern[str]:
    """Match any of the expressions, as whole words."""
    return re.compile(rf"\b(?:{'|'.join(expressions)})\b")


@dataclass(frozen=True, slots=True)
class _Patterns:
    """The rules of a language as regular expressions.

    Attributes:
        idioms: Matched against `_folded` text, as are the keywords.
        keywords: Tried in this order. Property 17.
        tags: Tag questions, which only ask for confirmation of what was said before.
        coordination: None in a language without rules for it.
    """

    idioms: re.Pattern[str]
    keywords: dict[Intent, re.Pattern[str]]
    border: re.Pattern[str]
    tags: frozenset[str]
    coordination: "_Coordination | None"


@cache
def _patterns(language: str) -> _Patterns:
    found = question_rules(language)
    return _Patterns(
        idioms=_whole_words(found.idioms),
        keywords={Intent(name): _whole_words(words) for name, words in found.intents.items()},
        border=_border(found.joiners),
        tags=frozenset(found.tags),
        coordination=_coordination(found) if found.coordinated else None,
    )


def classify(query: str, language: str = "es") -> Intent:
    """Classify the intent of a question by its keywords.

    Keywords match as whole words, in any case, with or without accents, composed or not; "porque"
    is not "por qué".

    Returns:
        The first of causal, temporal, comparative and factual with a keyword in the question;
        otherwise abstract.

    Property: 17.
    """
    # An idiom is replaced by a mark, so that the words around it do not form another expression.
    patterns = _patterns(language)
    text = patterns.idioms.sub("·", _folded(query))
    matches = (intent for intent, words in patterns.keywords.items() if words.search(text))
    return next(matches, Intent.ABSTRACT)


def _folded(text: str) -> str:
    letters = without(unicodedata.normalize("NFD", text), {"Mn", "Cf"})  # accents, soft hyphens
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


_END = r"(?![\w\u0300-\u036f])"


def _border(joiners: Mapping[str, Sequence[str]]) -> re.Pattern[str]:
    """Match the border between two questions."""
    and_ = f"(?:{'|'.join(joiners['and'])})"
    also = f"(?:{'|'.join(map(_accents_optional, joiners['also']))})"
    return re.compile(
        rf"""
          (?P<joiner> ; \s* (?: {and_}{_END} (?: [\s,]+ {also}{_END} )? | {also}{_END} ) ,?
                    | (?<!\w) {and_} [\s,]+ {also}{_END} ,? )
        | (?P<closing> \? [?!]* )
        | (?= ¿ )
        """,
        re.IGNORECASE | re.VERBOSE,
    )


_DANGLING = " \t\r\n\u00a0,;:-–—"
_MARKS = _DANGLING + "¿?¡!."


def decompose(query: str, language: str = "es", *, coordinated: bool = True) -> tuple[str, ...]:
    """Find the distinct sub-questions of a question.

    Each ends with its own question mark, or they are joined by "y también", "y además" or "; y".
    Text between questions (a greeting, "¿verdad?") is not a question. One that remains is cut where
    another interrogative begins: "¿Cuánto costó la lavadora y por qué se rompió?".

    Args:
        query: The question.
        language: Of the question.
        coordinated: Whether one that remains is cut.

    Returns:
        Two to `MAX_SUB_QUERIES` pieces of the query, verbatim, in order, each with a letter or
        digit and no two equal when normalised; or none. What stands before "¿" is repeated before
        each coordinated question, since it says what they are about.

    Property: 18.
    """
    patterns = _patterns(language)
    separate = _distinct(_questions(query, patterns.border), patterns.tags)
    if separate or not coordinated or patterns.coordination is None:
        return separate
    further = _coordinated(query, patterns.coordination)
    return _distinct(islice(further, MAX_SUB_QUERIES), patterns.tags)


def _distinct(pieces: Iterable[str], tags: frozenset[str]) -> tuple[str, ...]:
    distinct: dict[str, str] = {}
    for piece in pieces:
        bare = normalize_query(piece).strip(_MARKS)
        if any(map(str.isalnum, bare)) and bare not in tags:
            distinct.setdefault(bare, piece.strip(_DANGLING).strip())
    return tuple(distinct.values())[:MAX_SUB_QUERIES] if len(distinct) > 1 else ()


def _questions(query: str, borders: re.Pattern[str]) -> Iterator[str]:
    """Cut at the borders, and yield the pieces next to a question mark or a joiner."""
    text = _without_enclosed(query)
    start, joined = 0, False
    for border in borders.finditer(text):
        end = border.end("closing") if border["closing"] else border.start()
        joins = border["joiner"] is not None
        if joined or joins or _has_mark(text[start:end]):
            yield query[start:end]
        start, joined = border.end(), joins
    if joined or _has_mark(text[start:]):
        yield query[start:]


_TAIL_CHARS = 100
"""Characters before a joint that are looked at."""


@dataclass(frozen=True, slots=True)
class _Coordination:
    """The patterns of a further question inside the question marks of the first.

    Attributes:
        joint: Matches the border between two questions, if the second begins like a question.
        subject: A subject whose two verbs make one question.
        asking: An interrogative with what may stand before it.
        without_verb: An interrogative with its noun, at the end of a text.
    """

    joint: re.Pattern[str]
    subject: re.Pattern[str]
    asking: re.Pattern[str]
    without_verb: re.Pattern[str]


def _coordination(found: QuestionRules) -> _Coordination:
    and_ = f"(?:{'|'.join(found.joiners['and'])})"
    words = {
        kind: f"(?:{'|'.join(map(_accents_optional, each))})"
        for kind, each in [*found.coordinated.items(), ("interrogatives", found.interrogatives)]
    }
    asking = rf"(?:{words['before']}\s+){{0,2}}(?P<interrogative>{words['interrogatives']}{_END})"
    past = rf"{words['pronouns']}\s+[^\W\d_]+{words['past']}{_END}"
    yes_or_no = rf"(?P<yes_or_no>{words['adverbs']}\s+{past}|{past}(?=\s*(?:\?|\Z)))"
    return _Coordination(
        joint=re.compile(
            rf"(?<![\s,])(?:(?P<and>[\s,]++{and_}[\s,]+)|,\s*+)(?={asking}\s|{yes_or_no})",
            re.IGNORECASE,
        ),
        subject=re.compile(rf"(?<!\w){words['subjects']}{_END}", re.IGNORECASE),
        asking=re.compile(rf"(?<!\w){asking}", re.IGNORECASE),
        without_verb=re.compile(rf"(?<!\w){asking}(?:\s+{words['nouns']})?\Z", re.IGNORECASE),
    )


def _coordinated(query: str, coordination: _Coordination) -> Iterator[str]:
    """Cut a single question where a further one begins."""
    text = _without_enclosed(query)
    opening = max(text.find("¿"), 0)
    closing = text.find("?", opening)
    end = closing + 1 if closing >= 0 else len(text)
    topic = query[:opening].strip()
    is_marked = text.startswith("¿", opening)
    first = coordination.asking.search(text, opening, end)
    start = opening
    for joint in coordination.joint.finditer(text, opening, end):
        asked = is_marked or (first is not None and first.end() <= joint.start())
        if asked and _joins_questions(text, start, joint, coordination):
            yield f"{topic} {query[start : joint.start()]}"
            start = joint.end()
    yield f"{topic} {query[start:end]}"


def _joins_questions(
    text: str, start: int, joint: re.Match[str], coordination: _Coordination
) -> bool:
    """Whether the words before a joint can be a question, and those after it ask another."""
    tail = text[max(start, joint.start() - _TAIL_CHARS) : joint.start()]
    if coordination.without_verb.search(tail):
        return False
    if joint["yes_or_no"]:
        return joint["and"] is not None and not coordination.subject.search(tail)
    return _is_accented(joint["interrogative"]) or (
        bool(joint["and"]) and not _is_accented(text[:MAX_QUERY_CHARS])
    )


def _is_accented(text: str) -> bool:
    return "\u0301" in unicodedata.normalize("NFD", text)


def _without_enclosed(query: str) -> str:
    """Replace enclosed text by blanks of the same length, unless there is nothing else."""
    outside = _ENCLOSED.sub(lambda match: " " * len(match[0]), query)
    return outside if any(map(str.isalnum, outside)) else query


def _has_mark(text: str) -> bool:
    return "?" in text or "¿" in text


# --- Words ------------------------------------------------------------------------------------

_INTERROGATIVE_WORD = re.compile(
    "|".join(
        rf"(?<!\w){_accents_optional(word)}{_END}" for word in rules().questions.interrogatives
    ),
    re.IGNORECASE,
)
"""Interrogatives of the notes' language, because the words of notes are searched."""


def searched_words(query: str) -> str:
    """Return a question without its interrogatives, unless there is nothing else in it.

    They say what kind of answer is wanted, and share stems with other words: "cómo" with "comer".
    """
    rest = _INTERROGATIVE_WORD.sub(" ", query)
    return rest if any(map(str.isalnum, rest)) else query


def check_language(language: str) -> None:
    """Refuse a language that readers cannot be answered in.

    Raises:
        InvalidParameterError: It is not one of `LANGUAGES`.
    """
    if language not in LANGUAGES:
        known = ", ".join(LANGUAGES)
        message = _(
            "“{value}” is not a language of answers. Those that exist are: {known}."
        ).format(value=shown(language), known=known)
        raise InvalidParameterError(message, language=language)
