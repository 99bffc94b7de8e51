"""Changes from one period to the next, against values computed by hand."""

from fractions import Fraction

import pytest

from rag_resources.core.documents import Section
from rag_resources.core.page_text import PageText
from rag_resources.core.sections import sections_of
from rag_resources.core.sheets import Row, add_sheet
from rag_resources.core.temporal_context import Change, parse_day, temporal_context


def section(*rows: list[str]) -> Section:
    page = PageText()
    add_sheet(
        page, [Row(at, dict(enumerate(cells, start=1))) for at, cells in enumerate(rows, start=1)]
    )
    (only,) = sections_of([page.page(1, sheet="Gastos")])
    return only


def changes(*rows: list[str]) -> tuple[Change, ...]:
    made = section(*rows)
    return temporal_context(made.text, made.spans, 0, len(made.text))


def in_percent(found: tuple[Change, ...]) -> list[tuple[str, str, float | None]]:
    return [(each.column, each.reading.cell, each.to_json()["changePercent"]) for each in found]


def test_every_number_names_its_change_and_the_cells_it_comes_from() -> None:
    first, second, third = changes(
        ["Mes", "Gasto", "Notas"],
        ["2024-01-01", "1200,00 €", "a"],
        ["2024-02-01", "1263,72 €", "b"],
        ["2024-03-01", "1000,00 €", "c"],
    )
    assert first.to_json() == {
        "column": "Gasto",
        "date": "2024-01-01",
        "value": "1200.00",
        "cell": "B2",
        "previous": None,
        "changePercent": None,
    }
    assert second.to_json() == {
        "column": "Gasto",
        "date": "2024-02-01",
        "value": "1263.72",
        "cell": "B3",
        "previous": {"date": "2024-01-01", "value": "1200.00", "cell": "B2"},
        "changePercent": 5.31,
    }
    assert second.change == Fraction(6372, 120_000)
    assert third.change == Fraction(-26_372, 126_372)


def test_rows_are_compared_by_their_dates_and_losses_against_the_absolute_value() -> None:
    found = changes(["Año", "Saldo"], ["2024", "-5"], ["2023", "-10"], ["2022", "10"])
    assert in_percent(found) == [
        ("Saldo", "B2", 50.0),
        ("Saldo", "B3", -200.0),
        ("Saldo", "B4", None),
    ]


def test_a_previous_zero_or_blank_gives_no_change() -> None:
    found = changes(
        ["Mes", "Luz", "Gas"],
        ["enero de 2024", "0", "3"],
        ["febrero de 2024", "5", ""],
        ["marzo de 2024", "10", "4"],
    )
    assert in_percent(found) == [
        ("Luz", "B2", None),
        ("Gas", "C2", None),
        ("Luz", "B3", None),
        ("Luz", "B4", 100.0),
        ("Gas", "C4", None),
    ]


def test_each_table_of_a_sheet_is_compared_with_itself() -> None:
    table = (["Mes", "Luz"], ["2024-01", "2"], ["2024-02", "3"])
    other = (["Mes", "Gas"], ["2024-01", "5"], ["2024-02", "4"])
    percents = [percent for _, _, percent in in_percent(changes(*table, [], *other))]
    assert percents == [None, 50.0, None, -20.0]
    # Rows after an empty one are another table, here without a header.
    assert [cell for _, cell, _ in in_percent(changes(*table, [], ["2024-03", "9"]))] == [
        "B2",
        "B3",
    ]


def test_only_rows_of_the_passage_are_named_and_compared_with_those_before_it() -> None:
    made = section(["Mes", "Luz"], ["2024-01", "2"], ["2024-02", "3"], ["2024-03", "6"])
    start = made.text.index("2024-02")
    end = made.text.index("2024-03") - 1
    found = temporal_context(made.text, made.spans, start, end)
    assert in_percent(found) == [("Luz", "B3", 50.0)]


@pytest.mark.parametrize(
    ("values", "read"),
    [
        (["1.250,50", "1.000"], ["1250.50", "1000"]),
        (["1,250.50", "1,000"], ["1250.50", "1000"]),
        (["12,5 %", "10 %"], ["12.5", "10"]),
        (["$ 3.5", "$ 4"], ["3.5", "4"]),
        (["1.234", "2.345"], []),  # thousands, or not
        (["1.234", "0,5"], ["1234", "0.5"]),
        (["1.5", "0,5"], []),
        (["3", "tres"], []),
        (["#DIV/0!", "3"], []),
    ],
)
def test_numbers_are_read_only_where_they_are_clear(values: list[str], read: list[str]) -> None:
    found = changes(["Mes", "Valor"], ["2024-01", values[0]], ["2024-02", values[1]])
    assert [str(each.reading.value) for each in found] == read


@pytest.mark.parametrize(
    "rows",
    [
        (["Mes", "Luz"], ["2024-01", "1"], ["2024-01", "2"]),  # which one is before?
        (["Mes", "Luz"], ["2024-01", "1"], ["total", "2"]),
        (["Casa", "Luz"], ["Norte", "1"], ["Sur", "2"]),
        (["2024-01", "1"], ["2024-02", "2"]),
    ],
)
def test_a_table_without_a_header_and_a_column_of_different_dates_has_no_context(
    rows: tuple[list[str], ...],
) -> None:
    assert changes(*rows) == ()


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2024-03-01", "2024-03-01"),
        ("2024-03-01 10:30", "2024-03-01"),
        ("2024-03", "2024-03-01"),
        ("15/3/2024", "2024-03-15"),
        ("03/2024", "2024-03-01"),
        ("Marzo de 2024", "2024-03-01"),
        ("15 de marzo de 2024", "2024-03-15"),
        ("sept. 2024", "2024-09-01"),
        ("mar-24", "2024-03-01"),
        ("2024", "2024-01-01"),
    ],
)
def test_days_are_read_as_they_are_written_in_spanish(text: str, day: str) -> None:
    found = parse_day(text)
    assert found is not None
    assert found.isoformat() == day
