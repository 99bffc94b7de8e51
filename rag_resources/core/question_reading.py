"""Finds the signs in a question: its intent and complexity, and the periods, files and names in it.

It uses rules, without a model and without look-ups: `answers.reading` finds out whether a file or a
name exists. What a conversation carries over is in `core.conversation`. The rules are in
`languages/*/rules/questions.toml`, under `reading`.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache
from typing import Any

from rag_resources.core.query import Intent, classify, decompose
from rag_resources.core.rules import question_rules, word_rules
from rag_resources.core.wording import content, fold, names, word_set

OPINION = "opinion"
CLARIFICATION = "clarification"
"""Two intents besides those of `core.query.Intent`; only the latter decide how to search."""

_MANY_WORDS = 8
_MAX_PHRASES = 60
_LONGEST_NAME = 4
_WORDS_BEFORE = 6

_FILE = re.compile(
    # "informe (2).pdf" is what a browser calls the second download.
    r"\w[\w.\-]*(?: ?\(\d{1,3}\))?\."
    r"(?:pdf|doc[xm]?|xls[xmb]?|ods|odt|odp|pptx?|rtf|epub|csv|tsv|x?html?|md|markdown|txt|jsonl?)\b",
    re.IGNORECASE,
)
_PRINTED = re.compile(r"[^\s¿?¡!«»“”\"]+")
_QUOTED = re.compile(r"«([^«»]{2,100})»|“([^“”]{2,100})”|\"([^\"]{2,100})\"")
_TOKEN = re.compile(r"[\w][\w\-]*")
_CAPITALISED = re.compile(
    r"[^\W\d_a-zà-ÿ][\w’'\-]+(?:\s+(?:(?:de|del|la|las|los|y|i)\s+)?[^\W\d_a-zà-ÿ][\w’'\-]+)*"
)


class Complexity(StrEnum):
    """How many things a question asks for."""

    SIMPLE = "simple"
    """One thing."""

    COMPOUND = "compound"
    """Several questions in one."""

    COMPLEX = "complex"
    """One question that needs several things to be put together."""


@dataclass(frozen=True, slots=True)
class Period:
    """A time that a question names.

    Attributes:
        text: As the question names it, in small letters without accents.
        start: In UTC, inclusive; `end` is exclusive.
    """

    text: str
    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class Titled:
    """A kind of note and a month that a question names, as in "the minutes of March".

    Attributes:
        year: None if the question names none.
        month_name: As the question names it, in small letters without accents.
    """

    text: str
    word: str
    month: int
    year: int | None
    month_name: str

    @property
    def shown(self) -> str:
        """What it stands for, as "acta, marzo 2025"."""
        when = f"{self.month_name} {self.year}" if self.year else self.month_name
        return f"{self.word}, {when}"


@dataclass(frozen=True, slots=True)
class QuestionSigns:
    """The signs in a question.

    Attributes:
        intent: One of `Intent`, or `OPINION`, or `CLARIFICATION` if nothing says what it is about.
        periods: The periods it names, in order.
        titled: The kinds of note with a month that it names, in order.
        file_names: Words that look like the name of a file, such as "plan.pdf".
        phrases: Other possible names of files: such a word with the words before it, since names
            may have spaces; quoted text; or words with a figure.
        names: Capitalised words inside the question, adjacent ones together.
        people: Those names that the question treats as somebody who says something.
        abbreviations: Words that may be abbreviations.
    """

    intent: str
    complexity: Complexity
    periods: tuple[Period, ...] = ()
    titled: tuple[Titled, ...] = ()
    file_names: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    people: tuple[str, ...] = ()
    abbreviations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Patterns:
    opinion: re.Pattern[str]
    pronouns: re.Pattern[str]
    not_pronouns: re.Pattern[str]
    months: tuple[str, ...]
    year: tuple[re.Pattern[str], ...]
    month: tuple[re.Pattern[str], ...]
    titled: tuple[re.Pattern[str], ...]
    contents: re.Pattern[str]
    empty: frozenset[str]


@cache
def _patterns(language: str) -> _Patterns:
    found: dict[str, Any] = question_rules(language).reading
    months = "|".join(found["months"])

    def whole(expressions: Sequence[str]) -> re.Pattern[str]:
        return re.compile(rf"\b(?:{'|'.join(expressions)})\b")

    def each(expressions: Sequence[str]) -> tuple[re.Pattern[str], ...]:
        return tuple(re.compile(rf"\b{own.replace('{months}', months)}\b") for own in expressions)

    return _Patterns(
        whole(found["opinion"]),
        whole(found["pronouns"]),
        re.compile("|".join(rf"\b(?:{own})" for own in found["not_pronouns"])),
        tuple(found["months"]),
        each(found["year"]),
        each(found["month"]),
        each(found["titled"]),
        whole(found["contents"]),
        frozenset(found["empty"]),
    )


def read_question(question: str, language: str = "es") -> QuestionSigns:
    """Read a question by the rules of its language.

    Args:
        question: As it was asked, or completed from a conversation.
        language: The question's language.
    """
    line = " ".join(fold(question).split())
    periods, titled = _periods(line, language), _titled(line, language)
    file_names = tuple(dict.fromkeys(match[0] for match in _FILE.finditer(question)))
    intent = _intent(question, language)
    return QuestionSigns(
        intent,
        _complexity(question, intent, len(file_names), language),
        tuple(own for own in periods if not any(own.text in kind.text for kind in titled)),
        titled,
        file_names,
        _phrases(question),
        inner_names(question),
        _people(line, inner_names(question), language),
        tuple(dict.fromkeys(match[0] for match in _TOKEN.finditer(question))),
    )


def says_nothing(question: str, language: str = "es") -> bool:
    """Whether no word of a question says what it is about."""
    ignored = _patterns(language).empty | frozenset(word_rules(language).stop.split())
    return not (word_set(question) - ignored or re.search(r"\d", question))


def asks_for_contents(question: str, language: str = "es") -> bool:
    """Whether a question asks for no more than what is said, as in "what was decided?"."""
    line = " ".join(fold(question).split())
    return says_nothing(_patterns(language).contents.sub(" ", line), language)


def begins_with_and(question: str, language: str = "es") -> bool:
    """Whether a question goes on from something said before, as in "and how long did it last?"."""
    first, *_ = [*re.findall(r"\w+", fold(question)), ""]
    return first in question_rules(language).joiners["and"]


@cache
def interrogatives(language: str = "es") -> frozenset[str]:
    """Return the folded interrogatives of a language."""
    return frozenset(map(fold, question_rules(language).interrogatives))


def asks_one_thing(question: str, language: str = "es") -> bool:
    """Whether a question has an interrogative and one content word at most, as "how long?"."""
    has_interrogative = not interrogatives(language).isdisjoint(word_set(question))
    return has_interrogative and len(content(question, language)) <= 1


def empty_words(language: str = "es") -> frozenset[str]:
    """Return the folded words that do not say what a question is about, besides stop words."""
    return _patterns(language).empty


def refers_back(question: str, language: str = "es") -> bool:
    """Whether a question has a word that refers to something named before."""
    patterns = _patterns(language)
    line = " ".join(fold(question).split())
    # "él" is a pronoun, "el" an article: folding makes them one.
    accented = re.search(r"\bél\b", question.casefold()) is not None
    rest = patterns.not_pronouns.sub(" · ", line)
    return accented or patterns.pronouns.search(rest) is not None


def inner_names(question: str) -> tuple[str, ...]:
    """Return a question's capitalised words, adjacent ones together, without its first word."""
    known = names(question)
    found = []
    for match in _CAPITALISED.finditer(question):
        words = match[0].split()
        while words and fold(words[0]).strip("’'-") not in known:
            words = words[1:]
        if words:
            found.append(" ".join(words))
    return tuple(dict.fromkeys(found))


def period_filter(periods: Sequence[Period]) -> tuple[datetime, datetime]:
    """Return the start of the first and the end of the last of some periods."""
    return min(own.start for own in periods), max(own.end for own in periods)


def _intent(question: str, language: str) -> str:
    if says_nothing(question, language):
        return CLARIFICATION
    line = " ".join(fold(question).split())
    if _patterns(language).opinion.search(line):
        return OPINION
    return classify(question, language).value


def _complexity(question: str, intent: str, files: int, language: str) -> Complexity:
    if decompose(question, language):
        return Complexity.COMPOUND
    words = len(content(question, language))
    if (
        intent == Intent.COMPARATIVE
        or files > 1
        or (intent == Intent.CAUSAL and words > _MANY_WORDS)
    ):
        return Complexity.COMPLEX
    return Complexity.SIMPLE


def _periods(line: str, language: str) -> tuple[Period, ...]:
    patterns = _patterns(language)
    found: dict[int, Period] = {}
    for pattern in patterns.month:
        for match in pattern.finditer(line):
            month = patterns.months.index(match["month"]) + 1
            found[match.start()] = Period(match[0], *_month(int(match["year"]), month))
    for pattern in patterns.year:
        for match in pattern.finditer(line):
            year = int(match["year"])
            period = Period(
                match[0], datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC)
            )
            found.setdefault(match.start(), period)
    return tuple(found[at] for at in sorted(found))


def _month(year: int, month: int) -> tuple[datetime, datetime]:
    later, last = divmod(month, 12)
    return datetime(year, month, 1, tzinfo=UTC), datetime(year + later, last + 1, 1, tzinfo=UTC)


def _people(line: str, found: Sequence[str], language: str) -> tuple[str, ...]:
    rules: list[str] = question_rules(language).reading["people"]

    def is_asked_about(name: str) -> bool:
        folded = re.escape(" ".join(fold(name).split()))
        return any(re.search(rf"\b{own.replace('{name}', folded)}\b", line) for own in rules)

    return tuple(filter(is_asked_about, found))


def _titled(line: str, language: str) -> tuple[Titled, ...]:
    patterns = _patterns(language)
    found: dict[int, Titled] = {}
    for pattern in patterns.titled:
        for match in pattern.finditer(line):
            month = patterns.months.index(match["month"]) + 1
            year = int(match["year"]) if match["year"] else None
            titled = Titled(match[0], match["word"], month, year, match["month"])
            found.setdefault(match.start(), titled)
    return tuple(found[at] for at in sorted(found))


def _phrases(question: str) -> tuple[str, ...]:
    quoted = [next(filter(None, match.groups())) for match in _QUOTED.finditer(question)]
    tokens = [match[0] for match in _TOKEN.finditer(question)]
    figured = [
        " ".join(run)
        for size in range(1, _LONGEST_NAME + 1)
        for start in range(len(tokens) - size + 1)
        if _names_a_file(run := tokens[start : start + size])
    ]
    return tuple(dict.fromkeys((*quoted, *_spaced_names(question), *figured)))[:_MAX_PHRASES]


def _spaced_names(question: str) -> Iterator[str]:
    """Yield each word that looks like the name of a file, with one to six words before it."""
    starts = [match.start() for match in _PRINTED.finditer(question)]
    for match in _FILE.finditer(question):
        before = bisect_left(starts, match.start())
        for start in reversed(starts[max(0, before - _WORDS_BEFORE) : before]):
            yield question[start : match.end()]


def _names_a_file(tokens: Sequence[str]) -> bool:
    """Whether some words may be the name of a file: they have a figure and a letter."""
    text = " ".join(tokens)
    has_both = any(map(str.isdigit, text)) and any(map(str.isalpha, text))
    return has_both if len(tokens) > 1 else "_" in text or (has_both and "-" in text)
