"""Properties of what is stored and retrieved, on a real PostgreSQL with notes in every state."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pgvector import HalfVector

from rag_resources.core.configuration import ChunkingConfig, RetrievalConfig, Strategy, TopKConfig
from rag_resources.core.contextual import contextual_text
from rag_resources.core.types import NoteRecord, RetrievalResult, Retriever, TimeWindow
from rag_resources.database.pool import Connection, Database
from rag_resources.indexing.chunk import ChunkReport, build_chunks, chunk_window
from rag_resources.indexing.embed import EmbedReport, embed_chunks, embed_each, embed_notes
from rag_resources.ingestion.ingest import ingest
from rag_resources.retrieval.pipeline import MAX_QUERY_CHARS, RetrievalPipeline
from rag_resources.store.chunks import refresh_statistics, replace_chunks
from rag_resources.store.embeddings import (
    complete_pending,
    register_model,
    select_chunk_texts,
    select_note_texts,
    write_chunk_vectors,
    write_note_vectors,
)
from rag_resources.store.notes import Upsert, fetch_notes, note_id, upsert_notes
from rag_resources.store.search import EmbeddedQuery, SearchRequest, search
from tests.embedders import HashEmbedder
from tests.strategies import WORDS, chunking_configs, notes, retrieval_configs, sentence_texts

ALWAYS = TimeWindow(datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC))
SMALL = ChunkingConfig(max_tokens=16, overlap_tokens=4, min_tokens=2)
START = datetime(2025, 1, 1, tzinfo=UTC)
CHUNK_LISTS = (Retriever.SEMANTIC, Retriever.CONTEXTUAL, Retriever.FULLTEXT)
NOTE_LISTS = (Retriever.NOTES_SEMANTIC, Retriever.NOTES_FULLTEXT)

# The database is emptied by every example itself.
one_database = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@dataclass(frozen=True)
class Draft:
    """A note and how far its indexing has come.

    Attributes:
        state: `indexed`, `pending` (chunked, its chunks without vectors) or `new`.
        expired: Whether it expired after all that.
    """

    text: str
    title: str = ""
    state: str = "indexed"
    tenant: str = "ana"
    expired: bool = False

    @property
    def visible(self) -> bool:
        """Whether Ana may find it."""
        return self.tenant == "ana" and not self.expired


SHORT = notes(max_sentences=4)
STATES = ("indexed", "pending", "new")


def drafts(*, foreign: bool = False) -> st.SearchStrategy[list[Draft]]:
    """One to four notes; with `foreign`, some of another tenant and some expired."""
    draft = st.builds(
        Draft,
        text=SHORT,
        title=st.sampled_from(["", "Árbol 2024", "Camión"]),
        state=st.sampled_from(STATES),
        tenant=st.sampled_from(["ana", "blas"]) if foreign else st.just("ana"),
        expired=st.booleans() if foreign else st.just(False),
    )
    return st.lists(draft, min_size=1, max_size=4)


def questions() -> st.SearchStrategy[str]:
    """A few words of those in the notes, or a sentence of any kind."""
    words = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
    return st.one_of(words, words, sentence_texts(max_words=6)).filter(
        lambda text: bool(text.strip()) and len(text) <= MAX_QUERY_CHARS
    )


def configs() -> st.SearchStrategy[RetrievalConfig]:
    """Any retrieval configuration, of the model that the tests have."""
    return retrieval_configs().map(lambda c: c.model_copy(update={"model": "hash_model"}))


def records(corpus: Sequence[Draft], tenant: str) -> list[NoteRecord]:
    """The notes of a tenant as a source gives them; their place is their external id."""
    return [
        NoteRecord(str(n), draft.title, draft.text, START + timedelta(days=n))
        for n, draft in enumerate(corpus)
        if draft.tenant == tenant
    ]


class Corpus:
    """A database that is filled anew by every example."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.embedder = HashEmbedder()
        with database.transaction() as connection:
            register_model(connection, self.embedder.info, embeds_chunks=True)

    def fill(self, corpus: Sequence[Draft], config: ChunkingConfig = SMALL) -> list[UUID]:
        """Replace everything by these notes, each taken as far as its state says.

        By the statements that indexing runs, in one transaction for speed.
        """
        numbers = {note_id(d.tenant, "diario", str(n)): n for n, d in enumerate(corpus)}
        with self.database.bulk() as connection:
            connection.execute("DELETE FROM notes")
            for tenant in sorted({draft.tenant for draft in corpus}):
                upsert_notes(connection, records(corpus, tenant), tenant=tenant, source="diario")
            for note in fetch_notes(connection, numbers).values():
                if corpus[numbers[note.note_id]].state != "new":
                    cut = build_chunks(note, config)
                    replace_chunks(connection, note.note_id, cut, chunking_hash="x")
            self._embed(connection, [n for n in numbers if corpus[numbers[n]].state == "indexed"])
            gone = [note for note, n in numbers.items() if corpus[n].expired]
            connection.execute("UPDATE notes SET expires_at = now() WHERE id = ANY(%s)", (gone,))
            refresh_statistics(connection)
        return list(numbers)

    def _embed(self, connection: Connection, indexed: Sequence[UUID]) -> None:
        name = self.embedder.info.name
        whole = select_note_texts(connection, name, ALWAYS, skipped=[], batch_size=100)
        vectors = self.embedder.embed_passages([note.content for note in whole])
        write_note_vectors(connection, name, whole, [HalfVector(vector) for vector in vectors])
        chunks = select_chunk_texts(connection, name, indexed)
        texts = {chunk.content_sha256: chunk.content for chunk in chunks}
        for chunk in chunks:
            texts[chunk.contextual_sha256] = contextual_text(chunk.context, chunk.content)
        made, _ = embed_each(self.embedder, texts)
        write_chunk_vectors(connection, name, chunks, made)
        assert len(complete_pending(connection, name, indexed)) == len(indexed)

    def index(self, config: ChunkingConfig) -> tuple[ChunkReport, EmbedReport, EmbedReport]:
        """Everything an indexing run does, with the texts remembered so far forgotten."""
        self.embedder.texts.clear()
        reports = (
            chunk_window(self.database, ALWAYS, config),
            embed_chunks(self.database, self.embedder, ALWAYS),
            embed_notes(self.database, self.embedder, ALWAYS),
        )
        with self.database.bulk() as connection:
            refresh_statistics(connection)
        return reports

    def fetch(self, query: str, *parameters: object) -> list[Any]:
        """Rows of a statement."""
        with self.database.transaction() as connection:
            return connection.execute(query, parameters).fetchall()  # type: ignore[arg-type]

    def retrieve(
        self, question: str, config: RetrievalConfig, distinct_notes: int | None = None
    ) -> tuple[RetrievalResult, ...]:
        """What Ana's question finds."""
        pipeline = RetrievalPipeline(
            self.database, embedder=lambda _: self.embedder, tenant="ana", note_model="hash_model"
        )
        return pipeline.retrieve(question, config, distinct_notes=distinct_notes).results

    def lists(
        self, question: str, *, unchunked_only: bool = True, pool: int = 500
    ) -> dict[Retriever, list[tuple[UUID, UUID, float]]]:
        """Every ranked list of Ana's question: chunk, note and score."""
        (vector,) = self.embedder.embed_queries([question])
        embedded = EmbeddedQuery(self.embedder.info, vector, 0.0)
        request = SearchRequest(
            tuple(Retriever), question, "ana", pool, embedded, embedded, unchunked_only
        )
        with self.database.transaction() as connection:
            rankings = search(connection, request)
        return {
            ranking.retriever: [(c.chunk_id, c.note_id, c.score) for c in ranking.candidates]
            for ranking in rankings
        }


@pytest.fixture
def corpus(database: Database) -> Corpus:
    return Corpus(database)


# --- Results ----------------------------------------------------------------------------------


@one_database
@given(drafts(), questions(), configs())
def test_property_01_every_score_is_finite_and_between_0_and_1(
    corpus: Corpus, written: list[Draft], question: str, config: RetrievalConfig
) -> None:
    """Of every list and of the fused results."""
    corpus.fill(written)
    scores = [score for found in corpus.lists(question).values() for _, _, score in found]
    for result in corpus.retrieve(question, config):
        scores += [result.score, result.original_score]
    assert all(math.isfinite(score) and 0 <= score <= 1 for score in scores)


@one_database
@given(drafts(), questions(), configs())
def test_property_03_scores_never_increase_and_ties_go_by_chunk_id(
    corpus: Corpus, written: list[Draft], question: str, config: RetrievalConfig
) -> None:
    corpus.fill(written)
    orders = [[(-s, chunk) for chunk, _, s in found] for found in corpus.lists(question).values()]
    orders.append([(-r.score, r.chunk_id) for r in corpus.retrieve(question, config)])
    for order in orders:
        assert order == sorted(order)


@one_database
@given(drafts(), questions(), configs())
def test_property_04_hybrid_finds_something_if_vectors_or_words_do(
    corpus: Corpus, written: list[Draft], question: str, config: RetrievalConfig
) -> None:
    corpus.fill(written)
    found = {
        strategy: corpus.retrieve(question, config.model_copy(update={"strategy": strategy}))
        for strategy in Strategy
    }
    if found[Strategy.SEMANTIC] or found[Strategy.FULLTEXT]:
        assert found[Strategy.HYBRID]


@one_database
@given(drafts(), questions(), configs())
def test_property_05_every_result_is_complete(
    corpus: Corpus, written: list[Draft], question: str, config: RetrievalConfig
) -> None:
    """And says what is stored: the chunk, or the whole note where it was found as a whole."""
    corpus.fill(written)
    chunks = {
        row.id: (row.note_id, row.chunk_index, row.content)
        for row in corpus.fetch("SELECT id, note_id, chunk_index, content FROM chunks")
    }
    whole = {row.id: (row.id, 0, row.content) for row in corpus.fetch("SELECT * FROM notes")}
    results = corpus.retrieve(question, config)
    assert len(results) <= config.top_k.final
    assert len({result.chunk_id for result in results}) == len(results)
    for result in results:
        stored = (chunks | whole)[result.chunk_id]
        assert (result.note_id, result.chunk_index, result.content) == stored
        found_by = [Retriever(name) for name in result.retrieval_method.split("+")]
        assert found_by
        assert all((name in NOTE_LISTS) == (result.chunk_id in whole) for name in found_by)
        written_out = result.to_json()
        assert all(
            written_out[key] is not None
            for key in ("chunkId", "noteId", "content", "expandedContent", "score", "createdAt")
        )
        assert written_out["metadata"]["matchedChunkBounds"] == list(result.matched_bounds)
        assert written_out["metadata"]["retrievalMethod"]


@one_database
@given(drafts(), questions(), configs())
def test_property_13_expanded_content_is_cut_from_the_note(
    corpus: Corpus, written: list[Draft], question: str, config: RetrievalConfig
) -> None:
    """At the offsets that the chunk's own position and the matched bounds tell."""
    corpus.fill(written)
    contents = {row.id: row.content for row in corpus.fetch("SELECT id, content FROM notes")}
    starts = {row.id: row.start_char for row in corpus.fetch("SELECT id, start_char FROM chunks")}
    for result in corpus.retrieve(question, config):
        start = starts.get(result.chunk_id, 0) - result.matched_bounds[0]
        end = start + len(result.expanded_content)
        assert start >= 0
        assert contents[result.note_id][start:end] == result.expanded_content


@one_database
@given(drafts(), questions(), configs())
def test_property_14_a_chunk_lies_in_its_expanded_content_and_windows_that_meet_are_one(
    corpus: Corpus, written: list[Draft], question: str, config: RetrievalConfig
) -> None:
    corpus.fill(written)
    starts = {row.id: row.start_char for row in corpus.fetch("SELECT id, start_char FROM chunks")}
    windows: dict[UUID, set[tuple[int, int]]] = {}
    for result in corpus.retrieve(question, config):
        first, last = result.matched_bounds
        assert result.expanded_content[first:last] == result.content
        start = starts.get(result.chunk_id, 0) - first
        own = (start, start + len(result.expanded_content))
        windows.setdefault(result.note_id, set()).add(own)
    for spans in windows.values():
        ordered = sorted(spans)
        for before, after in pairwise(ordered):
            assert before[1] < after[0]


# --- The index --------------------------------------------------------------------------------


@one_database
@given(
    drafts(),
    st.lists(st.tuples(st.integers(0, 3), st.none() | SHORT), max_size=4),
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
@given(drafts(), questions())
def test_property_39_notes_in_every_state_are_found_and_none_twice_for_one_reason(
    corpus: Corpus, written: list[Draft], question: str
) -> None:
    """By its chunks or as a whole, never both; a vector search misses no note."""
    notes_ = corpus.fill(written)
    found = corpus.lists(question)
    by_chunks = {note for name in CHUNK_LISTS for _, note, _ in found[name]}
    as_whole = {note for name in NOTE_LISTS for _, note, _ in found[name]}
    indexed = {n for n, draft in zip(notes_, written, strict=True) if draft.state == "indexed"}
    assert by_chunks == indexed
    assert as_whole == set(notes_) - indexed
    for name, candidates in found.items():
        distinct = {(note if name in NOTE_LISTS else chunk) for chunk, note, _ in candidates}
        assert len(distinct) == len(candidates)
    config = RetrievalConfig(
        model="hash_model", similarity_threshold=0, top_k=TopKConfig(retrieval=1, final=1)
    )
    results = corpus.retrieve(question, config, distinct_notes=len(notes_))
    assert {result.note_id for result in results} == set(notes_)
    assert len({result.chunk_id for result in results}) == len(results)


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
            report = ingest(
                corpus.database, records(written, tenant), tenant=tenant, source="diario"
            )
            outcomes |= {name for counts in report.by_month.values() for name in counts}
        return outcomes

    corpus.index(config)
    before = row_versions(corpus)
    assert load() == {Upsert.UNCHANGED}
    assert corpus.index(config) == (ChunkReport(), EmbedReport(), EmbedReport())
    assert corpus.embedder.texts == []
    assert row_versions(corpus) == before


@one_database
@given(drafts(), questions(), configs(), st.randoms(use_true_random=False))
def test_property_43_the_same_corpus_and_question_give_the_same_results(
    corpus: Corpus, written: list[Draft], question: str, config: RetrievalConfig, random: Any
) -> None:
    """Asked again, and of a database to which the same notes came in another order."""
    corpus.fill(written)
    first = corpus.retrieve(question, config)
    assert corpus.retrieve(question, config) == first
    arriving = records(written, "ana")
    random.shuffle(arriving)
    corpus.fetch("DELETE FROM notes RETURNING id")
    for state in STATES:
        those = [r for r in arriving if written[int(r.external_id)].state == state]
        ingest(corpus.database, those, tenant="ana", source="diario")
        if state == "indexed":
            corpus.index(SMALL)
        elif state == "pending":
            chunk_window(corpus.database, ALWAYS, SMALL)
    embed_notes(corpus.database, corpus.embedder, ALWAYS)
    with corpus.database.bulk() as connection:
        refresh_statistics(connection)
    assert corpus.retrieve(question, config) == first


INJECTIONS = [
    "' OR tenant_id = 'blas' --",
    "blas",
    "x' | 'y",
    "%",
    "\\",
    "{tenant} :tenant %(tenant)s",
]


@one_database
@given(drafts(foreign=True), st.one_of(questions(), st.sampled_from(INJECTIONS)), configs())
@example(
    [Draft("La casa de Blas.", tenant="blas"), Draft("La casa.", expired=True), Draft("Casa.")],
    "casa de Blas",
    RetrievalConfig(model="hash_model"),
)
def test_property_44_no_question_finds_foreign_or_expired_notes(
    corpus: Corpus, written: list[Draft], question: str, config: RetrievalConfig
) -> None:
    notes_ = corpus.fill(written)
    visible = {note for note, draft in zip(notes_, written, strict=True) if draft.visible}
    for unchunked_only in (True, False):
        for found in corpus.lists(question, unchunked_only=unchunked_only).values():
            assert {note for _, note, _ in found} <= visible
    assert {result.note_id for result in corpus.retrieve(question, config)} <= visible
