"""Suggests the known name that a misspelt one probably means."""

from collections.abc import Iterable
from difflib import get_close_matches

_SIMILARITY = 0.7
"""Least share of equal characters, as `difflib` counts them. At .6, its default, `GATE` is close
to `DATE`."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the known name most similar to a misspelt one, in any case; empty if none is close."""
    by_folded = {each.casefold(): each for each in known}
    found = get_close_matches(name.casefold(), by_folded, n=1, cutoff=_SIMILARITY)
    return by_folded[found[0]] if found else ""
