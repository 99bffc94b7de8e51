"""What the turns before carry over to a question that cannot stand alone, by rules.

A language model may rewrite it instead (`answers.reading`); what it writes is checked here.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rag_resources.core.question_reading import (
    asks_of_a_time_only,
    empty_words,
    inner_names,
    read_question,
    refers_back,
    says_nothing,
)
from rag_resources.core.rules import word_rules
from rag_resources.core.wording import content, fold, names, stem, word_set

MAX_TURNS = 5
"""Further turns back nothing is looked for."""


@dataclass(frozen=True, slots=True)
class Carried:
    """What is searched for a question of a conversation.

    Attributes:
        searched: The question, with what is carried over.
        words: What is carried over: names, dates and, if the question says nothing of what it is
            about, the words of the question before; empty if it stands alone.
    """

    searched: str
    words: tuple[str, ...] = ()


def carry_over(question: str, turns: Sequence[str], language: str = "es") -> Carried:
    """Return what to search for a question.

    The last turn that names something gives its names and dates, if the question has a pronoun or
    no content word. A question without a content word also gets those of that turn.

    Args:
        question: As it was asked.
        turns: The questions before, as they were searched, oldest first.
        language: Of all of them.
    """
    is_empty = says_nothing(question, language) or asks_of_a_time_only(question, language)
    if not is_empty and not refers_back(question, language):
        return Carried(question)
    for turn in reversed(turns[-MAX_TURNS:]):
        if not (is_empty or _names_something(turn, language)):
            continue
        words = _carried(question, turn, language, is_empty=is_empty)
        if words or not is_empty:
            return Carried(f"{question.rstrip()} ({' '.join(words)})" if words else question, words)
    return Carried(question)


def invents_nothing(question: str, turns: Sequence[str]) -> bool:
    """Whether the names and figures of a rewritten question stand in some of the turns.

    Args:
        question: As a language model wrote it.
        turns: What it was made from: the questions before, and the last one.
    """
    said = "\n".join(turns)
    return names(question) <= word_set(said) and _figures(question) <= _figures(said)


def _figures(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\d+", text))


def _names_something(turn: str, language: str) -> bool:
    signs = read_question(turn, language)
    return bool(signs.file_names or signs.names or signs.titled or signs.periods)


def _carried(question: str, turn: str, language: str, *, is_empty: bool) -> tuple[str, ...]:
    own, own_words = read_question(question, language), word_set(question)
    before = read_question(turn, language)
    kept = [*before.file_names, *(name for name in inner_names(turn) if not _said(name, own_words))]
    if not own.periods and not own.titled:
        kept += [titled.text for titled in before.titled]
        kept += [period.text for period in before.periods]
    if is_empty:
        times = [*(own.text for own in before.titled), *(own.text for own in before.periods)]
        said = own_words.union(re.findall(r"\w+", fold(" ".join((*kept, *times)))))
        kept += [word for word in _content_words(turn, language) if fold(word) not in said]
    return tuple(dict.fromkeys(kept))


def _said(name: str, words: frozenset[str]) -> bool:
    return word_set(name) <= words


def _content_words(turn: str, language: str) -> list[str]:
    """Return the words of a turn that say what it is about, as they stand there."""
    stems = content(turn, language)
    silent = frozenset(word_rules(language).stop.split()) | empty_words(language)
    tokens = [token.strip('¿?¡!.,;:()«»"“”') for token in turn.split()]
    return [
        token
        for token in tokens
        if token and fold(token) not in silent and stem(fold(token)) in stems
    ]
