"""Which words of a passage are those of the question."""

import pytest

from rag_resources.core.wording import matches, says_something


@pytest.mark.parametrize(
    ("text", "asked", "found"),
    [
        (
            "La insulina aguanta el apagón.",
            "¿qué pasó con la INSULINA en los apagones?",
            ["insulina", "apagón"],
        ),
        ("Las gatas y el gato.", "¿dónde está la gata?", ["gatas", "gato"]),
        ("Pagué 1.780 euros en 2025.", "¿en qué gasté 1780?", ["1.780"]),
        ("Nada de eso.", "¿qué es?", []),
        ("El lector paga un euro; pagó tarde.", "¿cuánto pagan?", ["paga", "pagó"]),
        ("La migración acabó.", "¿cuándo acaban las migraciones?", ["migración", "acabó"]),
    ],
)
def test_words_match_by_their_stems(text: str, asked: str, found: list[str]) -> None:
    assert [text[span.start : span.end] for span in matches(text, asked)] == found


@pytest.mark.parametrize(
    ("question", "says"),
    [("🎉", False), ("¿qué es lo de la?", False), ("gata", True), ("¿2025?", True), ("", False)],
)
def test_only_stop_words_say_nothing(question: str, says: bool) -> None:
    assert says_something(question) is says
