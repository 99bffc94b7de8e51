"""What two Spanish texts share, word by word."""

import pytest

from rag_resources.core.wording import as_written, content, is_negated, names, numbers


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("gatos", "gato"),
        ("reuniones", "reunión"),
        ("voces", "voz"),
        ("CANCIÓN", "cancion"),
        ("camio\u0301n", "camión"),
        ("abuela", "abuelo"),
        ("abuelas", "abuelo"),
        ("coches", "coche"),
        ("meses", "mes"),
        ("francesas", "franceses"),
    ],
)
def test_number_gender_case_and_accents_make_no_other_word(one: str, other: str) -> None:
    assert content(one) == content(other) != frozenset()


def test_words_without_a_meaning_of_their_own_do_not_count() -> None:
    assert content("¿Qué es lo de la gata, y por qué no?") == content("gata")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("son 415 €", {"415"}),
        ("1.780 euros", {"1780"}),
        ("1780,0 y 1780,50", {"1780", "1780.5"}),
        ("a las 07:05", {"7", "5"}),
        ("a las 00:30", {"0", "30"}),
        ("0,5 y 07,5", {"0.5", "7.5"}),
        ("07,0 y 0,00", {"7", "0"}),
        ("el 3.5 y el 3,5", {"3.5"}),
        ("el 12.05.2026", {"12", "5", "2026"}),
        ("dieciséis o treinta", {"16", "30"}),
        ("uno de ellos", set()),
        ("el error E18 y la bomba b2", set()),
        ("el gas R-448A en 24h, 10kg", {"448", "24", "10"}),
    ],
)
def test_numbers_have_one_form_in_digits_or_in_words(text: str, expected: set[str]) -> None:
    assert numbers(text) == expected


def test_a_name_is_a_capital_that_opens_no_sentence() -> None:
    text = "Ayer vino Andreu. Luego llamó Begoña: «Mañana voy», dijo a Íñigo. ¿Fue Ana?"
    assert names(text) == {"andreu", "begona", "inigo", "ana"}


def test_letters_with_digits_after_them_are_one_word_and_a_name() -> None:
    assert content("La bomba C1") == {"bomb", "c1"}
    assert names("C1: la b2, en 24h") == {"c1", "b2"}


def test_denials_are_seen_as_whole_words() -> None:
    assert is_negated("Nunca vino")
    assert is_negated("Se fue sin pagar")
    assert not is_negated("La noria del sindicato")


@pytest.mark.parametrize(
    ("text", "folded", "written"),
    [
        (
            "¿Qué  se dijo en la Reunión de enero?",
            "en la reunion de enero",
            "en la Reunión de enero",
        ),
        ("¿Cuándo?", "donde", "donde"),
        ("Rio\u0301 mucho", "rio", "rio"),  # two characters that fold to one
    ],
)
def test_words_are_quoted_as_they_were_written(text: str, folded: str, written: str) -> None:
    assert as_written(text, folded) == written
