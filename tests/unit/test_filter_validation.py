"""Filters: what is accepted, and every problem by its path in Spanish."""

from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID

import pytest

from rag_resources.core.errors import InvalidFiltersError, InvalidInputError
from rag_resources.core.filters import parse_filters

NOTE = UUID(int=7)
NO_DATE = "no es una fecha; escríbela así: 2025-03-14 o 2025-03-14T18:30:00+01:00"
NO_VALUE = "debe ser un texto de hasta 1000 caracteres, un número, true, false o null"


def problems_of(raw: Any) -> list[str]:
    with pytest.raises(InvalidFiltersError) as caught:
        parse_filters(raw)
    assert caught.value.message.startswith("Los filtros no son válidos:\n  - ")
    assert isinstance(caught.value, InvalidInputError)
    return caught.value.problems


def test_what_fits_is_accepted_up_to_the_limits() -> None:
    filters = parse_filters(
        {
            "source": "s" * 200,
            "tags": [f"{number}".rjust(200) for number in range(20)],
            "note_ids": [str(NOTE)] * 1000,
            "created_from": "2025-03-14",
            "created_until": "2025-03-14T00:00:01",
            "metadata": {"k" * 200: "v" * 1000, **{f"k{number}": number for number in range(19)}},
        }
    )
    assert filters.note_ids == (NOTE,) * 1000
    assert len(filters.tags) == 20
    assert len(filters.metadata) == 20
    assert not filters.is_empty


@pytest.mark.parametrize(
    ("given", "moment"),
    [
        ("2025-03-14", datetime(2025, 3, 14, tzinfo=UTC)),
        ("2025-03-14T18:30", datetime(2025, 3, 14, 18, 30, tzinfo=UTC)),
        ("2025-03-14T18:30:00+02:00", datetime(2025, 3, 14, 16, 30, tzinfo=UTC)),
        (date(2025, 3, 14), datetime(2025, 3, 14, tzinfo=UTC)),
        (datetime(2025, 3, 14, 18), datetime(2025, 3, 14, 18, tzinfo=UTC)),  # noqa: DTZ001
    ],
)
def test_a_moment_is_in_utc_unless_it_says_otherwise(given: Any, moment: datetime) -> None:
    filters = parse_filters({"created_from": given})
    assert filters.created_from == moment
    assert filters.created_from.tzinfo is UTC


@pytest.mark.parametrize("value", ["1", "", 1, 1.5, True, False, None, 10**999, -1])
def test_a_metadata_value_keeps_its_type(value: Any) -> None:
    (kept,) = parse_filters({"metadata": {"clave": value}}).metadata.values()
    assert kept == value
    assert type(kept) is type(value)


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (None, ".: se esperaba un grupo de campos, no «null»"),
        ([], ".: se esperaba un grupo de campos, no «[]»"),
        (
            {"fuente": "x"},
            "fuente: clave desconocida; las que hay: source, tags, note_ids, excluded_note_ids, "
            "created_from, created_until, metadata",
        ),
        ({"source": ""}, "source: no puede estar vacío"),
        ({"source": "s" * 201}, "source: tiene más de 200 caracteres"),
        ({"source": 3}, "source: «3» no es un texto"),
        ({"source": "a\0"}, "source: tiene el carácter NUL, que ninguna nota puede tener"),
        ({"source": "\ud800"}, "source: «\\ud800» no es texto Unicode válido"),
        ({"tags": "casa"}, "tags: se esperaba una lista, no «casa»"),
        ({"tags": None}, "tags: se esperaba una lista, no «null»"),
        ({"tags": ["x"] * 21}, "tags: tiene más de 20 valores"),
        ({"tags": ["casa", ""]}, "tags.1: no puede estar vacío"),
        ({"tags": ["t" * 201]}, "tags.0: tiene más de 200 caracteres"),
        ({"note_ids": str(NOTE)}, f"note_ids: se esperaba una lista, no «{NOTE}»"),
        ({"note_ids": ["siete"]}, "note_ids.0: «siete» no es un identificador (UUID)"),
        ({"note_ids": [7]}, "note_ids.0: «7» no es un identificador (UUID)"),
        ({"note_ids": [NOTE] * 1001}, "note_ids: tiene más de 1000 valores"),
        ({"excluded_note_ids": [NOTE] * 10_001}, "excluded_note_ids: tiene más de 10000 valores"),
        ({"created_from": "ayer"}, f"created_from: «ayer» {NO_DATE}"),
        ({"created_until": []}, f"created_until: «[]» {NO_DATE}"),
        ({"created_until": "2025-02-30"}, f"created_until: «2025-02-30» {NO_DATE}"),
        (
            {"created_from": "0001-01-01T00:00:00+10:00"},
            "created_from: en UTC queda fuera de los años 1 a 9999",
        ),
        (
            {"created_from": "2025-03-14", "created_until": "2025-03-14"},
            ".: created_from debe ser anterior a created_until",
        ),
        ({"metadata": ["k"]}, "metadata: se esperaba un grupo de campos, no «['k']»"),
        ({"metadata": {"": 1}}, "metadata.: no puede estar vacío"),
        ({"metadata": {3: 1}}, "metadata.3: «3» no es un texto"),
        ({"metadata": {"k" * 201: 1}}, f"metadata.{'k' * 79}…: tiene más de 200 caracteres"),
        ({"metadata": {f"k{n}": n for n in range(21)}}, "metadata: tiene más de 20 valores"),
        ({"metadata": {"k": "v" * 1001}}, f"metadata.k: {NO_VALUE}"),
        ({"metadata": {"k": "0.5" + "0" * 998}}, f"metadata.k: {NO_VALUE}"),
        ({"metadata": {"k": 10**1000}}, f"metadata.k: {NO_VALUE}"),
        ({"metadata": {"k": float("nan")}}, f"metadata.k: {NO_VALUE}"),
        ({"metadata": {"k": ["a"]}}, f"metadata.k: {NO_VALUE}"),
        ({"metadata": {"k": {}}}, f"metadata.k: {NO_VALUE}"),
        ({"metadata": {"k": "\ud800"}}, f"metadata.k: {NO_VALUE}"),
        (
            {"metadata": {"k": "\0"}},
            "metadata.k: tiene el carácter NUL, que ninguna nota puede tener",
        ),
    ],
)
def test_a_problem_is_named_by_its_path_in_spanish(raw: Any, problem: str) -> None:
    assert problems_of(raw) == [problem]


def test_all_problems_are_named_at_once() -> None:
    found = problems_of(
        {
            "source": 3,
            "tags": ["", 5],
            "note_ids": ["x"],
            "created_from": "ayer",
            "metadata": {"a": {}, "b": []},
            "extra": 1,
        }
    )
    assert [problem.split(": ")[0] for problem in found] == [
        *("source", "tags.0", "tags.1", "note_ids.0", "created_from"),
        *("metadata.a", "metadata.b", "extra"),
    ]
