"""Which known name somebody probably meant."""

from collections.abc import Iterable
from difflib import get_close_matches

_SIMILARITY = 0.7
"""Least share of equal characters, as `difflib` counts them. At .6, its default, `GATE` is close
to `DATE`."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the known name most like a misspelt one, whatever its case; empty if none is."""
    by_folded = {each.casefold(): each for each in known}
    found = get_close_matches(name.casefold(), by_folded, n=1, cutoff=_SIMILARITY)
    return by_folded[found[0]] if found else ""
