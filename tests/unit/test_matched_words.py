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
        ("Las bombas C1 y C2, en la sala 1.", "¿dónde está la C1?", ["C1"]),
        ("El gas R-448A costó 448 euros.", "¿qué es el R-448A?", ["448A"]),
        ("De 10kg a 10 kg.", "¿y los 10 kg?", ["kg", "kg", "10", "10"]),
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
