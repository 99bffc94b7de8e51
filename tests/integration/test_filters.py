"""Filters by both search paths, several questions at once, and passages."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import numpy as np
import psycopg
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pgvector import HalfVector
from psycopg import sql

from rag_resources.core.configuration import ChunkingConfig
from rag_resources.core.errors import InvalidFiltersError
from rag_resources.core.filters import RetrievalFilters, parse_filters
from rag_resources.core.retrievers import RankedList
from rag_resources.core.types import Candidate, ModelInfo, NoteRecord, Ranking, TimeWindow
from rag_resources.database.pool import Connection, Database
from rag_resources.indexing.chunk import build_chunks
from rag_resources.store import search as store
from rag_resources.store.chunks import refresh_statistics, replace_chunks
from rag_resources.store.embeddings import claim_note_texts, write_note_vectors
from rag_resources.store.models import register_model
from rag_resources.store.notes import fetch_notes, note_id, upsert_notes
from rag_resources.store.passages import fetch_passages, fetch_result_vectors
from rag_resources.store.ranked_lists import (
    CHUNK_VECTORS,
    CHUNK_WINDOWS,
    EmbeddedQuery,
    ListRequest,
)
from rag_resources.store.search import SearchPlan, SearchScope, compose_search, plan_search, search
from rag_resources.store.vector_indexes import ensure_vector_indexes
from tests import corpus as corpora
from tests.embedders import HashEmbedder

ALWAYS = TimeWindow(datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC))
START = datetime(2025, 1, 1, tzinfo=UTC)
SMALL = ChunkingConfig(max_tokens=16, overlap_tokens=0, min_tokens=0)
CHUNK_LISTS = (RankedList.SEMANTIC, RankedList.CONTEXTUAL, RankedList.FULLTEXT)
NOTE_LISTS = (RankedList.NOTES_SEMANTIC, RankedList.NOTES_FULLTEXT)
ALL_LISTS = (*CHUNK_LISTS, *NOTE_LISTS)
WORD_LISTS = (RankedList.FULLTEXT, RankedList.NOTES_FULLTEXT)
EVERYTHING = RetrievalFilters()

# The database is emptied by every example itself.
one_database = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@dataclass(frozen=True)
class Draft:
    """A note and how far its indexing has come.

    Attributes:
        day: It is of so many days after `START`.
        state: `indexed`, `pending` (chunked, its chunks without vectors) or `new`.
    """

    text: str = "La casa."
    source: str = "diario"
    tags: tuple[str, ...] = ()
    day: int = 0
    metadata: Mapping[str, Any] = field(default_factory=dict)
    state: str = "indexed"
    tenant: str = "ana"
    expired: bool = False

    @property
    def created_at(self) -> datetime:
        """When the note is of."""
        return START + timedelta(days=self.day)

    def meets(self, filters: RetrievalFilters, note: UUID) -> bool:
        """What the filters mean, without a database."""
        return (
            filters.source in (None, self.source)
            and set(filters.tags) <= set(self.tags)
            and (not filters.note_ids or note in filters.note_ids)
            and note not in filters.excluded_note_ids
            and (filters.created_from is None or self.created_at >= filters.created_from)
            and (filters.created_until is None or self.created_at < filters.created_until)
            and all(
                key in self.metadata and same_json(self.metadata[key], value)
                for key, value in filters.metadata.items()
            )
        )


def same_json(one: object, other: object) -> bool:
    """Equal as JSON values, where 1 is 1.0 but not true."""
    return isinstance(one, bool) == isinstance(other, bool) and one == other


class Corpus(corpora.Corpus):
    """Notes of any source and date, and searches below the pipeline."""

    def fill(self, drafts: Sequence[Draft]) -> list[UUID]:  # type: ignore[override]
        """Replace everything by these notes, by the statements that indexing runs."""
        ids = [note_id(d.tenant, d.source, str(number)) for number, d in enumerate(drafts)]
        by_id = dict(zip(ids, drafts, strict=True))
        with self.database.bulk() as connection:
            connection.execute("DELETE FROM notes")
            for number, draft in enumerate(drafts):
                record = NoteRecord(
                    str(number), "", draft.text, draft.created_at, draft.tags, draft.metadata
                )
                upsert_notes(connection, [record], tenant=draft.tenant, source=draft.source)
            for note in fetch_notes(connection, ids).values():
                if by_id[note.note_id].state != "new":
                    cut = build_chunks(note, SMALL)
                    replace_chunks(connection, {note.note_id: cut}, chunking_hash="x")
            self.embed(connection, [n for n, draft in by_id.items() if draft.state == "indexed"])
            gone = [n for n, draft in by_id.items() if draft.expired]
            connection.execute("UPDATE notes SET expires_at = now() WHERE id = ANY(%s)", (gone,))
            refresh_statistics(connection)
        return ids

    def requests(
        self, text: str, *retrievers: RankedList, question: int = 0, threshold: float = 0.0
    ) -> list[ListRequest]:
        """Lists of one question; all by chunk vectors or words if none is named."""
        (vector,) = self.embedder.embed_queries([text])
        embedded = EmbeddedQuery(self.embedder.info, vector, threshold)
        return [
            ListRequest(retriever, text=text, question=question)
            if retriever in WORD_LISTS
            else ListRequest(retriever, embedded=embedded, question=question)
            for retriever in retrievers or ALL_LISTS
        ]

    def scope(self, filters: RetrievalFilters = EVERYTHING, **changes: Any) -> SearchScope:
        """Ana's notes that meet the filters."""
        return SearchScope("ana", filters=filters, chunk_model=self.embedder.info.name, **changes)

    def search(
        self, lists: Sequence[ListRequest], scope: SearchScope, *, pool: int = 500
    ) -> list[Ranking]:
        """The ranked lists."""
        with self.database.transaction() as connection:
            return search(connection, lists, scope, pool=pool)

    def plan(self, scope: SearchScope, *models: str) -> SearchPlan:
        """What to know before a search."""
        with self.database.transaction() as connection:
            return plan_search(connection, scope, models=models)

    def explain(self, lists: Sequence[ListRequest], scope: SearchScope) -> str:
        """The plan of a search if the tables were large."""
        query, parameters = compose_search(lists, scope, pool=5)
        with self.database.transaction() as connection:
            for method in ("seqscan", "sort"):
                connection.execute(f"SET LOCAL enable_{method} = off")
            rows = connection.execute(sql.SQL("EXPLAIN ") + query, parameters).fetchall()
        return "\n".join(row[0] for row in rows)

    def fetch(self, query: str, *parameters: object) -> list[Any]:
        """Rows of a statement."""
        with self.database.transaction() as connection:
            return connection.execute(query, parameters).fetchall()  # type: ignore[arg-type]


@pytest.fixture
def corpus(database: Database) -> Corpus:
    return Corpus(database)


def notes_of(ranking: Ranking) -> set[UUID]:
    return {candidate.note_id for candidate in ranking.candidates}


# --- Filters ----------------------------------------------------------------------------------

SOURCES = ("diario", "web")
TAGS = ("a", "b", "c")
METADATA = ({"k": 1}, {"k": True}, {"k": "1", "j": None}, {"k": [1]}, {"k": {"k": 1}, "j": 2.5}, {})


def drafts() -> st.SearchStrategy[list[Draft]]:
    """One to six notes, some of another tenant and some expired."""
    draft = st.builds(
        Draft,
        text=st.sampled_from(["La casa.", "Una casa grande. Y otra casa.", "Casa nueva del sur."]),
        source=st.sampled_from(SOURCES),
        tags=st.lists(st.sampled_from(TAGS), unique=True).map(tuple),
        day=st.integers(0, 3),
        metadata=st.sampled_from(METADATA),
        state=st.sampled_from(["indexed", "pending", "new"]),
        tenant=st.sampled_from(["ana", "ana", "blas"]),
        expired=st.sampled_from([False, False, True]),
    )
    return st.lists(draft, min_size=1, max_size=6)


@st.composite
def conditions(draw: Callable[..., Any]) -> tuple[RetrievalFilters, list[int], list[int]]:
    """Any filters, and the places of the notes that are asked for and excluded by id."""
    moments = st.none() | st.integers(0, 4).map(lambda day: START + timedelta(days=day))
    first, last = draw(moments), draw(moments)
    if first and last and first >= last:
        last = first + timedelta(days=1)
    values = st.sampled_from([1, 1.0, True, "1", None, 2.5, 3])
    filters = RetrievalFilters(
        source=draw(st.none() | st.sampled_from([*SOURCES, "otra"])),
        tags=draw(st.lists(st.sampled_from(TAGS), max_size=2).map(tuple)),
        created_from=first,
        created_until=last,
        metadata=draw(st.dictionaries(st.sampled_from(["k", "j", "x"]), values, max_size=2)),
    )
    wanted, excluded = (draw(st.lists(st.integers(0, 7), max_size=4)) for _ in range(2))
    return filters, wanted, excluded


def of_places(places: Iterable[int], ids: Sequence[UUID]) -> tuple[UUID, ...]:
    """The ids of notes by place; a place too far is a note nobody has."""
    known = dict(enumerate(ids))
    return tuple(known.get(place, UUID(int=place)) for place in places)


PATHS: dict[str, dict[str, Any]] = {
    "few notes": {"selective": True},
    "few vectors": {"exact": frozenset({CHUNK_VECTORS, CHUNK_WINDOWS}), "is_shared": True},
    "an index": {},
    "an index among tenants": {"is_shared": True},
}
"""The ways to search, as fields of the scope: all find the same."""


def assert_filters_hold(corpus: Corpus, written: Sequence[Draft], filters: Any) -> None:
    """Exactly the notes that meet the filters are found, by both paths alike."""
    ids = corpus.fill(written)
    corpus_ = dict(zip(ids, written, strict=True))
    visible = {
        note
        for note, draft in corpus_.items()
        if draft.tenant == "ana" and not draft.expired and draft.meets(filters, note)
    }
    indexed = {note for note in visible if corpus_[note].state == "indexed"}
    found = {
        (path, unchunked_only): corpus.search(
            corpus.requests("casa"),
            corpus.scope(filters, unchunked_only=unchunked_only, **how),
        )
        for path, how in PATHS.items()
        for unchunked_only in (True, False)
    }
    for (_, unchunked_only), rankings in found.items():
        for ranking in rankings:
            whole = visible - indexed if unchunked_only else visible
            expected = indexed if ranking.name in CHUNK_LISTS else whole
            assert notes_of(ranking) == expected, ranking.name
            for candidate in ranking.candidates:
                assert candidate.created_at == corpus_[candidate.note_id].created_at
    for unchunked_only in (True, False):
        ways = [found[path, unchunked_only] for path in PATHS]
        assert all(way == ways[0] for way in ways)
    matching = corpus.plan(corpus.scope(filters)).matching
    everything = filters.is_empty and {draft.tenant for draft in written} == {"ana"}
    assert matching == (None if everything else len(visible))


@one_database
@given(drafts(), conditions())
def test_filters_agree_with_a_predicate_over_the_notes(
    corpus: Corpus,
    written: list[Draft],
    condition: tuple[RetrievalFilters, list[int], list[int]],
) -> None:
    """Property 44 too: whatever the filters, nothing foreign and nothing expired."""
    filters, wanted, excluded = condition
    ids = [note_id(d.tenant, d.source, str(number)) for number, d in enumerate(written)]
    named = {"note_ids": of_places(wanted, ids), "excluded_note_ids": of_places(excluded, ids)}
    assert_filters_hold(corpus, written, filters.model_copy(update=named))


@pytest.mark.parametrize(
    "filters",
    [
        *({"source": "web"}, {"source": "otra"}, {"tags": ["a"]}, {"tags": ["a", "b", "a"]}),
        *({"created_from": START + timedelta(days=1)}, {"created_until": START}),
        {"created_from": START, "created_until": START + timedelta(microseconds=1)},
        {"created_from": "2025-01-02T01:00:00+01:00", "created_until": "2025-01-03"},
        {"created_until": "9999-12-31T23:59:59Z", "created_from": "0001-01-01"},
        *({"metadata": {"k": value}} for value in (1, 1.0, True, "1", None, 10**30, -0.0, "")),
        {"metadata": {"k": "1", "j": None}},
        {"source": "web", "tags": ["b"], "metadata": {"j": 2.5}, "created_from": START},
    ],
    ids=str,
)
def test_each_filter_alone_and_some_together(corpus: Corpus, filters: dict[str, Any]) -> None:
    """Over notes with every source, tag, day and metadata."""
    written = [
        Draft(source=SOURCES[n % 2], tags=TAGS[n % 4 :], day=n % 3, metadata=METADATA[n % 6])
        for n in range(12)
    ]
    assert_filters_hold(corpus, written, parse_filters(filters))


HOSTILE = [
    *("'", "''", '"', "\\", "a'b\\'c", "'; DROP TABLE notes; --", "' OR tenant_id = 'blas' --"),
    *("%", "%s", "%(tenant)s", ":tenant", "{lists}", "{", "$1", "$$", "E'\\\\'", "\u2028\x01\x7f"),
    *("{a,b}", "NULL", '{"k": 1}', '["x"]', "\\u0000", "*", "(pez | gato)", "😀", "ñ", " ", "{}"),
]


def test_no_text_of_a_filter_reaches_the_statement(corpus: Corpus) -> None:
    """Each finds the one note that has it, and the statement is the same for all."""
    written = [
        Draft(source=text, tags=(text, "a"), metadata={text: text, "k": text}) for text in HOSTILE
    ]
    ids = corpus.fill([*written, Draft(tenant="blas")])
    statements = set()
    for text, note in zip(HOSTILE, ids, strict=False):
        for filters in (
            RetrievalFilters(source=text),
            RetrievalFilters(tags=(text,)),
            RetrievalFilters(metadata={text: text}),
            RetrievalFilters(metadata={"k": text}),
            RetrievalFilters(source=text, tags=(text, "a"), metadata={"k": text}),
        ):
            for selective in (True, False):
                scope = corpus.scope(filters, selective=selective)
                lists = corpus.requests("casa", *CHUNK_LISTS)
                for ranking in corpus.search(lists, scope):
                    assert notes_of(ranking) == {note}, text
            assert corpus.plan(scope).matching == 1
        query, _ = compose_search(lists, scope, pool=5)
        statements.add(query.as_string())
    assert len(statements) == 1
    assert len(corpus.fetch("SELECT id FROM notes")) == len(ids)


@pytest.mark.parametrize(
    "filters",
    [
        *({"source": "a\0"}, {"tags": ["\0"]}, {"metadata": {"\0": 1}}, {"metadata": {"k": "\0"}}),
        *({"source": "\ud800"}, {"metadata": {"k": "\udfff"}}, {"metadata": {"k": float("nan")}}),
        *({"metadata": {"k": float("-inf")}}, {"created_from": "0001-01-01T00:00:00+20:00"}),
        *({"source": ""}, {"tags": ["x"] * 21}, {"metadata": {"k": "x" * 1001}}, {"otro": 1}),
    ],
    ids=ascii,
)
def test_what_no_note_can_have_is_refused(filters: dict[str, Any]) -> None:
    with pytest.raises(InvalidFiltersError):
        parse_filters(filters)


def test_moments_of_any_offset_are_the_same_moments(corpus: Corpus) -> None:
    """Also of those that PostgreSQL does not read."""
    (note,) = corpus.fill([Draft()])
    for offset in ("+23:59", "-23:59", "+00:00"):
        hours = timedelta(hours=int(offset[:3]), minutes=int(offset[0] + offset[4:]))
        local = (START + hours).isoformat()[:19] + offset
        for field_name, expected in (("created_from", {note}), ("created_until", set())):
            filters = parse_filters({field_name: local})
            for ranking in corpus.search(
                corpus.requests("casa", *CHUNK_LISTS), corpus.scope(filters)
            ):
                assert notes_of(ranking) == expected


# --- How the notes are reached ----------------------------------------------------------------


def test_few_notes_are_searched_without_the_vector_index_and_many_by_it(corpus: Corpus) -> None:
    corpus.fill([Draft(f"La casa número {n}.", tags=TAGS[n % 3 :]) for n in range(60)])
    built = ensure_vector_indexes(corpus.database, corpus.embedder.info, min_rows=1)
    lists = corpus.requests("casa", RankedList.SEMANTIC, RankedList.CONTEXTUAL)

    for filters in (RetrievalFilters(tags=("b",)), EVERYTHING):
        by_index = corpus.explain(lists, corpus.scope(filters))
        exact = corpus.explain(lists, corpus.scope(filters, selective=True))
        assert all(name in by_index for name in built)
        assert not any(name in exact for name in built)


@pytest.mark.parametrize(
    ("filters", "index"),
    [
        ({"tags": ["a"]}, "notes_tags_idx"),
        ({"metadata": {"k": 1}}, "notes_metadata_idx"),
        ({"source": "web"}, "notes_external_key"),
        ({"created_from": START}, "notes_newest_idx"),
        ({"note_ids": [uuid4()]}, "notes_tenant_key"),
    ],
)
def test_each_filter_has_its_index(corpus: Corpus, filters: dict[str, Any], index: str) -> None:
    """Of 3,000 notes each filter meets 15 and the planner looks them up."""
    with corpus.database.autocommit() as connection:
        connection.execute(
            """
            INSERT INTO notes (tenant_id, content, source, external_id, tags, created_at, metadata)
            SELECT 'ana', 'Casa.', CASE WHEN n %% 200 = 0 THEN 'web' ELSE 'diario' END, n::text,
                CASE WHEN n %% 200 = 0 THEN ARRAY['a'] ELSE ARRAY['b', 'c'] END,
                %s::timestamptz - n * interval '1 day', jsonb_build_object('k', n %% 200 + 1)
            FROM generate_series(-14, 2985) AS n
            """,
            (START,),
        )
        connection.execute("ANALYZE notes")
    lists = corpus.requests("casa", RankedList.NOTES_FULLTEXT)
    scope = corpus.scope(parse_filters(filters), selective=True)
    query, parameters = compose_search(lists, scope, pool=5)
    with corpus.database.transaction() as connection:
        rows = connection.execute(sql.SQL("EXPLAIN ") + query, parameters).fetchall()

    assert any(index in row[0] for row in rows)


def test_words_that_are_rare_elsewhere_do_not_starve_few_notes(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The candidate budget is of the corpus: the exact path has none."""
    monkeypatch.setattr(store, "CANDIDATE_BUDGET", 1)
    texts = ["Un ornitorrinco.", *["Una casa de piedra."] * 8, "La casa de Ana."]
    ids = corpus.fill([Draft(text, day=n) for n, text in enumerate(texts)])
    filters = RetrievalFilters(note_ids=(ids[0], ids[-1]))
    lists = corpus.requests("ornitorrinco en casa", RankedList.FULLTEXT)

    (budgeted,) = corpus.search(lists, corpus.scope(filters))
    (exact,) = corpus.search(lists, corpus.scope(filters, selective=True))

    assert notes_of(budgeted) == {ids[0]}
    assert notes_of(exact) == {ids[0], ids[-1]}
    assert budgeted.candidates == exact.candidates[:1]


# --- Before the search ------------------------------------------------------------------------


def test_plan_knows_the_models_asked_for(corpus: Corpus) -> None:
    other = ModelInfo("other_model", 7, "ollama", "sha", 0.25, 0)
    with corpus.database.transaction() as connection:
        register_model(connection, other, embeds_chunks=False)
    own = replace(corpus.embedder.info, max_sequence_tokens=0)

    assert corpus.plan(corpus.scope()).models == {}
    assert corpus.plan(corpus.scope(), "nobody").models == {}
    assert corpus.plan(corpus.scope(), "openai_hash", "nobody").models == {"openai_hash": own}
    assert corpus.plan(corpus.scope(), "other_model", "openai_hash", "other_model").models == {
        "openai_hash": own,
        "other_model": other,
    }


def test_notes_are_counted_up_to_the_limit_where_they_may_be_few(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With filters, or with several tenants; one tenant's whole corpus is not counted."""
    corpus.fill([Draft(tags=("a",)) for _ in range(5)])
    tagged = corpus.scope(RetrievalFilters(tags=("a",)))

    assert corpus.plan(corpus.scope()).matching is None
    assert corpus.plan(tagged).matching == 5
    monkeypatch.setattr(store, "SELECTIVE_NOTES", 3)
    assert corpus.plan(tagged).matching == 4
    corpus.fill([Draft(), Draft(), Draft(tenant="blas"), Draft(expired=True)])
    assert corpus.plan(corpus.scope()).matching == 2
    assert corpus.plan(tagged).matching == 0


# --- Several questions at once ----------------------------------------------------------------

QUESTIONS = ["casa", "la casa de piedra", "ornitorrinco", "grande", "casa"]


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS.keys())
def test_several_questions_at_once_give_the_lists_of_each_alone(
    corpus: Corpus, path: dict[str, Any]
) -> None:
    """Each with its own text, vector and threshold; a question asked twice is answered twice."""
    texts = ["La casa de piedra.", "Un ornitorrinco grande.", "Casa y piedra.", "Una calle."]
    states = ["indexed", "indexed", "pending", "new"]
    corpus.fill([Draft(t, state=s) for t, s in zip(texts * 3, states * 3, strict=True)])
    scope = corpus.scope(**path)
    asked = [
        corpus.requests(text, question=number, threshold=number / 10)
        for number, text in enumerate(QUESTIONS)
    ]

    together = corpus.search([item for lists in asked for item in lists], scope, pool=5)

    assert together == [
        ranking for lists in asked for ranking in corpus.search(lists, scope, pool=5)
    ]
    assert [(ranking.question, ranking.name) for ranking in together] == [
        (number, retriever) for number in range(len(QUESTIONS)) for retriever in ALL_LISTS
    ]
    for ranking in together:
        assert ranking.model == ("" if ranking.name in WORD_LISTS else "openai_hash")
    assert together[0].candidates
    assert together[0].candidates != together[len(ALL_LISTS)].candidates


def test_a_vector_is_sent_once_however_many_lists_it_searches(corpus: Corpus) -> None:
    lists = [*corpus.requests("casa"), *corpus.requests("casa"), *corpus.requests("piedra")]

    _, parameters = compose_search(lists, corpus.scope(), pool=5)

    vectors = [value for value in parameters.values() if isinstance(value, HalfVector)]
    texts = [name for name in parameters if name.startswith("query")]
    assert (len(vectors), len(texts)) == (2, 2)


def test_models_of_different_dimensions_are_searched_at_once(corpus: Corpus) -> None:
    """The chunks by one, the notes beside them by the other."""
    indexed, fresh = corpus.fill([Draft(), Draft(state="new")])
    other = HashEmbedder("other_model", 8)
    with corpus.database.transaction() as connection:
        register_model(connection, other.info, embeds_chunks=False)
        whole = claim_note_texts(connection, "other_model", ALWAYS, skipped=[], batch_size=9)
        vectors = other.embed_passages([note.content for note in whole])
        write_note_vectors(connection, "other_model", whole, [HalfVector(v) for v in vectors])
    (vector,) = other.embed_queries(["casa"])
    lists = [
        *corpus.requests("casa", RankedList.SEMANTIC),
        ListRequest(RankedList.NOTES_SEMANTIC, embedded=EmbeddedQuery(other.info, vector, 0.0)),
    ]

    chunks, notes = corpus.search(lists, corpus.scope())

    assert (notes_of(chunks), notes_of(notes)) == ({indexed}, {fresh})
    assert (chunks.model, notes.model) == ("openai_hash", "other_model")


@pytest.mark.parametrize("filters", [EVERYTHING, RetrievalFilters(tags=("a",))], ids=["all", "tag"])
def test_windows_are_the_same_on_every_path(corpus: Corpus, filters: RetrievalFilters) -> None:
    """Also if more windows are near than are looked at."""
    texts = ["La casa es de piedra. Y la casa es grande. La casa, otra vez.", "Un ornitorrinco."]
    corpus.fill([Draft(text, tags=tags) for text in texts for tags in ((), ("a",), ("a", "b"))])
    corpus.cut()
    lists = corpus.requests("casa", RankedList.WINDOWS)
    for pool in (1, 2, 500):
        found = [
            corpus.search(lists, corpus.scope(filters, **path), pool=pool)
            for path in PATHS.values()
        ]
        assert found[0][0].candidates
        assert all(each == found[0] for each in found)


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS.keys())
def test_ties_go_by_id_on_every_path(corpus: Corpus, path: dict[str, Any]) -> None:
    corpus.fill([*[Draft()] * 6, *[Draft(state="new")] * 6])
    for ranking in corpus.search(corpus.requests("casa"), corpus.scope(**path), pool=4):
        ids = [candidate.chunk_id for candidate in ranking.candidates]
        table = "chunks" if ranking.name in CHUNK_LISTS else "notes WHERE chunked_at IS NULL"
        assert ids == sorted(row.id for row in corpus.fetch(f"SELECT id FROM {table}"))[:4]


# --- Passages ---------------------------------------------------------------------------------

TEXT = "La casa de piedra tiene un balcón. " * 3 + "El ornitorrinco vive en el río de al lado."


class CountingCursor(psycopg.Cursor[Any]):
    """Counts the statements of its connection."""

    executed = 0

    def execute(self, *args: Any, **options: Any) -> "CountingCursor":
        CountingCursor.executed += 1
        return super().execute(*args, **options)


@pytest.fixture
def count_statements(corpus: Corpus) -> Callable[[Callable[[Connection], Any]], int]:
    """How many statements something takes."""

    def count(work: Callable[[Connection], Any]) -> int:
        with corpus.database.transaction() as connection:
            usual = connection.cursor_factory
            connection.cursor_factory = CountingCursor
            CountingCursor.executed = 0
            try:
                work(connection)
            finally:
                connection.cursor_factory = usual
            return CountingCursor.executed

    return count


def found_in(rankings: Iterable[Ranking]) -> list[Candidate]:
    return [candidate for ranking in rankings for candidate in ranking.candidates]


def test_passages_are_what_is_stored(corpus: Corpus) -> None:
    """Chunks of one note and of others, and whole notes; a note is held once."""
    ids = corpus.fill([Draft(TEXT), Draft(TEXT, state="new"), Draft(day=2)])
    found = found_in(corpus.search(corpus.requests("casa ornitorrinco"), corpus.scope()))
    pairs = [(candidate.chunk_id, candidate.note_id) for candidate in found]
    assert {note for _, note in pairs} == set(ids)
    gone = (uuid4(), uuid4())
    with corpus.database.transaction() as connection:
        passages = fetch_passages(connection, [*pairs, (uuid4(), ids[0]), gone, (gone[1], gone[1])])

    assert set(passages) == {chunk for chunk, _ in pairs}
    stored = {row.id: row for row in corpus.fetch("SELECT * FROM chunks")}
    notes = {row.id: row for row in corpus.fetch("SELECT * FROM notes")}
    for chunk_id, passage in passages.items():
        note, chunk = notes[passage.note.note_id], passage.chunk
        assert (passage.note.title, passage.note.content) == (note.title, note.content)
        assert passage.note.created_at == note.created_at
        assert note.content[chunk.start_char : chunk.end_char] == chunk.content
        assert (chunk.chunk_id, chunk.note_id) == (chunk_id, note.id)
        if chunk_id in stored:
            assert chunk.chunk_index == stored[chunk_id].chunk_index
            assert chunk.content == stored[chunk_id].content
        else:
            assert (chunk_id, chunk.chunk_index, chunk.content) == (note.id, 0, note.content)
    own = [passage.note for passage in passages.values() if passage.note.note_id == ids[0]]
    assert len(own) > 1
    assert len({id(note) for note in own}) == 1


def test_what_has_expired_or_is_of_another_note_is_no_passage(corpus: Corpus) -> None:
    ids = corpus.fill([Draft(), Draft(), Draft(expired=True), Draft(state="new", expired=True)])
    future = datetime.now(UTC) + timedelta(hours=1)
    corpus.fetch("UPDATE notes SET expires_at = %s WHERE id = %s RETURNING id", future, ids[1])
    chunks = {row.note_id: row.id for row in corpus.fetch("SELECT id, note_id FROM chunks")}
    pairs = [(chunks[note], note) for note in ids[:3]]
    crossed = (chunks[ids[0]], ids[1])
    with corpus.database.transaction() as connection:
        passages = fetch_passages(connection, [*pairs, (ids[3], ids[3])])
        assert fetch_passages(connection, [crossed]) == {}
        assert fetch_passages(connection, []) == {}

    assert set(passages) == {chunks[ids[0]], chunks[ids[1]]}


def test_vectors_of_results_are_those_of_their_model(corpus: Corpus) -> None:
    """Chunks by their standard vector; whole notes by theirs unless another model found them."""
    indexed, fresh = corpus.fill([Draft(TEXT), Draft("Una casa.", state="new")])
    chunks = {row.id: row.content for row in corpus.fetch("SELECT id, content FROM chunks")}
    pairs = [*((chunk, indexed) for chunk in chunks), (fresh, fresh), (uuid4(), uuid4())]
    with corpus.database.transaction() as connection:
        vectors = fetch_result_vectors(connection, "openai_hash", pairs, "openai_hash")
        others = fetch_result_vectors(connection, "openai_hash", pairs, note_model="other_model")
        assert fetch_result_vectors(connection, "nobody", pairs, "nobody") == {}
        assert fetch_result_vectors(connection, "openai_hash", [], "openai_hash") == {}

    texts = {**chunks, fresh: "Una casa."}
    assert set(vectors) == set(texts)
    assert set(others) == set(chunks)
    for chunk, vector in vectors.items():
        assert vector.dtype == np.float32
        assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-6)
        (made,) = corpus.embedder.embed_passages([texts[chunk]])
        assert float(vector @ made) == pytest.approx(1, abs=1e-5)


def test_each_step_takes_one_statement(
    corpus: Corpus, count_statements: Callable[[Callable[[Connection], Any]], int]
) -> None:
    """However many lists, questions and results there are."""
    corpus.fill([Draft(TEXT), Draft(TEXT, state="new")])
    lists = [item for text in QUESTIONS for item in corpus.requests(text)]
    scope = corpus.scope(RetrievalFilters(source="diario"), selective=True)
    found = found_in(corpus.search(lists, scope))
    pairs = [(candidate.chunk_id, candidate.note_id) for candidate in found]
    assert len(set(pairs)) > 3
    model = "openai_hash"

    assert count_statements(lambda c: plan_search(c, scope, models=[model, "nobody"])) == 1
    assert count_statements(lambda c: search(c, lists, scope, pool=5)) == 1
    assert count_statements(lambda c: search(c, [], scope, pool=5)) == 0
    assert count_statements(lambda c: fetch_passages(c, pairs)) == 1
    assert count_statements(lambda c: fetch_result_vectors(c, model, pairs, model)) == 1


@one_database
@given(drafts())
@example([Draft("La casa de Blas.", tenant="blas"), Draft(expired=True), Draft("Casa.")])
def test_property_44_a_tenant_that_is_a_condition_finds_nothing(
    corpus: Corpus, written: list[Draft]
) -> None:
    corpus.fill(written)
    for tenant in ("' OR 1=1 --", "blas' --", "%", ""):
        for path in PATHS.values():
            scope = replace(corpus.scope(**path), tenant=tenant)
            assert found_in(corpus.search(corpus.requests("casa"), scope)) == []
