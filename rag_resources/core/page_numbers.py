"""Page numbers: as they are written at the edges of pages, and as people are told of them."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

_ROMAN_VALUES = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100, "d": 500, "m": 1000}
_ROMAN = re.compile(r"^m{0,3}(?:cm|cd|d?c{0,3})(?:xc|xl|l?x{0,3})(?:ix|iv|v?i{0,3})$")
_NUMBER = r"(\d{1,5}|[ivxlcdm]{1,8})"
_NAME = r"(?:p[áàa]gina|p[áa]gs?\.?|p\.|page|seite)"
_TOTAL = r"(?:\s*(?:de|of|sur|von|/)\s*\d{1,5})?"
_CERTAIN = (
    re.compile(rf"^\W*{_NAME}\s*(?:n\.?º)?\s*{_NUMBER}{_TOTAL}\W*$"),
    re.compile(rf"^\W*{_NUMBER}\s*\W?\s*{_NAME}\W*$"),
    re.compile(r"^\W*(\d{1,5})\s*(?:/|de|of)\s*\d{1,5}\W*$"),
)
_BARE = re.compile(rf"^\W*{_NUMBER}\W*$")


@dataclass(frozen=True, slots=True)
class PageNumber:
    """A page number as written.

    Attributes:
        certain: Whether the line says so, as `Página 3 de 40`; a bare number may be something else.
    """

    value: int
    certain: bool


def page_number(line: str) -> PageNumber | None:
    """Return the page number that a line consists of; None if it has anything else.

    Examples: `12`, `- 12 -`, `xii`, `12 | Página`, `Pág. 12`, `3 / 40`, `Página 3 de 40`.
    """
    text = line.strip().casefold()
    for certain, patterns in ((True, _CERTAIN), (False, (_BARE,))):
        for pattern in patterns:
            found = pattern.match(text)
            value = _value(found[1]) if found else None
            if value is not None:
                return PageNumber(value, certain)
    return None


def _value(number: str) -> int | None:
    """Return the value of an Arabic or Roman number."""
    if number.isdecimal():
        return int(number)
    if not _ROMAN.match(number):
        return None
    values = [_ROMAN_VALUES[letter] for letter in number]
    return sum(
        -value if value < following else value
        for value, following in zip(values, [*values[1:], 0], strict=True)
    )


def numbers_in_words(numbers: Iterable[int]) -> str:
    """Write numbers in order, runs of them by their ends: `1–3, 7`; `–` if there are none."""
    ends: list[list[int]] = []
    for number in sorted(numbers):
        if ends and number == ends[-1][-1] + 1:
            ends[-1][1:] = [number]
        else:
            ends.append([number])
    return ", ".join("–".join(map(str, run)) for run in ends) or "–"
