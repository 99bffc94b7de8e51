"""Properties of what is stored: whatever is edited, chunked again or run twice."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag_resources.core.configuration import ChunkingConfig
from rag_resources.database.pool import Database
from rag_resources.indexing.chunk import ChunkReport, chunk_window
from rag_resources.indexing.embed import EmbedReport
from rag_resources.ingestion.ingest import ingest
from rag_resources.store.notes import Upsert
from tests.corpus import ALWAYS, SOURCE, START, Corpus, Draft, records
from tests.strategies import chunking_configs, drafts, short_notes

# The database is emptied by every example itself.
one_database = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def corpus(database: Database) -> Corpus:
    return Corpus(database)


@one_database
@given(
    drafts(),
    st.lists(st.tuples(st.integers(0, 3), st.none() | short_notes()), max_size=4),
    chunking_configs(),
)
def test_property_06_every_chunk_has_one_existing_parent(
    corpus: Corpus,
    written: list[Draft],
    changes: list[tuple[int, str | None]],
    other: ChunkingConfig,
) -> None:
    """Whatever is edited, deleted and chunked again; vectors and queue go with their note."""
    notes_ = corpus.fill(written)
    for number, text in changes:
        note = notes_[number % len(notes_)]
        if text is None:
            corpus.fetch("DELETE FROM notes WHERE id = %s RETURNING id", note)
        else:
            corpus.fetch("UPDATE notes SET content = %s WHERE id = %s RETURNING id", text, note)
    chunk_window(corpus.database, ALWAYS, other)
    living = {row.id for row in corpus.fetch("SELECT id FROM notes")}
    chunks = corpus.fetch("SELECT id, note_id FROM chunks")
    assert {chunk.note_id for chunk in chunks} == living
    assert len({chunk.id for chunk in chunks}) == len(chunks)
    vectors = {row.chunk_id for row in corpus.fetch("SELECT chunk_id FROM chunk_embeddings")}
    assert vectors <= {chunk.id for chunk in chunks}
    waiting = {row.note_id for row in corpus.fetch("SELECT note_id FROM pending_embeddings")}
    assert waiting <= living


@one_database
@given(drafts(), chunking_configs(), chunking_configs())
def test_property_40_a_migrated_note_is_untouched(
    corpus: Corpus, written: list[Draft], first: ChunkingConfig, second: ChunkingConfig
) -> None:
    """Chunking, embedding and chunking anew leave id, creation time and content as they were."""
    kept = "SELECT id, tenant_id, external_id, title, content, created_at, updated_at FROM notes"
    corpus.fill([replace(draft, state="new") for draft in written])
    before = sorted(corpus.fetch(kept))
    for config in (first, second):
        corpus.index(config)
    assert sorted(corpus.fetch(kept)) == before
    assert [row.created_at for row in before].count(START) == 1
    assert corpus.fetch("SELECT id FROM notes WHERE chunked_at IS NULL") == []


TABLES = "notes chunks chunk_embeddings note_embeddings pending_embeddings lexeme_statistics"


def row_versions(corpus: Corpus) -> list[set[Any]]:
    """The versions and places of all rows: equal if and only if nothing was written."""
    return [
        {(row.xmin, row.ctid) for row in corpus.fetch(f"SELECT xmin::text, ctid::text FROM {name}")}
        for name in TABLES.split()
    ]


@one_database
@given(drafts(foreign=True), chunking_configs())
def test_property_41_a_second_run_writes_and_embeds_nothing(
    corpus: Corpus, written: list[Draft], config: ChunkingConfig
) -> None:
    """Of ingestion, chunking, embedding of chunks and of notes, and the statistics."""
    corpus.fill(written)

    def load() -> set[Upsert]:
        outcomes = set()
        for tenant in ("ana", "blas"):
            report = ingest(corpus.database, records(written, tenant), tenant=tenant, source=SOURCE)
            outcomes |= {name for counts in report.by_month.values() for name in counts}
        return outcomes

    corpus.index(config)
    before = row_versions(corpus)
    assert load() == {Upsert.UNCHANGED}
    assert corpus.index(config) == (ChunkReport(), EmbedReport(), EmbedReport())
    assert corpus.embedder.texts == []
    assert row_versions(corpus) == before
