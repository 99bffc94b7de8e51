"""Pages survive the way from the child process, and nothing else does."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_resources.core.documents import Block, BlockKind, Page, PageFailure, Removal, Route, Run
from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.page_json import item_from_json, item_to_json
from rag_resources.core.places import Box

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
edges = st.integers(-1000, 100_000).map(lambda hundredths: hundredths / 100)
boxes = st.builds(Box, edges, edges, edges, edges)


@st.composite
def pages(draw: st.DrawFn) -> Page:
    text = draw(texts)

    def part() -> tuple[int, int]:
        first, last = sorted(draw(st.tuples(*[st.integers(0, len(text))] * 2)))
        return first, last

    def run() -> Run:
        place = draw(st.one_of(st.none(), texts, boxes))
        return Run(
            *part(),
            box=place if isinstance(place, Box) else None,
            cells=place if isinstance(place, str) else None,
        )

    few = range(draw(st.integers(0, 3)))
    return Page(
        number=draw(st.integers(1, 10_000)),
        text=text,
        route=draw(st.sampled_from(Route)),
        sheet=draw(st.none() | texts),
        blocks=tuple(
            Block(*part(), draw(st.sampled_from(BlockKind)), draw(st.integers(0, 9)), (run(),))
            for _ in few
        ),
        removed=tuple(Removal(*part(), draw(texts)) for _ in few),
        quality=draw(st.none() | st.floats(0, 1)),
        has_images=draw(st.booleans()),
        has_tables=draw(st.booleans()),
        has_multiple_columns=draw(st.booleans()),
        notices=tuple(draw(st.lists(texts, max_size=2))),
        metadata=draw(st.dictionaries(texts, texts, max_size=2)),
        left_out=draw(st.dictionaries(texts, st.integers(0, 9), max_size=2)),
    )


failures = st.builds(
    PageFailure,
    st.integers(1, 10_000),
    texts,
)


@given(pages() | failures)
def test_a_page_comes_back_as_it_was(item: Page | PageFailure) -> None:
    assert item_from_json(json.loads(json.dumps(item_to_json(item)))) == item


@pytest.mark.parametrize(
    "change",
    [
        {"number": 0},
        {"text": None},
        {"blocks": [{"kind": "paragraph", "start": 0, "end": 9}]},
        {"blocks": [{"kind": "verse", "start": 0, "end": 1}]},
        {"removed": [{"start": 2, "end": 1, "reason": ""}]},
        {"has_tables": [True]},
    ],
)
def test_a_page_with_a_wrong_field_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameterError):
        item_from_json(item_to_json(Page(1, "abc")) | change)


def test_characters_that_cannot_be_stored_are_replaced_one_by_one() -> None:
    page = Page(1, "a\0b\ud800c")
    assert item_from_json(item_to_json(page)) == replace(page, text="a\ufffdb\ufffdc")
