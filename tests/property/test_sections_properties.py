"""Properties 45 and 46 of the sections that are cut from pages."""

from dataclasses import replace
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from rag_resources.core.chunking import chunk_note
from rag_resources.core.configuration import ChunkingConfig
from rag_resources.core.documents import Page, check_section
from rag_resources.core.places import cut_spans, read_again
from rag_resources.core.sections import is_searchable, sections_of
from tests.strategies import chunking_configs, pages_with_blocks, unaccounted

section_sizes = st.sampled_from([100, 150, 400, 10_000])


@given(pages_with_blocks(), section_sizes, chunking_configs())
def test_property_45_chunks_of_sections_are_read_again_from_their_pages(
    pages: list[Page], max_chars: int, config: ChunkingConfig
) -> None:
    texts = {page.number: page.text for page in pages}
    for section in sections_of(pages, max_chars=max_chars):
        check_section(section, {page.number: page for page in pages})
        for chunk in chunk_note(UUID(int=1), section.text, config):
            spans = cut_spans(section.spans, chunk.start_char, chunk.end_char)
            assert read_again(texts, spans) == " ".join(chunk.content.split())


@given(pages_with_blocks(), section_sizes)
def test_property_46_bounded_sections_hold_every_character_of_the_pages_that_are_searched(
    pages: list[Page], max_chars: int
) -> None:
    sections = list(sections_of(pages, max_chars=max_chars))
    assert [section.index for section in sections] == list(range(len(sections)))
    for section in sections:
        assert 0 < len(section.text) <= max_chars
        assert len({span.sheet for span in section.spans}) == 1
    for page in pages:
        if is_searchable(page):
            assert unaccounted(page, sections) == ()
        else:
            assert all(span.page != page.number for each in sections for span in each.spans)
    # A page without blocks is cut into paragraphs.
    plain = [replace(page, blocks=(), quality=None) for page in pages]
    sections = list(sections_of(plain, max_chars=max_chars))
    assert [unaccounted(page, sections) for page in plain] == [()] * len(plain)
