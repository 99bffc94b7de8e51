"""From a note's characters to page and box, or to sheet and cells."""

from dataclasses import replace

import pytest

from rag_resources.core.documents import Page, Removal, Section, check_section
from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.places import (
    Box,
    NoteSpan,
    Place,
    cut_spans,
    places_of,
    read_again,
)
from rag_resources.core.text import Span
from rag_resources.languages.messages import _
from tests.strategies import unaccounted

FIRST, SECOND = Box(72, 700, 500, 712), Box(72, 72, 500, 84)
PAGES = {3: Page(3, "Plan de 2024\nMás vivienda pú"), 4: Page(4, "4\nblica. Y menos ruido.")}
TEXT = "Más vivienda pública. Y menos ruido."
SPANS = (NoteSpan(0, 15, 3, 13, FIRST), NoteSpan(15, 36, 4, 2, SECOND))
SECTION = Section(0, ("Plan", "Vivienda"), TEXT, SPANS)
ROWS = (
    NoteSpan(0, 5, 1, 0, sheet="2024", cells="A2:C2"),
    NoteSpan(6, 11, 1, 6, sheet="2024", cells="A3:C3"),
    NoteSpan(12, 17, 2, 0, sheet="2025", cells="A2:C2"),
)


@pytest.mark.parametrize(
    ("start", "end", "pages"),
    [(0, 15, [3]), (15, 36, [4]), (14, 16, [3, 4]), (0, 36, [3, 4]), (15, 15, []), (36, 40, [])],
)
def test_a_range_has_a_place_for_each_page_it_stands_on(
    start: int, end: int, pages: list[int]
) -> None:
    places = places_of(SPANS, start, end)
    assert [place.page for place in places] == pages
    boxes = {3: (FIRST,), 4: (SECOND,)}
    assert [place.boxes for place in places] == [boxes[page] for page in pages]


def test_a_range_over_two_pages_reads_as_the_note_does() -> None:
    """The word that was hyphenated at the end of the page is one again."""
    cut = cut_spans(SPANS, 4, 21)
    assert cut == (NoteSpan(4, 15, 3, 17, FIRST), NoteSpan(15, 21, 4, 2, SECOND))
    texts = {number: page.text for number, page in PAGES.items()}
    assert read_again(texts, cut) == TEXT[4:21] == "vivienda pública."


def test_runs_that_white_space_joins_are_read_with_it() -> None:
    texts = {1: "uno a\ndos b", 2: "tres c"}
    assert read_again(texts, cut_spans(ROWS, 0, 17)) == "uno a dos b tres"


def test_cells_stand_by_sheet() -> None:
    assert places_of(ROWS, 0, 11) == (Place(1, sheet="2024", cells=("A2:C2", "A3:C3")),)
    assert places_of(ROWS, 8, 13) == (
        Place(1, sheet="2024", cells=("A3:C3",)),
        Place(2, sheet="2025", cells=("A2:C2",)),
    )


@pytest.mark.parametrize(
    "spans",
    [
        SPANS[:1],
        SPANS[1:],
        SPANS[::-1],
        (),
        (SPANS[0], replace(SPANS[1], page=9)),
        (SPANS[0], replace(SPANS[1], page_start=1)),
        (SPANS[0], replace(SPANS[1], start=14)),
        (SPANS[0], replace(SPANS[1], end=37)),
        (SPANS[0], NoteSpan(15, 15, 4, 2), SPANS[1]),
    ],
    ids=["end", "beginning", "order", "all", "page", "offset", "overlap", "outside", "empty"],
)
def test_a_section_whose_runs_do_not_hold_its_text_is_refused(spans: tuple[NoteSpan, ...]) -> None:
    check_section(SECTION, PAGES)
    with pytest.raises(InvalidParameterError) as caught:
        check_section(replace(SECTION, spans=spans), PAGES)
    assert (
        caught.value.msgid
        == _(
            "The section {section} does not say where its characters from {start} to {end} are: "
            "they are not those of its page."
        ).msgid
    )


def test_what_of_a_page_is_in_no_section_is_named() -> None:
    assert unaccounted(PAGES[3], [SECTION]) == (Span(0, 13),)
    head = replace(PAGES[3], removed=(Removal(0, 12, "running_head"),))
    assert unaccounted(head, [SECTION]) == ()
    assert unaccounted(PAGES[4], []) == (Span(0, len(PAGES[4].text)),)
    assert unaccounted(Page(5, " \n"), []) == ()
