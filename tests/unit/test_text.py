"""Token estimate, query normal form, digests and shown values."""

import hashlib
import unicodedata
from datetime import date

import pytest

from rag_resources.core.quoting import shown
from rag_resources.core.text import content_sha256, count_tokens, is_blank, normalize_query


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("😀" * 8, 2), ("x" * 9, 3)]
)
def test_a_token_is_four_characters_rounded_up(text: str, tokens: int) -> None:
    assert count_tokens(text) == tokens


@pytest.mark.parametrize(
    "same",
    [
        "¿Qué  comió la niña?",
        "  ¿QUÉ COMIÓ\r\nLA\tNIÑA?\n",
        unicodedata.normalize("NFD", "¿Qué comió la niña?"),
        "¿qué\u00a0comió\u2003la niña?",
    ],
)
def test_case_composition_and_white_space_make_no_other_question(same: str) -> None:
    assert normalize_query(same) == "¿qué comió la niña?"


@pytest.mark.parametrize(
    "other", ["¿Que comió la niña?", "¿Qué comió la nina?", "Qué comió la niña"]
)
def test_accents_and_marks_make_another_question(other: str) -> None:
    assert normalize_query(other) != normalize_query("¿Qué comió la niña?")


def test_the_digest_is_that_of_the_utf8_bytes() -> None:
    assert content_sha256("niña") == hashlib.sha256(b"ni\xc3\xb1a").digest()


@pytest.mark.parametrize(("text", "blank"), [("", True), (" \n\u3000", True), (" .", False)])
def test_blank_is_nothing_but_white_space(text: str, blank: bool) -> None:
    assert is_blank(text) is blank


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("x" * 80, "x" * 80),
        ("x" * 81, "x" * 79 + "…"),
        (" una\r\n  línea\t y\0media ", "una línea y media"),
        ("\ud800", "\\ud800"),
        (date(2024, 5, 1), "2024-05-01"),
        ([1] * 11, "[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, ...]"),
        pytest.param(10**5_000, "…", id="a number of 5,001 digits"),
        (None, "null"),
    ],
)
def test_a_value_is_shown_on_one_line_of_eighty_characters(value: object, expected: str) -> None:
    assert shown(value) == expected
