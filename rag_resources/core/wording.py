"""Compares two texts by stems of content words, numbers, names and negations.

Letters with digits after them, as "C1", are one word and no number. This is for short texts,
without a model; search uses PostgreSQL's stemming and BM25. The word lists are in
`languages/*/rules/words.toml`.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from rag_resources.core.rules import word_rules
from rag_resources.core.text import without

_CODE = r"\d+[^\W\d_](?![^\W_])"  # As "448A" or "24h"; it is a number too.
_WORD = re.compile(rf"[^\W\d_][^\W_]*|{_CODE}")
_PART = re.compile(r"\w+")
_NUMBER = re.compile(r"(?<![^\W_])\d+(?:[.,:]\d+)*")
_THOUSANDS = re.compile(r"\d{1,3}(?:\.\d{3})+")
_SENTENCE_END = frozenset('.!?:…»"“”\n')
_FIGURE = re.compile(r"\w")
_DIGIT = re.compile(r"\d")
_OPENING = " ¿¡«\"'“("


@dataclass(frozen=True, slots=True)
class _Words:
    """The words of a language that are not compared, and the values of its number words."""

    silent: frozenset[str]
    negations: frozenset[str]
    numbers: Mapping[str, str]


@cache
def _words(language: str) -> _Words:
    found = word_rules(language)
    units = {word: str(number) for number, word in enumerate(found.numbers.split(), start=2)}
    tens = {word: str(10 * number) for number, word in enumerate(found.tens.split(), start=3)}
    negations = frozenset(found.negations.split())
    return _Words(negations | frozenset(found.stop.split()), negations, units | tens)


def fold(text: str) -> str:
    """Return a text in lower case without accents; an ñ becomes an n."""
    return without(unicodedata.normalize("NFD", text.casefold()), {"Mn"})


def as_written(text: str, folded: str) -> str:
    """Return the words of a text that fold to the given ones, as they stand in it.

    Args:
        text: Any.
        folded: Words of it in small letters without accents, with single spaces.

    Returns:
        The folded words if the text does not have them.
    """
    line = " ".join(text.split())
    if len(fold(line)) != len(line):  # Some character folds to none, or to several.
        return folded
    start = fold(line).find(folded)
    return line[start : start + len(folded)] if start >= 0 else folded


def stem(word: str) -> str:
    """Remove the endings of number and gender from a folded Spanish word.

    Source: Savoy's light stemmer, "Report on CLEF-2001 experiments" (LNCS 2406, 2002); it does not
    stem verbs. A word with digits stays as it is.
    """
    if len(word) < 4 or _DIGIT.search(word):
        return word
    if word.endswith("ces"):
        return f"{word[:-3]}z"
    if word.endswith(("os", "as", "es")):
        return word[:-2]
    return word[:-1] if word.endswith(("o", "a", "e")) else word


def content(text: str, language: str = "es") -> frozenset[str]:
    """Return the content words of a text: its numbers, and the stems of all but stop words.

    Stems are made as in Spanish in any language, to be compared with those of the notes.
    """
    silent = _words(language).silent
    stems = (stem(word) for word in word_set(text) if len(word) > 1 and word not in silent)
    return frozenset((*stems, *numbers(text, language)))


def says_something(text: str, language: str = "es") -> bool:
    """Whether a text has a number or a word that is not one of the language's stop words."""
    return not word_set(text) <= _words(language).silent or bool(numbers(text, language))


@cache
def _snowball() -> Any:
    import snowballstemmer  # Only answers need it.

    return snowballstemmer.stemmer("spanish")


@lru_cache(maxsize=50_000)
def _stemmed(word: str) -> str:
    found: str = _snowball().stemWord(word)
    return found


def stems(text: str, language: str = "es") -> frozenset[str]:
    """Return Snowball's stems of the folded words of a text, and its figures, without stop words.

    Stems are made as in Spanish in any language, to be compared with those of the notes.
    """
    silent = _words(language).silent
    words = (word for word in _PART.findall(fold(text)) if word not in silent)
    return frozenset(_stemmed(word) for word in words if len(word) > 1 or word.isdigit())


def numbers(text: str, language: str = "es") -> frozenset[str]:
    """Return the numbers of a text, in digits or in words from two to twenty and whole tens.

    They are normalised: "1.780", "1780" and "1780,0" are equal. A date or time gives its parts.
    """
    digits = (part for match in _NUMBER.findall(text) for part in _parts(match))
    values = _words(language).numbers
    words = (values[word] for word in word_set(text) & values.keys())
    return frozenset((*digits, *words))


def names(text: str) -> frozenset[str]:
    """Return the folded capitalised words, except those capitalised as the start of a sentence.

    Letters with digits after them, as "C1", are a name wherever they stand and however written.
    """
    found = set()
    end = 0
    for match in _WORD.finditer(text):
        # Only the text since the previous word is searched, or the time would be quadratic.
        between, follows = text[end : match.start()], end > 0
        marks = _FIGURE.split(between)[-1]
        opens = not (follows or between.strip(_OPENING)) or not _SENTENCE_END.isdisjoint(marks)
        word = match.group()
        if (word[0].isalpha() and _DIGIT.search(word)) or (word[0].isupper() and not opens):
            found.add(fold(word))
        end = match.end()
    return frozenset(found)


def word_set(text: str) -> frozenset[str]:
    """Return the folded words of a text."""
    return frozenset(_WORD.findall(fold(text)))


def is_negated(text: str) -> bool:
    """Whether a text contains a negation."""
    return not _words("es").negations.isdisjoint(word_set(text))


def share(wanted: Iterable[str], found: frozenset[str]) -> float:
    """Return the share of the wanted words that were found, in [0, 1]; 0 if none are wanted."""
    distinct = frozenset(wanted)
    return len(distinct & found) / len(distinct) if distinct else 0.0


def _parts(number: str) -> list[str]:
    if _THOUSANDS.fullmatch(number):
        return [number.replace(".", "")]
    if re.fullmatch(r"\d+[.,]\d+", number):
        whole, decimals = re.split("[.,]", number)
        whole, decimals = whole.lstrip("0") or "0", decimals.rstrip("0")
        return [f"{whole}.{decimals}" if decimals else whole]
    return [part.lstrip("0") or "0" for part in re.split("[.,:]", number)]
