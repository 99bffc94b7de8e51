"""Properties 45 and 46 without document readers: from chunks back to pages."""

from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_resources.core.chunking import chunk_note
from rag_resources.core.configuration import ChunkingConfig
from rag_resources.core.documents import Page, Section, check_section
from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.places import cut_spans, places_of, read_again
from tests.strategies import chunking_configs, documents, unaccounted

Read = tuple[dict[int, Page], list[Section]]


def folded(text: str) -> str:
    return " ".join(text.split())


@given(documents(), chunking_configs())
def test_property_45_every_chunk_has_a_place_that_reads_as_the_chunk(
    read: Read, config: ChunkingConfig
) -> None:
    pages, sections = read
    texts = {number: page.text for number, page in pages.items()}
    for section in sections:
        check_section(section, pages)
        for chunk in chunk_note(UUID(int=1), section.text, config):
            start, end = chunk.start_char, chunk.end_char
            places = places_of(section.spans, start, end)
            assert places
            assert [place.page for place in places] == sorted({place.page for place in places})
            spans = cut_spans(section.spans, start, end)
            assert read_again(texts, spans) == folded(chunk.content)
            assert {span.page for span in spans} == {place.page for place in places}


@given(documents(), st.data())
def test_property_46_every_character_of_a_page_is_in_a_section_or_removed(
    read: Read, data: st.DataObject
) -> None:
    pages, sections = read
    assert [unaccounted(page, sections) for page in pages.values()] == [()] * len(pages)
    if not sections:
        return
    section = data.draw(st.sampled_from(sections))
    lost = data.draw(st.sampled_from(section.spans))
    kept = tuple(span for span in section.spans if span != lost)
    others = [other for other in sections if other is not section]
    (found,) = unaccounted(pages[lost.page], [*others, replace(section, spans=kept)])
    assert folded(pages[lost.page].text[found.start : found.end]) == folded(
        section.text[lost.start : lost.end]
    )
    # What a section leaves out of its own text is refused, too.
    with pytest.raises(InvalidParameterError):
        check_section(replace(section, spans=kept), pages)
