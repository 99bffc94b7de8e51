"""Filters: what is accepted, and every problem by its path in Spanish."""

from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID

import pytest

from rag_resources.core.errors import InvalidFiltersError, InvalidInputError
from rag_resources.core.filters import parse_filters

NOTE = UUID(int=7)


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
    ("raw", "path"),
    [
        (None, "."),
        ([], "."),
        ({"fuente": "x"}, "fuente"),
        ({"source": ""}, "source"),
        ({"source": "s" * 201}, "source"),
        ({"source": 3}, "source"),
        ({"source": "a\0"}, "source"),
        ({"source": "\ud800"}, "source"),
        ({"tags": "casa"}, "tags"),
        ({"tags": None}, "tags"),
        ({"tags": ["x"] * 21}, "tags"),
        ({"tags": ["casa", ""]}, "tags.1"),
        ({"tags": ["t" * 201]}, "tags.0"),
        ({"note_ids": str(NOTE)}, "note_ids"),
        ({"note_ids": ["siete"]}, "note_ids.0"),
        ({"note_ids": [NOTE] * 1001}, "note_ids"),
        ({"excluded_note_ids": [NOTE] * 10_001}, "excluded_note_ids"),
        ({"created_from": "ayer"}, "created_from"),
        ({"created_until": []}, "created_until"),
        ({"created_until": "2025-02-30"}, "created_until"),
        ({"created_from": "0001-01-01T00:00:00+10:00"}, "created_from"),
        ({"created_from": "2025-03-14", "created_until": "2025-03-14"}, "."),
        ({"metadata": ["k"]}, "metadata"),
        ({"metadata": {"": 1}}, "metadata."),
        ({"metadata": {3: 1}}, "metadata.3"),
        ({"metadata": {"k" * 201: 1}}, f"metadata.{'k' * 79}…"),
        ({"metadata": {f"k{n}": n for n in range(21)}}, "metadata"),
        ({"metadata": {"k": "v" * 1001}}, "metadata.k"),
        ({"metadata": {"k": 10**1000}}, "metadata.k"),
        ({"metadata": {"k": float("nan")}}, "metadata.k"),
        ({"metadata": {"k": ["a"]}}, "metadata.k"),
        ({"metadata": {"k": "\ud800"}}, "metadata.k"),
        ({"metadata": {"k": "\0"}}, "metadata.k"),
    ],
)
def test_a_problem_is_named_by_its_path(raw: Any, path: str) -> None:
    (found,) = problems_of(raw)
    assert found.partition(": ")[0] == path


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
