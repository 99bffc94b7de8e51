"""Chunking the same notes with other settings changes only the chunks that differ."""

import pytest
from hypothesis import HealthCheck, given, settings

from rag_resources.core.configuration import ChunkingConfig
from rag_resources.core.contextual import contextual_text
from rag_resources.core.types import Chunk
from rag_resources.database.pool import Database
from rag_resources.indexing.chunk import build_chunks, chunk_window
from rag_resources.store.notes import fetch_notes
from tests.corpus import ALWAYS, Corpus, Draft
from tests.strategies import chunking_configs, drafts

# The database is emptied by every example itself.
one_database = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def corpus(database: Database) -> Corpus:
    return Corpus(database)


@one_database
@given(drafts(), chunking_configs(), chunking_configs())
def test_property_41_another_way_of_chunking_touches_what_it_cuts_otherwise(
    corpus: Corpus, written: list[Draft], one: ChunkingConfig, other: ChunkingConfig
) -> None:
    """Only those notes wait for vectors, and only their texts are embedded."""
    ids = corpus.fill(written)
    corpus.index(one)
    with corpus.database.transaction() as connection:
        notes = fetch_notes(connection, ids).values()

    def cut(config: ChunkingConfig) -> dict[object, list[Chunk]]:
        return {n.note_id: build_chunks(n, config) for n in notes}

    before, after = cut(one), cut(other)
    chunk_window(corpus.database, ALWAYS, other)
    waiting = {row.note_id for row in corpus.fetch("SELECT note_id FROM pending_vectors")}
    assert waiting == {note for note in after if after[note] != before[note]}
    corpus.index(other)
    redone = [chunk for note in waiting for chunk in after[note]]
    shown = [(c.context, c.rendered or c.content) for c in redone]
    texts = {text for _, text in shown} | {contextual_text(*each) for each in shown}
    assert set(corpus.embedder.texts) <= texts
