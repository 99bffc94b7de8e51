"""Word statistics that are kept by what changed are those of a full count."""

from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag_resources.database.pool import Database
from rag_resources.indexing.chunk import chunk_window
from rag_resources.ingestion.ingest import ingest
from rag_resources.store.chunks import refresh_statistics
from tests.corpus import ALWAYS, SMALL, SOURCE, Corpus, Draft, records
from tests.strategies import drafts, short_notes

# The database is emptied by every example itself.
one_database = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])

STORED = """
    SELECT l.tenant_id, l.lexeme, l.document_count FROM lexeme_statistics AS l
    ORDER BY l.tenant_id COLLATE "C", l.lexeme COLLATE "C" """
COUNTED = """
    SELECT c.tenant_id, w.lexeme, count(*)::integer FROM chunks AS c CROSS JOIN unnest(c.tsv) AS w
    GROUP BY c.tenant_id, w.lexeme ORDER BY c.tenant_id COLLATE "C", w.lexeme COLLATE "C" """
STORED_SUMS = """
    SELECT s.tenant_id, s.chunk_count, s.average_lexeme_occurrences, s.lexeme_occurrences
    FROM corpus_statistics AS s WHERE s.chunk_count > 0 ORDER BY s.tenant_id"""
COUNTED_SUMS = """
    SELECT
        c.tenant_id, count(*), avg(c.lexeme_occurrences)::double precision,
        sum(c.lexeme_occurrences)
    FROM chunks AS c GROUP BY c.tenant_id ORDER BY c.tenant_id"""

WRITES = {
    "edited": "UPDATE notes SET content = %(text)s, chunked_at = NULL WHERE id = ANY(%(notes)s)",
    # Under an identifier that none of the other tenant's notes has. Its own keep theirs, of which
    # their ids are made.
    "given away": "UPDATE notes SET tenant_id = 'blas', external_id = id::text"
    " WHERE id = ANY(%(notes)s) AND tenant_id <> 'blas'",
    "deleted": "DELETE FROM notes WHERE id = ANY(%(notes)s)",
    "cut off": "DELETE FROM chunks WHERE note_id = ANY(%(notes)s)",
    "of other topics": "UPDATE chunks SET topics = %(text)s WHERE note_id = ANY(%(notes)s)",
    "of another context": "UPDATE chunks SET context = %(text)s WHERE note_id = ANY(%(notes)s)",
    "all gone": "TRUNCATE chunks CASCADE",
    "a tenant gone": "SELECT delete_tenant('blas', ARRAY['notes', 'chunks', 'lexeme_statistics',"
    " 'corpus_statistics', 'chunk_word_changes', 'index_changes', 'changed_months'])",
}


@pytest.fixture
def corpus(database: Database) -> Corpus:
    return Corpus(database)


@st.composite
def changes(draw: st.DrawFn) -> list[tuple[str, set[int], str]]:
    """What is done, to which notes, with which text."""
    kinds = st.sampled_from([*WRITES, "added", "chunked", "rolled back", "refreshed"])
    change = st.tuples(kinds, st.sets(st.integers(0, 3)), short_notes())
    return draw(st.lists(change, max_size=8))


@one_database
@given(drafts(foreign=True), changes())
def test_refreshed_statistics_are_those_of_a_full_count(
    corpus: Corpus, written: list[Draft], done: Sequence[tuple[str, set[int], str]]
) -> None:
    """Whatever was inserted, edited, deleted or rolled back, by whichever tenant."""
    notes = corpus.fill(written)
    for kind, numbers, text in done:
        chosen = [note for number, note in enumerate(notes) if number in numbers]
        change(corpus, kind, chosen, text)
    with corpus.database.transaction() as connection:
        refresh_statistics(connection)
    assert corpus.fetch(STORED) == corpus.fetch(COUNTED)
    assert corpus.fetch(STORED_SUMS) == corpus.fetch(COUNTED_SUMS)
    assert corpus.fetch("SELECT FROM chunk_word_changes") == []


def change(corpus: Corpus, kind: str, notes: Sequence[object], text: str) -> None:
    """Change something."""
    if kind == "added":
        added = records([Draft(text, tenant="ana"), Draft(text, tenant="blas")], "blas")
        ingest(corpus.database, added, tenant="blas", source=SOURCE)
    elif kind == "chunked":
        chunk_window(corpus.database, ALWAYS, SMALL)
    elif kind == "refreshed":
        with corpus.database.transaction() as connection:
            refresh_statistics(connection)
    elif kind == "rolled back":
        with corpus.database.transaction() as connection:
            connection.execute("DELETE FROM chunks")
            refresh_statistics(connection)
            connection.rollback()
    else:
        with corpus.database.transaction() as connection:
            connection.execute(WRITES[kind], {"notes": list(notes), "text": text})
