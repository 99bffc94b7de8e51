"""What a question says of itself: the periods, files and names in it, and whether it goes on.

It uses rules, without a model and without look-ups: `answers.reading` finds out whether a file or a
name exists. The words are in `languages/*/rules/questions.toml`.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from enum import StrEnum
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from rag_resources.core.filters import RetrievalFilters
from rag_resources.core.periods import MADRID, Period, periods
from rag_resources.core.rules import question_rules
from rag_resources.core.wording import content, fold, names, word_set
from rag_resources.languages.messages import _

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


@dataclass(frozen=True, slots=True)
class QuestionSigns:
    """What a question names.

    Attributes:
        periods: The periods, in order.
        file_names: Words that look like the name of a file, such as "plan.pdf".
        phrases: Other possible names of files: such a word with the words before it, since names
            may have spaces; quoted text; or words with a figure.
        names: Capitalised words inside the question, adjacent ones together.
    """

    periods: tuple[Period, ...] = ()
    file_names: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


class ImpliedKind(StrEnum):
    """Why a condition is implied."""

    PERIOD = "period"
    FILE = "file"
    NAME = "name"
    """A value of documents' metadata, such as an author."""


@dataclass(frozen=True, slots=True)
class Implied:
    """A condition that a question implies.

    Attributes:
        text: The condition as the question names it; passing it in `ignored` revokes it.
        shown: Its meaning for people: a name, a period.
        filters: The condition.
    """

    kind: ImpliedKind
    text: str
    shown: str
    filters: RetrievalFilters

    def is_named_in(self, text: str, language: str, written_at: datetime) -> bool:
        """Whether a text names a time within the period, as of when and where it was written."""
        first, last = self.filters.created_from, self.filters.created_until
        named = periods(" ".join(fold(text).split()), language, written_at.date())
        closed = [(own.start, own.end) for own in named if own.start and own.end]
        return any(
            (not last or start < last) and (not first or first < end) for start, end in closed
        )

    def to_json(self) -> dict[str, str]:
        """Return the camelCase form."""
        return {"kind": self.kind.value, "text": self.text, "value": self.shown}


@dataclass(frozen=True, slots=True)
class Reading:
    """A question as it is searched.

    Attributes:
        question: As it was asked.
        searched: The text that is searched.
        filters: The caller's conditions with the implied ones.
        implied: The conditions that the question names; not those that were revoked.
        files: The notes of each file that it names, if it names several; each is searched.
        focus: The text by whose words sentences are chosen: of a question that goes on from another
            its own, if it has any.
        notes: Messages about it for people.
        unmet: A period that no note is of. Everything was searched, and only what names the period
            itself answers.
    """

    question: str
    searched: str
    filters: RetrievalFilters | None = None
    implied: tuple[Implied, ...] = ()
    files: tuple[tuple[UUID, ...], ...] = ()
    notes: tuple[str, ...] = ()
    focus: str = ""
    unmet: Implied | None = None

    @property
    def period(self) -> Implied | None:
        """The period that it names, also if no note is of it."""
        named = (own for own in self.implied if own.kind is ImpliedKind.PERIOD)
        return self.unmet or next(named, None)

    def without_implied(self, filters: RetrievalFilters | None, note: str) -> "Reading":
        """Return it with the caller's conditions only, and a note that says why."""
        notes = (*self.notes, note)
        return replace(self, filters=filters, implied=(), files=(), notes=notes, unmet=self.period)

    def reworded(self, render: Callable[[str], str]) -> "Reading":
        """Return it with its messages rendered, for instance in another language."""
        return replace(self, notes=tuple(map(render, self.notes)))

    @property
    def told(self) -> tuple[str, ...]:
        """The messages for people: what was searched instead, under which conditions, and notes."""
        searched = _("Searched: “{searched}”").format(searched=self.searched)
        return (
            *((searched,) if self.searched != self.question else ()),
            *(
                _("Only {value} (because of “{text}”)").format(value=own.shown, text=own.text)
                for own in self.implied
            ),
            *self.notes,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the camelCase form."""
        return {
            "searched": self.searched,
            "implied": [own.to_json() for own in self.implied],
            "notes": list(self.notes),
        }


def read_question(
    question: str, language: str, today: date, zone: ZoneInfo = MADRID
) -> QuestionSigns:
    """Return what a question names, by the rules of its language, on a day in a time zone."""
    return QuestionSigns(
        periods(_FILE.sub(" ", " ".join(fold(question).split())), language, today, zone),
        tuple(dict.fromkeys(match[0] for match in _FILE.finditer(question))),
        _phrases(question),
        _inner_names(question),
    )


def goes_on(question: str, language: str = "es") -> bool:
    """Whether a question goes on from one before: it begins with "and", or has one content word."""
    first, *_ = [*re.findall(r"\w+", fold(question)), ""]
    is_joined = first in question_rules(language).joiners["and"]
    return is_joined or len(content(question, language)) <= 1


def invents_nothing(question: str, turns: Sequence[str]) -> bool:
    """Whether all names and figures of a rewritten question are in some of the turns.

    Args:
        question: As a language model wrote it.
        turns: The questions it was made from: the earlier ones, and the last one.
    """
    said = "\n".join(turns)
    figures = set(re.findall(r"\d+", question)) <= set(re.findall(r"\d+", said))
    return figures and names(question) <= word_set(said)


def _inner_names(question: str) -> tuple[str, ...]:
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
