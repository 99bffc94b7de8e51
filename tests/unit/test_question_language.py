"""The language in which a question is read if its request leaves that open."""

import pytest

from rag_resources.api.bodies import Search
from rag_resources.api.language import question_language


@pytest.mark.parametrize(
    ("query", "language"),
    [
        ("¿Qué pasó con la caldera en junio de 2026?", "es"),
        ("¿Quién repara la caldera?", "es"),
        ("Quand a eu lieu la coupure de courant ?", "fr"),
        ("What happened with the boiler in June 2026?", "en"),
        ("caldera junio 2026", None),
    ],
)
def test_a_question_is_read_in_the_language_it_is_written_in(
    query: str, language: str | None
) -> None:
    assert question_language(Search(query=query, language="auto")) == language
    assert question_language(Search(query=query, language="fr")) == "fr"
    assert question_language(Search(query=query)) is None
