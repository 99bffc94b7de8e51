"""Filters by both search paths, several questions at once, and passages."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import sql
from psycopg.rows import namedtuple_row

from rag_resources.core.configuration import ChunkingConfig
from rag_resources.core.filters import RetrievalFilters, parse_filters
from rag_resources.core.fusion_config import FusionConfig
from rag_resources.core.retrievers import RankedList
from rag_resources.core.types import NoteRecord, ScoredChunk
from rag_resources.database.connection import LimitedRawCursor
from rag_resources.database.pool import Database
from rag_resources.database.queries import numbered
from rag_resources.indexing.chunk import build_chunks
from rag_resources.store import search as store
from rag_resources.store.chunks import refresh_statistics, replace_chunks
from rag_resources.store.notes import fetch_notes, note_id, upsert_notes
from rag_resources.store.passages import fetch_result_vectors
from rag_resources.store.search import (
    EXACT_VECTORS,
    SIDE_CANDIDATES,
    EmbeddedQuery,
    SearchedList,
    SearchFacts,
    SearchOutcome,
    SearchRequest,
    any_visible,
    compose_search,
    read_facts,
    search,
    search_parameters,
)
from rag_resources.store.vector_indexes import ensure_vector_indexes
from tests import corpus as corpora

START = datetime(2025, 1, 1, tzinfo=UTC)
SMALL = ChunkingConfig(max_tokens=16, overlap_tokens=0, min_tokens=0)
CHUNK_VECTORS = (RankedList.SEMANTIC, RankedList.CONTEXTUAL)
CHUNK_LISTS = (*CHUNK_VECTORS, RankedList.FULLTEXT)
ALL_LISTS = (*CHUNK_LISTS, RankedList.NOTES)
EVERYTHING = RetrievalFilters()

# The database is emptied by every example itself.
one_database = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@dataclass(frozen=True)
class Draft:
    """A note and how far its indexing has come.

    Attributes:
        day: It is of so many days after `START`.
        state: `indexed`, `pending` (chunked, its chunks without vectors) or `new` (not chunked, its
            provisional chunk with vectors).
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
            self.embed(connection, [n for n, draft in by_id.items() if draft.state != "pending"])
            gone = [n for n, draft in by_id.items() if draft.expired]
            connection.execute("UPDATE notes SET expires_at = now() WHERE id = ANY(%s)", (gone,))
            refresh_statistics(connection)
        return ids

    def searched(
        self, text: str, *names: RankedList, question: int = 0, threshold: float = 0.0
    ) -> list[SearchedList]:
        """Lists of one question; all of chunks if none is named."""
        (vector,) = self.embedder.embed_queries([text])
        embedded = EmbeddedQuery(self.embedder.info, vector, threshold)
        return [
            SearchedList(
                name,
                question=question,
                embedded=None if name is RankedList.FULLTEXT else embedded,
            )
            for name in names or CHUNK_LISTS
        ]

    def request(
        self,
        lists: Sequence[SearchedList],
        *texts: str,
        filters: RetrievalFilters = EVERYTHING,
        tenant: str = "ana",
        pool: int = 500,
    ) -> SearchRequest:
        """A search of Ana's notes that shows everything found."""
        return SearchRequest(
            tenant=tenant,
            filters=filters,
            texts=texts or ("casa",),
            lists=tuple(lists),
            by_notes=lists[0].name is RankedList.NOTES,
            fusion=FusionConfig(),
            pool=pool,
            shown=5000,
        )

    def alone(
        self, path: "Path", name: RankedList, text: str = "casa", **options: Any
    ) -> list[tuple[UUID, UUID, float, datetime]]:
        """One list on a path: chunk, note, score and date of each."""
        request = self.request(self.searched(text, name), text, **options)
        return [(row.id, row.note_id, row.score, row.created_at) for row in self.run(request, path)]

    def run(self, request: SearchRequest, path: "Path") -> list[Any]:
        """The rows of a search on a path."""
        composed = compose_search(request, path.facts(self), selective=path.selective)
        query, names = numbered(composed)
        values = search_parameters(request)
        with self.database.transaction() as connection:
            cursor = LimitedRawCursor(connection, row_factory=namedtuple_row)
            cursor.execute(query, [values[name] for name in names], prepare=False)
            return [row for row in cursor.fetchall() if row.id is not None]

    def search(self, request: SearchRequest) -> SearchOutcome:
        """A search as a question makes it."""
        with self.database.transaction() as connection:
            return search(connection, request, read_facts(connection, request.tenant))

    def explain(self, request: SearchRequest, path: "Path", *, large: bool = True) -> str:
        """The plan of a search, if wanted as if the tables were large."""
        query = compose_search(request, path.facts(self), selective=path.selective)
        with self.database.transaction() as connection:
            for method in ("seqscan", "sort") if large else ():
                connection.execute(f"SET LOCAL enable_{method} = off")
            rows = connection.execute(
                sql.SQL("EXPLAIN ") + query, search_parameters(request)
            ).fetchall()
        return "\n".join(row[0] for row in rows)


@dataclass(frozen=True)
class Path:
    """A way to search: all find the same.

    Attributes:
        selective: Whether the visible notes are found first and all searched.
        shared: Whether other tenants are said to have notes.
        many: Whether the tenant is said to have more vectors than are all compared.
    """

    selective: bool = False
    shared: bool = False
    many: bool = True

    def facts(self, corpus: Corpus) -> SearchFacts:
        """What is said of the tenant."""
        info = corpus.embedder.info
        count = EXACT_VECTORS + 1 if self.many else 1
        return SearchFacts(self.shared, count, {info.name: info}, frozenset(), None)


@pytest.fixture
def corpus(database: Database) -> Corpus:
    return Corpus(database)


def notes_of(found: Iterable[tuple[UUID, UUID, float, datetime]]) -> set[UUID]:
    return {note for _, note, _, _ in found}


# --- Filters ----------------------------------------------------------------------------------

SOURCES = ("diario", "web")
TAGS = ("a", "b", "c")
METADATA: tuple[dict[str, Any], ...] = (
    {"k": 1},
    {"k": True},
    {"k": "1", "j": None},
    {"k": [1]},
    {"k": {"k": 1}, "j": 2.5},
    {},
)


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


PATHS = {
    "few notes": Path(selective=True),
    "few notes among tenants": Path(selective=True, shared=True),
    "few vectors": Path(shared=True, many=False),
    "an index": Path(),
    "an index among tenants": Path(shared=True),
}


def assert_filters_hold(corpus: Corpus, written: Sequence[Draft], filters: Any) -> None:
    """Exactly the notes that meet the filters are found, by all paths alike."""
    ids = corpus.fill(written)
    drafts_ = dict(zip(ids, written, strict=True))
    visible = {
        note
        for note, draft in drafts_.items()
        if draft.tenant == "ana" and not draft.expired and draft.meets(filters, note)
    }
    embedded = {note for note in visible if drafts_[note].state != "pending"}
    for name in ALL_LISTS:
        ways = [corpus.alone(path, name, filters=filters) for path in PATHS.values()]
        assert all(way == ways[0] for way in ways)
        assert notes_of(ways[0]) == (embedded if name in CHUNK_VECTORS else visible), name
        assert all(day == drafts_[note].created_at for _, note, _, day in ways[0])
    with corpus.database.transaction() as connection:
        assert any_visible(connection, tenant="ana", filters=filters) == bool(visible)


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
            for path in PATHS.values():
                assert notes_of(corpus.alone(path, RankedList.FULLTEXT, filters=filters)) == {note}
            request = corpus.request(corpus.searched("casa"), filters=filters)
            assert {chunk.note_id for chunk in corpus.search(request).chunks} == {note}, text
        statements.add(compose_search(request, Path().facts(corpus)).as_string())
    assert len(statements) == 1
    assert len(corpus.fetch("SELECT id FROM notes")) == len(ids)


# --- How the notes are reached ----------------------------------------------------------------


def test_few_notes_are_searched_without_the_vector_index_and_many_by_it(corpus: Corpus) -> None:
    corpus.fill([Draft(f"La casa número {n}.", tags=TAGS[n % 3 :]) for n in range(60)])
    indexes = ensure_vector_indexes(corpus.database, corpus.embedder.info, min_rows=1)
    built = [index for index in indexes if not index.endswith("_note_hnsw")]
    lists = corpus.searched("casa", *CHUNK_VECTORS)

    for filters in (RetrievalFilters(tags=("b",)), EVERYTHING):
        request = corpus.request(lists, filters=filters, pool=5)
        for name, path in PATHS.items():
            plan = corpus.explain(request, path)
            by_index = [index in plan for index in built]
            assert by_index == [name.startswith("an index")] * len(built), name


def test_many_notes_are_searched_until_enough_meet_the_filters(corpus: Corpus) -> None:
    """The index goes on past the vectors of notes that do not meet them."""
    near = [Draft("La casa de piedra.", day=n) for n in range(150)]
    wanted = [Draft(f"Un ornitorrinco, el número {n}.", tags=("a",), day=n) for n in range(5)]
    ids = corpus.fill([*near, *wanted])
    assert ensure_vector_indexes(corpus.database, corpus.embedder.info, min_rows=1)
    request = corpus.request(
        corpus.searched("La casa de piedra.", RankedList.SEMANTIC, threshold=-1.0),
        filters=RetrievalFilters(tags=("a",)),
        pool=5,
    )
    for path in PATHS.values():
        assert {row.note_id for row in corpus.run(request, path)} == set(ids[150:])


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
    request = corpus.request(
        corpus.searched("casa", RankedList.FULLTEXT), filters=parse_filters(filters), pool=5
    )

    assert index in corpus.explain(request, Path(selective=True), large=False)


def test_words_that_are_rare_elsewhere_do_not_starve_few_notes(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The candidate budget is of the corpus: the exact path has none."""
    monkeypatch.setattr(store, "CANDIDATE_BUDGET", 1)
    monkeypatch.setattr(store, "_composed_before", {})
    texts = ["Un ornitorrinco.", *["Una casa de piedra."] * 8, "La casa de Ana."]
    ids = corpus.fill([Draft(text, day=n) for n, text in enumerate(texts)])
    filters = RetrievalFilters(note_ids=(ids[0], ids[-1]))
    lists = corpus.searched("ornitorrinco en casa", RankedList.FULLTEXT)
    request = corpus.request(lists, "ornitorrinco en casa", filters=filters)

    def found(most: int) -> tuple[ScoredChunk, ...]:
        monkeypatch.setattr(store, "SELECTIVE_NOTES", most)
        return corpus.search(request).chunks

    assert [chunk.note_id for chunk in found(1)] == [ids[0]]
    assert {chunk.note_id for chunk in found(2)} == {ids[0], ids[-1]}
    assert found(1) == found(2)[:1]


# --- Before the search ------------------------------------------------------------------------


# --- Several questions at once ----------------------------------------------------------------

QUESTIONS = ["casa", "la casa de piedra", "ornitorrinco", "grande", "casa"]


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS.keys())
def test_several_questions_at_once_give_the_lists_of_each_alone(corpus: Corpus, path: Path) -> None:
    """Each with its own text, vector and threshold; a question asked twice is answered twice."""
    texts = ["La casa de piedra.", "Un ornitorrinco grande.", "Casa y piedra.", "Una calle."]
    states = ["indexed", "indexed", "pending", "new"]
    corpus.fill([Draft(t, state=s) for t, s in zip(texts * 3, states * 3, strict=True)])
    asked = [
        item
        for number, text in enumerate(QUESTIONS)
        for item in corpus.searched(text, question=number, threshold=number / 10)
    ]

    request = corpus.request(asked, *QUESTIONS, pool=SIDE_CANDIDATES)
    together: list[dict[UUID, float]] = [{} for _ in asked]
    for row in corpus.run(request, path):
        for number, score in zip(row.lists, row.scores, strict=True):
            together[number][row.id] = score

    apart = [
        {row.id: row.score for row in corpus.run(replace(request, lists=(item,)), path)}
        for item in asked
    ]
    assert together == [pytest.approx(each, abs=1e-12) for each in apart]
    assert together[0]
    assert together[0].keys() != together[2 * len(CHUNK_LISTS)].keys()


@pytest.mark.parametrize("filters", [EVERYTHING, RetrievalFilters(tags=("a",))], ids=["all", "tag"])
def test_windows_are_the_same_on_every_path(corpus: Corpus, filters: RetrievalFilters) -> None:
    """Also if more windows are near than are looked at."""
    texts = ["La casa es de piedra. Y la casa es grande. La casa, otra vez.", "Un ornitorrinco."]
    corpus.fill([Draft(text, tags=tags) for text in texts for tags in ((), ("a",), ("a", "b"))])
    corpus.cut()
    for pool in (1, 2, 500):
        found = [
            corpus.alone(path, RankedList.WINDOWS, filters=filters, pool=pool)
            for path in PATHS.values()
        ]
        assert found[0]
        assert all(each == found[0] for each in found)


# --- Passages ---------------------------------------------------------------------------------

TEXT = "La casa de piedra tiene un balcón. " * 3 + "El ornitorrinco vive en el río de al lado."


def test_vectors_of_results_are_those_of_their_model(corpus: Corpus) -> None:
    """Chunks by their standard vector, whole notes by theirs."""
    indexed, fresh = corpus.fill([Draft(TEXT), Draft("Una casa.", state="new")])
    rows = corpus.fetch("SELECT id, note_id, content FROM chunks")
    chunks = [(row.id, row.note_id) for row in rows]
    notes = [(indexed, indexed), (fresh, fresh)]
    nobody = (uuid4(), uuid4())
    with corpus.database.transaction() as connection:

        def fetch(pairs: list[tuple[UUID, UUID]], *, by_notes: bool) -> dict[UUID, Any]:
            return dict(
                fetch_result_vectors(
                    connection, corpus.embedder.info.name, pairs, by_notes=by_notes
                )
            )

        by_chunk = fetch([*chunks, nobody], by_notes=False)
        by_note = fetch([*notes, nobody], by_notes=True)
        assert fetch_result_vectors(connection, "nobody", chunks, by_notes=False) == {}
        assert fetch([], by_notes=False) == {}

    assert len(rows) > 2
    for vectors, texts in (
        (by_chunk, {row.id: row.content for row in rows}),
        (by_note, {indexed: TEXT, fresh: "Una casa."}),
    ):
        assert set(vectors) == set(texts)
        for key, vector in vectors.items():
            assert vector.dtype == np.float32
            assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-6)
            (made,) = corpus.embedder.embed_passages([texts[key]])
            assert float(vector @ made) == pytest.approx(1, abs=1e-5)
