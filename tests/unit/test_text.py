"""Token estimate, query normal form, digests and shown values."""

import unicodedata

import pytest

from rag_resources.core.text import normalize_query


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
