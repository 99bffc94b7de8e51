"""Property 20: the contextual prefix says what note a chunk is of and which part of it."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from rag_resources.core.chunking import chunk_note
from rag_resources.core.configuration import ChunkingConfig
from rag_resources.core.contextual import contextual_prefix, summarize
from tests.strategies import any_notes, chunking_configs, notes

SECTIONS = ("Sección inicial.", "Sección intermedia.", "Sección final.")


@given(st.one_of(st.just(""), any_notes(max_sentences=2)), notes(), chunking_configs())
def test_property_20_the_prefix_names_the_summary_and_the_position(
    title: str, note: str, config: ChunkingConfig
) -> None:
    summary = summarize(title, note)
    assert 0 < len(summary) <= 160
    assert summary.splitlines() == [summary]
    chunks = chunk_note(UUID(int=1), note, config)
    for index in range(len(chunks)):
        prefix = contextual_prefix(summary, chunks, index)
        assert prefix.startswith(f"Parte {index + 1} de {len(chunks)} ")
        assert summary in prefix
        if index == 0:
            expected = SECTIONS[0]
        else:
            expected = SECTIONS[2] if index == len(chunks) - 1 else SECTIONS[1]
        assert prefix.endswith(expected)
        assert [" Antes: " in prefix, " Después: " in prefix] == [
            index > 0,
            index < len(chunks) - 1,
        ]
