"""Strategies for hostile input: huge, deep, truncated, bit-flipped and spliced."""

import json
import sys
from collections.abc import Sequence
from functools import cache
from typing import Any

from hypothesis import strategies as st

LONGEST = 100_000
"""Characters of the longest texts."""

PIECES = [
    *("[", "{", "(", "«", '"', "'", "<", "]", "}", ")", "[[]", '{"a":', "- ", "? ", ": ", "#"),
    *("&a", "a", "A", "á", "a\u0301", "\u0301", "9", "0", "-", ".", ",", ";", "!", "?", "¿", "…"),
    *("~", "`", " ", "\t", "\n", "\r", "\r\n", "\u00a0", "\u2028", "\x85", "\x1c", "\ufeff"),
    *("\u200b", "\0", "😀", "👩‍👩‍👧", "\U0010ffff", "ﷺ", "İ", "ß", "\ud800", "\udfff", "\ufffd"),
    *("a ", "A ", "a. ", "Sr. ", "! ", "más que ", "que ", "y también ", "mejor, ", "no ", "x-"),
    *("---", "http://", "https://a?", "https://", "\\", "%", "$", "{0}", "{query}", "%s"),
    *(":name", "' OR ", "2024-01-01", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"),
    *("2024-02-30", "1e400", "0xf", "f", "-9223372036854775809", "NaN", "Infinity", "1_000", "٣"),
    *("½",),
]
"""Fragments on which parsers and regular expressions trip."""

_TIMES = [1, 1, 2, 3, 10, 100]
_MANY_TIMES = [900, 950, 980, 1_000, 5_000, LONGEST]


def _repeated(piece: str, times: int) -> str:
    return (piece * times)[:LONGEST]


@cache
def heaps(max_pieces: int = 4) -> st.SearchStrategy[str]:
    """Fragments one after another, now and then one of them until it is very long."""
    some = st.builds(_repeated, st.sampled_from(PIECES), st.sampled_from(_TIMES))
    many = st.builds(_repeated, st.sampled_from(PIECES), st.sampled_from(_MANY_TIMES))
    few = st.lists(some, max_size=max_pieces).map("".join)
    long = st.tuples(few, many, few).map("".join)
    return st.one_of(*[few] * 8, long)


@cache
def any_texts() -> st.SearchStrategy[str]:
    """Any text, lone surrogates and NUL included, or a heap."""
    return st.one_of(st.text(st.characters(), max_size=30), heaps())


@cache
def shallow_values() -> st.SearchStrategy[Any]:
    """Any JSON value of a few levels, with numbers too large."""
    numbers = st.sampled_from([10**400, -(10**400), 2**63, 1e308, float("inf"), float("nan"), -0.0])
    plain = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), numbers)
    return st.recursive(
        st.one_of(plain, any_texts(), st.uuids().map(str)),
        lambda inner: (
            st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
        ),
        max_leaves=5,
    )


def _depths() -> st.SearchStrategy[int]:
    """Mostly no nesting; otherwise up to Python's recursion limit, at any stack depth."""
    deep = st.integers(sys.getrecursionlimit() - 120, sys.getrecursionlimit())
    return st.one_of(st.just(0), st.just(0), st.just(0), st.integers(30, 50), deep)


def _nested(value: Any, depth: int, as_list: bool) -> Any:
    for _ in range(depth):
        value = [value] if as_list else {"a": value}
    return value


def _nested_text(value: Any, depth: int, as_list: bool) -> str:
    opening, closing = ("[", "]") if as_list else ('{"a":', "}")
    return opening * depth + json.dumps(value) + closing * depth


@cache
def json_values() -> st.SearchStrategy[Any]:
    """Any JSON value, with numbers too large and levels too many."""
    return st.builds(_nested, shallow_values(), _depths(), st.booleans())


@cache
def json_texts() -> st.SearchStrategy[str]:
    """Such a value as JSON spells it, on one line."""
    return st.builds(_nested_text, shallow_values(), _depths(), st.booleans())


@st.composite
def mutated(draw: st.DrawFn, valid: Sequence[bytes], fragments: Sequence[bytes] = ()) -> bytes:
    """A valid file, bits of it flipped, pieces cut, doubled or swapped, or line ends mixed."""
    raw = bytearray(draw(st.sampled_from(valid)))
    pieces = st.one_of(
        heaps(2).map(lambda text: text.encode("utf-8", "surrogatepass")),
        st.binary(max_size=8),
        st.sampled_from([b"\xef\xbb\xbf", b"\xff\xfe", b"\0", b"\r", b"\r\n", *fragments, *valid]),
    )
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(raw)))
        end = draw(st.integers(start, min(len(raw), start + 40)))
        match draw(st.sampled_from(["flip", "cut", "drop", "double", "insert", "replace", "ends"])):
            case "flip" if start < len(raw):
                raw[start] ^= 1 << draw(st.integers(0, 7))
            case "cut":
                del raw[start:]
            case "drop":
                del raw[start:end]
            case "double":
                raw[end:end] = raw[start:end]
            case "insert":
                raw[start:start] = draw(pieces)
            case "replace":
                raw[start:end] = draw(pieces)
            case _:
                raw[:] = raw.replace(b"\n", draw(st.sampled_from([b"\r\n", b"\r", b"\n\r", b"\0"])))
    return bytes(raw)
