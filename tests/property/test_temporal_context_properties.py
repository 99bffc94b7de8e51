"""Property 56: changes are exact over the cells that they name."""

from datetime import date, timedelta
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from rag_resources.core.number_formats import plain_number
from rag_resources.core.page_text import PageText
from rag_resources.core.sections import sections_of
from rag_resources.core.sheets import Row, add_sheet
from rag_resources.core.temporal_context import temporal_context

values = st.one_of(st.none(), st.integers(-1000, 1000).map(lambda number: number / 4))


@given(
    st.lists(st.integers(0, 5000), min_size=2, max_size=8, unique=True),
    st.data(),
)
def test_property_56_changes_are_exact_over_the_cells_they_name(
    days: list[int], data: st.DataObject
) -> None:
    numbers = data.draw(st.lists(values, min_size=len(days), max_size=len(days)))
    first = date(2015, 1, 1)
    rows = [Row(1, {1: "Día", 2: "Valor"})]
    for at, (day, number) in enumerate(zip(days, numbers, strict=True), start=2):
        shown = "" if number is None else plain_number(number)
        rows.append(Row(at, {1: (first + timedelta(days=day)).isoformat(), 2: shown}))
    page = PageText()
    add_sheet(page, rows)
    (section,) = sections_of([page.page(1, sheet="Hoja")])
    found = temporal_context(section.text, section.spans, 0, len(section.text))
    known = [number for number in numbers if number is not None]
    assert len(found) == (len(known) if len(known) > 1 else 0)
    by_day = dict(zip(days, numbers, strict=True))
    for change in found:
        at = int(change.reading.cell.removeprefix("B")) - 2
        assert Fraction(change.reading.value) == Fraction(numbers[at] or 0)
        earlier = max((day for day in days if day < days[at]), default=None)
        previous = None if earlier is None else by_day[earlier]
        if not previous:
            assert change.change is None
            continue
        assert change.previous is not None
        assert days[int(change.previous.cell.removeprefix("B")) - 2] == earlier
        value = Fraction(numbers[at] or 0)
        assert change.change == (value - Fraction(previous)) / abs(Fraction(previous))
