"""Rates the readability of a text by its characters and word shapes, without a dictionary.

Broken font maps give letters in the wrong frequencies, words without vowels, capitals within words,
and characters that no text has. Such text must stay out of search, and good text must not.
"""

import re
import unicodedata
from collections import Counter
from dataclasses import astuple, dataclass
from functools import lru_cache

MIN_LETTERS = 60
"""With fewer letters, their frequencies say less, and count less."""

FULL_PAGE_CHARS = 200
"""A text with fewer characters is rated a little lower: a title, or the remains of a page."""

_LETTERS = re.compile(r"[^\W\d_]+")
_COMMON = frozenset("eaosnrildtcu")
"""The letters that make up some 80 % of Spanish, and of its neighbours, in any text."""

_VOWELS = frozenset("aeiouy")
_PUNCTUATION = frozenset(".,;:!?¡¿'\"()[]{}«»“”‘’-–—/%€$&@#*+=<>|_\\~^`•·…ºª°§©®™№→²³¹½¼")
_UNREADABLE = {"Cc", "Cn", "Co", "Cs"}
_LONG_CONSONANTS = re.compile(r"[bcdfghjklmnñpqrstvwxz]{6}")
_LEADERS = re.compile(r"([._·…-])(?:\s?\1){2,}")
_REPEATED = re.compile(r"(.)\1\1")
_CAPITAL_WITHIN = re.compile(r"[a-zà-ÿ][A-ZÀ-Þ]+[a-zà-ÿ]|^[a-zà-ÿ]+[A-ZÀ-Þ]")
_MANY_SCRIPTS = 3


@dataclass(frozen=True, slots=True)
class TextSigns:
    """The signs that a text is readable; each is in [0, 1], and 1 is good.

    Attributes:
        characters: Few are unknown, private or control characters.
        letters: The letters that are frequent everywhere are frequent here.
        vowels: There are about as many vowels as in any language.
        words: Few words have capitals within, no vowels, or six consonants in a row.
        symbols: Most characters are letters and digits, and the others punctuation; lines of dots
            do not count.
        scripts: Letters are of one or two scripts.
    """

    characters: float
    letters: float
    vowels: float
    words: float
    symbols: float
    scripts: float


def text_quality(text: str) -> float:
    """Return the readability of a text, in [0, 1]; below .3 it should not be searched.

    The worst sign decides. A text that is nearly empty gets up to a quarter less.
    """
    visible = sum(not character.isspace() for character in text)
    if not visible:
        return 0.0
    density = min(1.0, visible / FULL_PAGE_CHARS)
    worst: float = min(astuple(text_signs(text)))
    return round(worst * (0.75 + 0.25 * density), 4)


def text_signs(text: str) -> TextSigns:
    """Return the signs that a text is readable."""
    counts = Counter(_LEADERS.sub("", text))
    visible = {c: n for c, n in counts.items() if not c.isspace()}
    total = sum(visible.values()) or 1
    unreadable = sum(n for c, n in visible.items() if _is_unreadable(c))
    spoken = sum(n for c, n in visible.items() if c.isalnum())
    strange = sum(n for c, n in visible.items() if not (c.isalnum() or c in _PUNCTUATION))
    bare = Counter[str]()
    for character, number in visible.items():
        if character.isalpha():
            bare[_bare(character)] += number
    latin = sum(n for c, n in bare.items() if "a" <= c <= "z")
    common = sum(n for c, n in bare.items() if c in _COMMON)
    vowels = sum(n for c, n in bare.items() if c in _VOWELS)
    trust = min(1.0, latin / MIN_LETTERS)
    return TextSigns(
        characters=_falling(unreadable / total, 0.02, 0.25),
        letters=_trusted(_rising(common / (latin or 1), 0.5, 0.7), trust),
        vowels=_trusted(_vowel_sign(vowels / (latin or 1)), trust),
        words=_trusted(_word_sign(text), trust),
        symbols=min(_falling(strange / total, 0.1, 0.4), _rising(spoken / total, 0.2, 0.45)),
        scripts=_script_sign(visible),
    )


def _is_unreadable(character: str) -> bool:
    return character == "\ufffd" or unicodedata.category(character) in _UNREADABLE


@lru_cache(maxsize=5_000)
def _bare(letter: str) -> str:
    """Return a letter in lower case without its accent."""
    return unicodedata.normalize("NFD", letter.casefold())[:1]


def _rising(value: float, bad: float, good: float) -> float:
    return min(1.0, max(0.0, (value - bad) / (good - bad)))


def _falling(value: float, good: float, bad: float) -> float:
    return 1.0 - _rising(value, good, bad)


def _trusted(sign: float, trust: float) -> float:
    return 1.0 - trust * (1.0 - sign)


def _vowel_sign(share: float) -> float:
    return min(_rising(share, 0.15, 0.28), _falling(share, 0.6, 0.75))


def _word_sign(text: str) -> float:
    """Return how few words have an odd shape; short words say nothing."""
    words = [word for word in _LETTERS.findall(text) if len(word) > 3]
    if not words:
        return 1.0
    return _falling(sum(map(_is_odd, words)) / len(words), 0.15, 0.5)


@lru_cache(maxsize=20_000)
def _is_odd(word: str) -> bool:
    bare = "".join(map(_bare, word))
    if not any("a" <= letter <= "z" for letter in bare):
        return False
    return (
        not word.isupper()
        and (
            not any(letter in _VOWELS for letter in bare)
            or bool(_CAPITAL_WITHIN.search(word))
            or bool(_LONG_CONSONANTS.search(bare))
        )
    ) or bool(_REPEATED.search(bare))


def _script_sign(visible: dict[str, int]) -> float:
    """Return 0 if a text mixes scripts in a way that no real text does."""
    scripts = Counter[str]()
    for character, number in visible.items():
        if character.isalpha():
            scripts[_script(character)] += number
    total = sum(scripts.values())
    used = sum(number > 0.03 * total for number in scripts.values())
    return 0.0 if used >= _MANY_SCRIPTS and total >= MIN_LETTERS else 1.0


@lru_cache(maxsize=20_000)
def _script(letter: str) -> str:
    return unicodedata.name(letter, "UNKNOWN").partition(" ")[0]
