"""Finds the entities in notes by rules: names, tags and dates.

The words are in `languages/es/rules/graph.toml`; causal statements are found in `core.causal`.
Reading and writing rows belongs in `store.graph`.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from uuid import UUID, uuid5

from rag_resources.core.rules import rules
from rag_resources.core.text import Span

MAX_NAME_CHARS = 100
"""A longer span of capitalised words is not a name but a title."""

_MAX_NAME_WORDS = 6
_ENTITIES = UUID("6f1d8c1e-6d1c-5b3e-9a44-3a3f1f2f8a10")
_RULES = rules().graph
_NEVER = frozenset((*_RULES.never.split(), *rules().words.stop.split()))
_ARTICLES = frozenset(_RULES.articles)
_PARTICLES = frozenset(_RULES.particles)
_LETTERED = frozenset(_RULES.lettered)
_TITLES = frozenset(_RULES.titles)


class EntityKind(StrEnum):
    """The kind of an entity. An event is one side of a causal statement."""

    NAME = "name"
    TAG = "tag"
    DATE = "date"
    EVENT = "event"


@dataclass(frozen=True, slots=True)
class Mention:
    """A place in a chunk where an entity is named.

    Attributes:
        kind: The entity's kind.
        key: Its folded name, by which mentions of one entity are recognised.
        name: As it is written there.
        span: In the content of the chunk. Empty at 0 for a tag, which belongs to the whole note.
    """

    kind: EntityKind
    key: str
    name: str
    span: Span


def entity_id(tenant: str, kind: EntityKind, key: str, note_id: UUID | None = None) -> UUID:
    """Return the id of an entity; equal names of one tenant have the same id.

    Args:
        tenant: The tenant whose notes name it.
        kind: The entity's kind.
        key: See `Mention`.
        note_id: The note of an event, because an event belongs to its note; else None.
    """
    return uuid5(_ENTITIES, "\0".join((tenant, kind, str(note_id or ""), key)))


def fold(text: str) -> str:
    """Return a name in lower case, without accents, with single spaces."""
    letters = (
        character
        for character in unicodedata.normalize("NFD", text)
        if unicodedata.category(character) not in {"Mn", "Cf"}
    )
    return " ".join("".join(letters).casefold().replace("’", "'").split())


def find_mentions(title: str, contents: Sequence[str], tags: Sequence[str]) -> list[list[Mention]]:
    """Find the mentions in the chunks of a note.

    A capitalised word that opens a sentence is part of a name only if the note also has it
    capitalised inside a sentence.

    Args:
        title: The note's title.
        contents: The contents of its chunks.
        tags: The note's tags.

    Returns:
        For each chunk its mentions, in order, no two at one place.
    """
    texts = [_scan(text) for text in (title, *contents)]
    inside = {word.folded for words in texts for word in words if word.is_name and not word.opens}
    tagged = [
        Mention(EntityKind.TAG, key, tag[:MAX_NAME_CHARS], Span(0, 0))
        for tag in dict.fromkeys(tags)
        if (key := fold(tag.replace("-", " "))[:MAX_NAME_CHARS])
    ]
    found = []
    for content, words in zip(contents, texts[1:], strict=True):
        dates = list(_dates(content))
        names = [
            mention
            for mention in _names(content, words, inside)
            if not any(mention.span.overlaps(date.span) for date in dates)
        ]
        by_place = sorted([*names, *dates], key=lambda mention: mention.span.start)
        found.append([*_distinct(tagged), *by_place])
    return found


def question_names(question: str) -> list[str]:
    """Return the keys that names in a question may have: its words, alone and next to each other.

    People leave out capitals in questions, so every run of up to three words counts.
    """
    words = [fold(match[0]) for match in _WORD.finditer(question)]
    runs = (
        words[start : start + length]
        for length in (3, 2, 1)
        for start in range(len(words) - length + 1)
    )
    return list(
        dict.fromkeys(
            " ".join(run) for run in runs if len("".join(run)) > 2 and not _NEVER.issuperset(run)
        )
    )


# --- Names ------------------------------------------------------------------------------------

_ROMAN = re.compile(r"[IVXLCDM]+")
_WORD = re.compile(r"[^\W\d_]+(?:['’·-][^\W\d_]+|\d+)*")
# What precedes the first word of a sentence, a list entry, a quotation or a cell.
_OPENERS = frozenset(".:;?!…«“\"'‘([¿¡—–-*_|>#•·✅\n\r") | {""}


@dataclass(frozen=True, slots=True)
class _Word:
    """A word of a text.

    Attributes:
        opens: Whether it begins a sentence, or a text that may be one.
        is_name: Whether it is capitalised, and not only because of its kind.
    """

    text: str
    folded: str
    span: Span
    opens: bool
    is_name: bool


def _scan(text: str) -> list[_Word]:
    matches = list(_WORD.finditer(text))
    shouted = [False, *(match[0].isupper() for match in matches), False]
    words: list[_Word] = []
    for position, match in enumerate(matches, start=1):
        word = match[0]
        # Most words are in lower case and need no further tests.
        folded = fold(word) if word[0].isupper() else word
        before = text[words[-1].span.end if words else 0 : match.start()]
        opens = _opens(before, words[-1] if words else None)
        in_capitals = shouted[position] and (shouted[position - 1] or shouted[position + 1])
        is_name = (
            _is_capitalised(word)
            and not in_capitals
            and folded not in _TITLES
            and (folded not in _NEVER or (folded in _ARTICLES and not opens))
        )
        words.append(_Word(word, folded, Span(*match.span()), opens, is_name))
    return words


def _opens(before: str, previous: _Word | None) -> bool:
    if previous is None:
        return True
    marks = before.strip(" \t\u00a0")
    if marks == "." and fold(previous.text) in _TITLES:
        return False
    return bool(marks) and (marks[-1] in _OPENERS or "\n" in before)


def _is_capitalised(word: str) -> bool:
    if not word[0].isupper() or len(word) < 2:
        return False
    letters = [character for character in word if character.isalpha()]
    is_shouted = all(map(str.isupper, letters))
    return not is_shouted or 2 <= len(letters) <= 6


def _names(content: str, words: Sequence[_Word], inside: set[str]) -> Iterator[Mention]:
    """Yield the runs of capitalised words, with the particles and initials between them."""
    run: list[_Word] = []
    for position, word in enumerate(words):
        if not _continues(content, run, words[position:], inside):
            yield from _name(content, run)
            run = []
        if run or _counts(word, inside):
            run.append(word)
    yield from _name(content, run)


def _continues(content: str, run: Sequence[_Word], rest: Sequence[_Word], inside: set[str]) -> bool:
    """Whether the next word belongs to the name that the words of a run have begun."""
    if not run:
        return False
    word, between = rest[0], content[run[-1].span.end : rest[0].span.start]
    if _is_initial(content, run[-1]):
        # The full stop of an initial makes the next word look like the start of a sentence.
        return between in {". ", ".\u00a0"} and (word.is_name or _is_initial(content, word))
    if between not in {" ", "\u00a0"}:
        return False
    if _is_initial(content, word):
        return run[-1].folded not in _LETTERED | _PARTICLES and _ends_in_name(content, rest)
    if word.folded in _PARTICLES and word.text.islower():
        return _goes_on(content, rest, inside)
    return _counts(word, inside)


def _is_initial(content: str, word: _Word) -> bool:
    end = word.span.end
    return word.span.length == 1 and word.text.isupper() and content[end : end + 1] == "."


def _ends_in_name(content: str, words: Sequence[_Word]) -> bool:
    """Whether initials lead to a capitalised word."""
    for word, following in pairwise(words[:4]):
        if content[word.span.end : following.span.start] not in {". ", ".\u00a0"}:
            return False
        if not _is_initial(content, following):
            return following.is_name
    return False


def _counts(word: _Word, inside: set[str]) -> bool:
    return word.is_name and (not word.opens or word.folded in inside)


def _goes_on(content: str, rest: Sequence[_Word], inside: set[str]) -> bool:
    """Whether particles lead to another capitalised word."""
    for word, following in pairwise(rest[:4]):
        if content[word.span.end : following.span.start] not in {" ", "\u00a0"}:
            return False
        if _counts(following, inside):
            return True
        if following.folded not in _PARTICLES:
            return False
    return False


def _name(content: str, run: Sequence[_Word]) -> Iterator[Mention]:
    while run and run[-1].folded in _ARTICLES:
        run = run[:-1]
    if not run or (len(run) == 1 and _ROMAN.fullmatch(run[0].text)):
        return
    span = Span(run[0].span.start, run[-1].span.end)
    name = content[span.start : span.end]
    if len(run) <= _MAX_NAME_WORDS and span.length <= MAX_NAME_CHARS:
        yield Mention(EntityKind.NAME, fold(name), name, span)


# --- Dates ------------------------------------------------------------------------------------

_MONTHS = {name: number for number, name in enumerate(_RULES.months, start=1)}
_ISO = re.compile(r"(?<![\d-])(?P<year>(?:19|20)\d\d)-(?P<month>\d\d)(?:-(?P<day>\d\d))?(?![\d-])")
_WRITTEN = re.compile(
    rf"(?<!\w)(?:(?P<day>\d{{1,2}}) de )?(?P<name>{'|'.join(_MONTHS)})"
    r"(?: del? (?P<year>(?:19|20)\d\d))?(?!\w)",
    re.IGNORECASE,
)
_SLASHED = re.compile(
    r"(?<![\d/])(?P<day>\d{1,2})/(?P<month>\d{1,2})/(?P<year>(?:19|20)\d\d)(?![\d/])"
)


def _dates(content: str) -> Iterator[Mention]:
    """Yield the dates with at least two of day, month and year; key as in ISO 8601."""
    for pattern in (_ISO, _WRITTEN, _SLASHED):
        for match in pattern.finditer(content):
            parts = match.groupdict()
            month = int(parts.get("month") or _MONTHS[parts["name"].lower()])
            day, year = parts.get("day"), parts.get("year")
            if not (day or year) or not 1 <= month <= 12 or not 1 <= int(day or 1) <= 31:
                continue
            key = f"{year or '-'}-{month:02d}" + (f"-{int(day):02d}" if day else "")
            yield Mention(EntityKind.DATE, key, match[0], Span(*match.span()))


def _distinct(mentions: Sequence[Mention]) -> list[Mention]:
    return list({mention.key: mention for mention in mentions}.values())
