"""Completes a question that only names another subject, as in "and that of Ana?".

Each of its phrases takes the place of its counterpart in the question before: what follows the same
preposition, or else an article, or a name. The words are in `languages/*/rules/questions.toml`,
under `reading`.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from rag_resources.core.question_reading import (
    begins_with_and,
    inner_names,
    interrogatives,
    says_nothing,
)
from rag_resources.core.rules import question_rules
from rag_resources.core.wording import content, fold

MAX_CONTENT_WORDS = 4
"""Most content words of a question that only names another subject."""

_WORD = re.compile(r"[\w’'\-]+")
_YEAR = r"(?:19|20)\d\d"
_FINAL_YEAR = re.compile(rf"(?:\s+\w+)?\s+{_YEAR}$")
_FIGURES = re.compile(r"\d")
_BREAK = re.compile(r"[^\s\w’'\-]")
_OF = 0
"""The place of "of" among the prepositions. It goes on with a phrase: "the invoice of March"."""


class _Kind(StrEnum):
    """What a phrase names; one takes the place of another of its kind."""

    TIME = "time"
    NAME = "name"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class _Phrase:
    """Some words of a question.

    Attributes:
        link: The place of the preposition before it among those of the rules; None without one.
        start: Where it begins in the question, with its preposition.
        inner: Where it begins without it.
        end: Exclusive.
    """

    link: int | None
    start: int
    inner: int
    end: int
    kind: _Kind


@dataclass(frozen=True, slots=True)
class Completed:
    """The question that was meant.

    Attributes:
        text: The question before with the other subject; None if nothing in it can be replaced.
        kept: What is left of that question.
    """

    text: str | None
    kept: str


def completed(question: str, turn: str, language: str = "es") -> Completed | None:
    """Return the question before with the subject that this one names instead of its own.

    Args:
        question: As it was asked.
        turn: The question before, as it was searched.
        language: Of both.

    Returns:
        None if the question says more than another subject.
    """
    question, turn = (unicodedata.normalize("NFC", text) for text in (question, turn))
    subject = _subject(question, language)
    if not subject:
        return None
    left = [*_phrases(turn, language)]
    pairs: list[tuple[_Phrase, _Phrase]] = []
    for named in subject:
        replaced = _counterpart(named, left)
        if replaced is None:
            return Completed(None, turn)
        pairs.append((replaced, named))
        left = [own for own in left if own.end <= replaced.start or own.start >= replaced.end]
    text = kept = turn
    for replaced, named in sorted(pairs, key=lambda pair: -pair[0].start):
        is_same = replaced.link == named.link
        start, own_start = (
            (replaced.start, named.start) if is_same else (replaced.inner, named.inner)
        )
        new = question[own_start : named.end]
        end = replaced.end - len(_year_kept(turn[start : replaced.end], new, language))
        text = f"{text[:start]}{new}{text[end:]}"
        kept = f"{kept[:start]}{kept[end:]}"
    return Completed(text, kept)


def _year_kept(old: str, new: str, language: str) -> str:
    """Return the year that is left of a period which a month without one replaces; empty otherwise.

    "and in November?" after "in October 2026", or after "in 2026", asks about November 2026.
    """
    found = _FINAL_YEAR.search(old)
    if not found or _FIGURES.search(new) or _kind(new, (), language) is not _Kind.TIME:
        return ""
    before = old[: found.start()]
    is_year = _link(before, language) is not None and len(found[0].split()) == 1
    return found[0] if is_year or _kind(before, (), language) is _Kind.TIME else ""


def _subject(question: str, language: str) -> list[_Phrase]:
    """Return the phrases of a question that only names a subject; none if it does more."""
    words = [*_WORD.finditer(question)]
    is_short = 0 < len(content(question, language)) <= MAX_CONTENT_WORDS
    if len(words) < 2 or not (begins_with_and(question, language) and is_short):
        return []
    if any(fold(word[0]) in interrogatives(language) for word in words):
        return []
    if _BREAK.search(question[words[0].start() : words[-1].end()]):
        return []
    found: list[_Phrase] = []
    for own in _phrases(question, language):
        if not found or own.start >= found[-1].end:
            found.append(own)
    start = found[0].start if found else None
    # Only articles may stand before it, as "that" in "and that of Ana".
    before = [word[0] for word in words[1:] if start is None or word.start() < start]
    return found if all(_is_article(word, language) for word in before) else []


def _counterpart(named: _Phrase, phrases: Sequence[_Phrase]) -> _Phrase | None:
    """Return the phrase that stands where the named one would; None if there is none."""
    same = [own for own in phrases if own.link == named.link]
    alike = [own for own in same if own.kind is named.kind]
    if alike:
        # Without a preposition a name is the subject, which comes first.
        return alike[0] if (named.kind, named.link) == (_Kind.NAME, None) else alike[-1]
    if named.kind is _Kind.TIME:
        return None
    called = [own for own in phrases if own.kind is _Kind.NAME]
    if named.kind is _Kind.NAME and len(called) == 1:
        return called[0]
    if named.kind is _Kind.OTHER and named.link is None:
        return None  # "And the failure?" after "What did Marta say?" may ask what she said of it.
    others = [own for own in same if own.kind is not _Kind.TIME]
    return others[-1] if others else None


def _phrases(question: str, language: str) -> Iterator[_Phrase]:
    """Yield what follows each preposition, and each article or name without one."""
    words = [*_WORD.finditer(question)]
    links = [_link(word[0], language) for word in words]
    known = inner_names(question)
    end_of_name = 0
    for at, word in enumerate(words):
        if word.start() < end_of_name:
            continue
        name = next((own for own in known if question.startswith(own, word.start())), "")
        if links[at] is None:
            after_link = at > 0 and links[at - 1] is not None
            # In "and that of Ana" the article stands for the noun of the question before.
            before_link = at + 1 < len(words) and links[at + 1] is not None
            begins = name or (_is_article(word[0], language) and not before_link)
            if after_link or not begins:
                continue
        first = at if links[at] is None else at + 1
        last = _last(words, links, first, question, language)
        if last < first:
            continue
        inner, end = words[first].start(), words[last].end()
        inside = [own for own in known if own in question[inner:end]]
        if inside:  # What follows the name belongs to the rest of the question.
            end = question.index(inside[0], inner) + len(inside[0])
            end_of_name = end if name else end_of_name
        if not says_nothing(question[inner:end], language):
            yield _Phrase(
                links[at], word.start(), inner, end, _kind(question[inner:end], inside, language)
            )


def _last(
    words: Sequence[re.Match[str]],
    links: Sequence[int | None],
    first: int,
    question: str,
    language: str,
) -> int:
    """Return the place of the last word of the phrase whose first word is given."""
    for at in range(first, len(words)):
        between = question[words[at - 1].end() : words[at].start()] if at else ""
        follows = at > first and links[at - 1] is None
        if (
            _BREAK.search(between)
            or fold(words[at][0]) in interrogatives(language)
            or links[at] not in {None, _OF}
        ):
            return at - 1
        if follows and at > first + 1 and _is_article(words[at][0], language):
            return at - 2  # Before another noun stands a verb: "kilos of flour buys the shop".
    return len(words) - 1


def _kind(text: str, known: Sequence[str], language: str) -> _Kind:
    months = question_rules(language).reading["months"]
    words = [fold(word) for word in _WORD.findall(text)]
    if any(word in months or re.fullmatch(_YEAR, word) for word in words):
        return _Kind.TIME
    return _Kind.NAME if known else _Kind.OTHER


def _link(word: str, language: str) -> int | None:
    """Return which preposition a word is; None if it is none."""
    folded = fold(word)
    found = enumerate(_prepositions(language))
    return next((place for place, pattern in found if pattern.fullmatch(folded)), None)


def _is_article(word: str, language: str) -> bool:
    return _articles(language).fullmatch(fold(word)) is not None


@cache
def _prepositions(language: str) -> tuple[re.Pattern[str], ...]:
    return tuple(map(re.compile, question_rules(language).reading["prepositions"]))


@cache
def _articles(language: str) -> re.Pattern[str]:
    return re.compile("|".join(question_rules(language).reading["articles"]))
