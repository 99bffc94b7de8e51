"""Completes a question that cannot stand alone from the earlier turns of a conversation, by rules.

A language model may rewrite the question instead (`answers.reading`); its text is checked here.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rag_resources.core.ellipsis import completed
from rag_resources.core.question_reading import (
    asks_one_thing,
    begins_with_and,
    empty_words,
    inner_names,
    read_question,
    refers_back,
    says_nothing,
)
from rag_resources.core.rules import word_rules
from rag_resources.core.wording import content, fold, names, stem, word_set

MAX_TURNS = 5
"""Most earlier turns that are used."""


@dataclass(frozen=True, slots=True)
class Carried:
    """A question of a conversation as it is searched.

    Attributes:
        searched: The question, with the words carried over; or the earlier one, with its subject.
        words: The words carried over: names, dates, and content words of the earlier question;
            empty if it stands alone.
    """

    searched: str
    words: tuple[str, ...] = ()


def carry_over(question: str, turns: Sequence[str], language: str = "es") -> Carried:
    """Return the text to search for a question.

    A question that only names another subject ("and that of Ana?") is the last turn with that
    subject; see `core.ellipsis`. One that has a pronoun or no content word, or begins with "and"
    and names nothing, gets the names and dates of the last turn that names any. A question without
    a content word, or with a single one after "and", also gets the content words of that turn.

    Args:
        question: As it was asked.
        turns: The earlier questions, as they were searched, oldest first.
        language: The language of all of them.
    """
    if turns and (meant := completed(question, turns[-1], language)):
        words = _carried(question, meant.kept, language, is_empty=True)
        return Carried(meant.text, words) if meant.text else _with(question, words)
    refers = refers_back(question, language)
    goes_on = begins_with_and(question, language) and not _names_a_subject(question, language)
    is_empty = says_nothing(question, language) or (
        goes_on and not refers and asks_one_thing(question, language)
    )
    if not (is_empty or goes_on or refers):
        return Carried(question)
    for turn in reversed(turns[-MAX_TURNS:]):
        if not (is_empty or _names_something(turn, language)):
            continue
        words = _carried(question, turn, language, is_empty=is_empty)
        if words or not is_empty:
            return _with(question, words)
    return Carried(question)


def _with(question: str, words: tuple[str, ...]) -> Carried:
    return Carried(f"{question.rstrip()} ({' '.join(words)})" if words else question, words)


def invents_nothing(question: str, turns: Sequence[str]) -> bool:
    """Whether all names and figures of a rewritten question are in some of the turns.

    Args:
        question: As a language model wrote it.
        turns: The questions it was made from: the earlier ones, and the last one.
    """
    said = "\n".join(turns)
    return names(question) <= word_set(said) and _figures(question) <= _figures(said)


def _figures(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\d+", text))


def _names_something(turn: str, language: str) -> bool:
    return _names_a_subject(turn, language) or bool(read_question(turn, language).periods)


def _names_a_subject(question: str, language: str) -> bool:
    signs = read_question(question, language)
    return bool(signs.file_names or signs.names or signs.titled)


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
    """Return the content words of a turn, as they are written there."""
    stems = content(turn, language)
    silent = frozenset(word_rules(language).stop.split()) | empty_words(language)
    tokens = [token.strip('¿?¡!.,;:()«»"“”') for token in turn.split()]
    return [
        token
        for token in tokens
        if token and fold(token) not in silent and stem(fold(token)) in stems
    ]
