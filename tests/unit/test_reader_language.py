"""Which language a browser's `Accept-Language` gets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_resources.api.language import preferred_language
from rag_resources.languages.files import LANGUAGES


@pytest.mark.parametrize(
    ("header", "language"),
    [
        ("", "es"),
        ("fr", "fr"),
        ("en-GB,en;q=0.9", "en"),
        ("de-DE,de;q=0.9,fr;q=0.4,en;q=0.5", "en"),
        ("en;q=0.5, fr;q=0.5", "en"),
        ("fr;q=0, en;q=0.1", "en"),
        ("de, *", "es"),
        ("fr;q=x", "es"),
        ("en ; q=0.3 , FR ; Q=0.8", "fr"),
    ],
)
def test_the_most_wanted_language_of_the_catalogue_is_taken(header: str, language: str) -> None:
    assert preferred_language(header) == language


@given(st.text())
def test_any_header_gets_a_language(header: str) -> None:
    assert preferred_language(header, default="fr") in LANGUAGES
