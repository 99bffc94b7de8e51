"""`rag tenant promote`: a large tenant's own vector indexes, made, used and taken away."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from psycopg import sql

from rag_resources.core.retrievers import RankedList
from rag_resources.database.pool import Access, Connection, Database
from rag_resources.languages.messages import _
from rag_resources.store import vector_indexes
from rag_resources.store.search import (
    EXACT_VECTORS,
    EmbeddedQuery,
    SearchedList,
    SearchFacts,
    compose_search,
    read_facts,
    search_parameters,
)
from tests.command_line import Outcome, call_rag, isolate
from tests.corpus import Corpus, Draft, only

OWN = "SELECT indexname FROM pg_indexes WHERE starts_with(indexname, 'own_hnsw_') ORDER BY 1"


@pytest.fixture
def tenant() -> str:
    return "ana"


@pytest.fixture
def corpus(database: Database) -> Corpus:
    made = Corpus(database)
    texts = [f"La nota número {number} habla de una casa." for number in range(30)]
    made.fill([Draft(text, tenant=tenant) for text in texts for tenant in ("ana", "blas")])
    made.cut()
    return made


@pytest.fixture
def rag(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    database_url: str,
) -> Callable[..., Outcome]:
    """Call `rag` on the database, where few vectors have an index already."""
    isolate(monkeypatch, tmp_path, DATABASE_URL=database_url, GOLDEN_SOURCE="")
    monkeypatch.setattr(vector_indexes, "MIN_ROWS", 1)
    return lambda *arguments: call_rag(monkeypatch, capsys, *arguments)


def own(corpus: Corpus) -> list[str]:
    return [row.indexname for row in corpus.fetch(OWN)]


def explained(connection: Connection, tenant: str, corpus: Corpus, facts: SearchFacts) -> str:
    """The plan of a search for a tenant."""
    (vector,) = corpus.embedder.embed_queries(["casa"])
    embedded = EmbeddedQuery(corpus.embedder.info, vector, 0)
    request = only(SearchedList(RankedList.SEMANTIC, embedded=embedded), tenant=tenant, pool=5)
    for method in ("seqscan", "sort", "bitmapscan"):
        connection.execute(sql.SQL("SET LOCAL {} = off").format(sql.Identifier(f"enable_{method}")))
    query = sql.SQL("EXPLAIN ") + compose_search(request, facts)
    rows = connection.execute(query, search_parameters(request), prepare=False).fetchall()
    return "\n".join(row[0] for row in rows)


def test_a_tenant_has_its_own_indexes_until_they_are_taken_away(
    corpus: Corpus, rag: Callable[..., Outcome]
) -> None:
    """Two of chunks and one of windows; made once, used for this tenant only, gone with it."""
    done = rag("tenant", "promote", "ana", "--json")
    assert (done.code, done.err) == (0, "")
    built = own(corpus)
    assert len(built) == 4
    assert done.json["ownIndexes"] is True
    assert rag("tenant", "promote", "ana").out == (
        _("Tenant {name}: vector indexes of its own: {count}.").format(name="ana", count=0) + "\n"
    )
    reader = corpus.database.as_(Access.READER)
    with reader.transaction() as connection:
        many = replace(read_facts(connection, "ana"), chunk_count=EXACT_VECTORS + 1)
        assert any(name in explained(connection, "ana", corpus, many) for name in built)
        theirs = explained(connection, "blas", corpus, many)
        assert not any(name in theirs for name in built)
    assert rag("tenant", "promote", "ana", "--undo").code == 0
    assert own(corpus) == []
    rag("tenant", "promote", "ana")
    assert own(corpus) == built
    with corpus.database.transaction() as connection:  # as a call that was killed
        connection.execute("UPDATE tenants SET has_own_indexes = FALSE")
    assert rag("tenant", "delete", "ana", "--yes").code == 0
    assert own(corpus) == []


def test_few_vectors_of_a_tenant_among_others_are_all_compared(corpus: Corpus) -> None:
    """A tenant that is alone is searched by an index."""
    with corpus.database.transaction() as connection:
        facts = read_facts(connection, "ana")
        assert facts.is_shared
        assert facts.chunk_count <= EXACT_VECTORS
        assert "tenant_id_idx" in explained(connection, "ana", corpus, facts)
    with corpus.database.transaction() as connection:
        connection.execute("DELETE FROM notes WHERE tenant_id = 'blas'")
        alone = read_facts(connection, "ana")
        assert not alone.is_shared
        assert "tenant_id_idx" not in explained(connection, "ana", corpus, alone)
