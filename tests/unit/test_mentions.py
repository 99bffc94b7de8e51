"""Names, tags and dates are found by rules."""

import pytest

from rag_resources.core.mentions import (
    EntityKind,
    entity_id,
    find_mentions,
    fold,
    question_names,
)


def names(text: str, title: str = "") -> list[str]:
    """The names in a text, as they stand there."""
    (found,) = find_mentions(title, [text], [])
    return [mention.name for mention in found if mention.kind is EntityKind.NAME]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ayer vino Rosa Martí con Bernat.", ["Rosa Martí", "Bernat"]),
        ("Hoy llueve. Mañana, no.", []),
        ("Vino la Sra. Castelló, del Obispo Polanco.", ["Castelló", "Obispo Polanco"]),
        ("Fuimos a San Juan de la Peña y a La Fe.", ["San Juan de la Peña", "La Fe"]),
        ("Lo dijo el Sr. Arnau de pie.", ["Arnau"]),
        ("El grado II, según el plan B, en el capítulo XIV.", []),
        ("Ponía ALGUIEN FUE A VERLA en la nota del IVA.", ["IVA"]),
        ("Leímos «Nada» y *Pedro Páramo*.", ["Páramo"]),
        ("Desde el lunes de Marzo no sé nada de Cal Viva.", ["Cal Viva"]),
        ("Llegó de Xàtiva: l'Auditori d'Alboraia.", ["Xàtiva"]),
        ("", []),
        ("Rosa", []),
    ],
)
def test_names_are_capitalised_inside_sentences(text: str, expected: list[str]) -> None:
    assert names(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("El libro es de Ludwig van Beethoven.", ["Ludwig van Beethoven"]),
        ("Hablé con Ursula von der Leyen ayer.", ["Ursula von der Leyen"]),
        ("La casa de Anna van den Berg.", ["Anna van den Berg"]),
        (
            "Pasamos por Bergen op Zoom y Leonardo da Vinci.",
            ["Bergen op Zoom", "Leonardo da Vinci"],
        ),
        ("El premio de Marie du Pont, por Rosa di Marco.", ["Marie du Pont", "Rosa di Marco"]),
        ("Los de Orriols van mañana y Rosa da clases.", ["Orriols", "Rosa"]),
        ("Vino Ana y Bernat, de Cal Viva.", ["Ana", "Bernat", "Cal Viva"]),
    ],
)
def test_small_words_of_other_languages_stand_inside_a_name(text: str, expected: list[str]) -> None:
    assert names(text) == expected


def test_a_word_that_opens_a_sentence_is_a_name_if_it_is_one_elsewhere_in_the_note() -> None:
    assert names("Rosa avisó. Luego llamé a Rosa.") == ["Rosa", "Rosa"]
    (first, second) = find_mentions("", ["Rosa avisó.", "Luego llamé a Rosa."], [])
    assert [len(first), len(second)] == [1, 1]
    assert names("Rosa avisó.", title="Comida con Rosa") == ["Rosa"]


def test_mentions_stand_where_their_span_says() -> None:
    text = "El 3 de marzo de 2025 vi a Noemí en Les Palmeres 🌴 (véase 2025-03-04)."
    (found,) = find_mentions("", [text], ["cal-viva", "cal-viva"])
    assert [(m.kind.value, m.key) for m in found] == [
        ("tag", "cal viva"),
        ("date", "2025-03-03"),
        ("name", "noemi"),
        ("name", "les palmeres"),
        ("date", "2025-03-04"),
    ]
    assert all(text[m.span.start : m.span.end] == m.name for m in found[1:])


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("el 12 de noviembre", "--11-12"),
        ("en enero del 2025", "2025-01"),
        ("12/11/2024", "2024-11-12"),
        ("2024-11", "2024-11"),
        ("en marzo", None),
        ("45/13/2024", None),
        ("el 2024-13-01", None),
    ],
)
def test_a_date_has_two_of_day_month_and_year(text: str, key: str | None) -> None:
    (found,) = find_mentions("", [text], [])
    assert [mention.key for mention in found] == ([key] if key else [])


def test_a_folded_name_is_the_same_however_it_is_written() -> None:
    assert fold("  JÚLIA\tPeñíscola ") == fold("Ju\u0301lia Peñíscola") == "julia peniscola"
    ids = {entity_id("ana", EntityKind.NAME, fold(name)) for name in ("Júlia", "JULIA")}
    assert len(ids) == 1
    assert entity_id("luis", EntityKind.NAME, "julia") not in ids


def test_a_question_names_by_its_words_without_capitals() -> None:
    found = question_names("¿Por qué no vino la sra. castelló a cal viva?")
    assert {"castello", "cal viva"} <= set(found)
    assert "por" not in found
