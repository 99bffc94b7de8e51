"""What a question names by the rules of its language, and whether it goes on from another."""

import pytest

from rag_resources.core.question_reading import goes_on, invents_nothing, read_question
from rag_resources.documents.media_types import SUFFIXES

BEFORE = "¿Qué pasó con la insulina durante el apagón en Teruel en abril de 2025?"


@pytest.mark.parametrize(
    ("question", "language", "first", "last"),
    [
        ("¿Qué pasó en 2025?", "es", "2025-01-01", "2026-01-01"),
        ("¿Qué dijo en marzo de 2025?", "es", "2025-03-01", "2025-04-01"),
        ("¿Qué dijo en marzo 2025?", "es", "2025-03-01", "2025-04-01"),
        ("¿Y durante diciembre de 2024?", "es", "2024-12-01", "2025-01-01"),
        ("Que s'est-il passé en mars 2025 ?", "fr", "2025-03-01", "2025-04-01"),
        ("What happened in March 2025?", "en", "2025-03-01", "2025-04-01"),
        ("¿Qué cuesta el plan 2025?", "es", "", ""),
        ("¿Qué pasó en 2025-03-14?", "es", "", ""),
    ],
)
def test_a_year_or_a_month_of_a_year_is_a_period(
    question: str, language: str, first: str, last: str
) -> None:
    periods = read_question(question, language).periods
    assert [(f"{own.start:%Y-%m-%d}", f"{own.end:%Y-%m-%d}") for own in periods] == (
        [(first, last)] if first else []
    )


def test_files_and_names_are_told() -> None:
    signs = read_question("¿Qué cuesta según plan_2025.pdf a Marta Ruiz?")
    assert signs.file_names == ("plan_2025.pdf",)
    assert signs.names == ("Marta Ruiz",)
    assert "plan 2025" in read_question("¿Qué dice el plan 2025?").phrases


def test_quoted_titles_may_be_names_of_files() -> None:
    assert "La mudanza" in read_question("¿Qué dice «La mudanza»?").phrases


@pytest.mark.parametrize("suffix", [*SUFFIXES, ".odt", ".pptx", ".jsonl"])
def test_a_name_with_the_ending_of_a_document_is_the_name_of_a_file(suffix: str) -> None:
    name = f"rapport-v2{suffix}"
    assert read_question(f"Que dit {name} ?", "fr").file_names == (name,)


def test_the_name_of_a_file_may_have_spaces_and_the_number_of_a_copy() -> None:
    signs = read_question("¿Qué cuesta según Informe final de obra (2).pdf?")
    assert signs.file_names == ("obra (2).pdf",)
    assert "Informe final de obra (2).pdf" in signs.phrases


@pytest.mark.parametrize(
    ("question", "language", "is_going_on"),
    [
        ("¿y el de Tolosa?", "es", True),
        ("¿Y cuánto es la fianza del piso?", "es", True),
        ("¿Quién lo trajo?", "es", True),
        ("¿por qué?", "es", True),
        ("¿Cuánto pide el taller?", "es", False),
        ("Et le beurre ?", "fr", True),
        ("And that of Brest?", "en", True),
        ("Who repaired the oven of Lyon?", "en", False),
    ],
)
def test_what_begins_with_and_or_says_little_goes_on(
    question: str, language: str, is_going_on: bool
) -> None:
    assert goes_on(question, language) is is_going_on


@pytest.mark.parametrize(
    ("question", "invents"),
    [
        ("¿Quién trajo la insulina a Teruel en abril de 2025?", False),
        ("Según Ana, ¿quién la trajo a teruel?", False),
        ("¿Quién la trajo con Marta?", True),
        ("¿Quién trajo 3 cajas a Teruel?", True),
        ("¿Quién la trajo en 20255?", True),
    ],
)
def test_a_rewritten_question_has_no_names_and_figures_of_its_own(
    question: str, invents: bool
) -> None:
    assert invents_nothing(question, ["¿Quién es Ana?", BEFORE, "¿Quién la trajo?"]) is not invents
