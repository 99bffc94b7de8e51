"""What a question names by the rules of its language, and whether it goes on from another."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from rag_resources.core.question_reading import goes_on, invents_nothing, read_question

BEFORE = "¿Qué pasó con la insulina durante el apagón en Teruel en abril de 2025?"


PERIODS = [
    [part.strip() for part in line.split("|")]
    for line in (Path(__file__).parents[1] / "data" / "periods.txt").read_text("utf-8").splitlines()
    if not line.startswith("#")
]
SATURDAY = date(2026, 11, 28)


def named(question: str, language: str = "es") -> list[tuple[str, str]]:
    """The first and the last day of each period that a question names, in Madrid."""
    return [
        (
            f"{own.start:%Y-%m-%d}" if own.start else "…",
            f"{own.end - timedelta(microseconds=1):%Y-%m-%d}" if own.end else "…",
        )
        for own in read_question(question, language, SATURDAY).periods
    ]


@pytest.mark.parametrize(("question", "first", "last"), PERIODS)
def test_a_period_means_what_people_mean(question: str, first: str, last: str) -> None:
    assert named(question) == ([] if first == "-" else [(first, last)])


@pytest.mark.parametrize(
    ("question", "language"),
    [("Que s'est-il passé en mars 2025 ?", "fr"), ("What happened in March 2025?", "en")],
)
def test_a_month_is_a_period_in_other_languages_too(question: str, language: str) -> None:
    assert named(question, language) == [("2025-03-01", "2025-03-31")]


def test_a_day_begins_at_midnight_in_madrid() -> None:
    (period,) = read_question("¿Qué hice ayer?", "es", SATURDAY).periods
    assert period.start == datetime(2026, 11, 26, 23, tzinfo=UTC)


def test_files_and_names_are_told() -> None:
    signs = read_question("¿Qué cuesta según plan_2025.pdf a Marta Ruiz?", "es", SATURDAY)
    assert signs.file_names == ("plan_2025.pdf",)
    assert signs.names == ("Marta Ruiz",)
    assert "plan 2025" in read_question("¿Qué dice el plan 2025?", "es", SATURDAY).phrases


def test_the_name_of_a_file_may_have_spaces_and_the_number_of_a_copy() -> None:
    signs = read_question("¿Qué cuesta según Informe final de obra (2).pdf?", "es", SATURDAY)
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
