"""Windows of chunks in a real database: how they are made, how they go, how they are searched."""

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

import numpy as np
import pytest
from pgvector import HalfVector

from rag_resources.core.configuration import (
    ChunkingConfig,
    RetrievalConfig,
    parse_retrieval,
)
from rag_resources.core.migration_gate import VectorState
from rag_resources.core.retrievers import RankedList, RetrieverName, VectorKind
from rag_resources.core.types import Vectors
from rag_resources.core.windows import WindowsConfig, cut_windows, window_text
from rag_resources.database.pool import Database
from rag_resources.indexing.chunk import chunk_window
from rag_resources.indexing.embed import embed_chunks
from rag_resources.indexing.embedding_queue import EmbedReport
from rag_resources.indexing.verify import discard_all, discard_refused, verify_vectors
from rag_resources.providers.protocols import Embedder
from rag_resources.store.chunks import refresh_statistics
from rag_resources.store.models import register_model
from rag_resources.store.progress import index_is_current
from rag_resources.store.search import (
    WINDOWS_PER_CHUNK,
    EmbeddedQuery,
    SearchedList,
    read_facts,
    search,
)
from rag_resources.store.vector_indexes import ensure_vector_indexes
from rag_resources.store.vectors import Discarded, VectorGaps, count_gaps, is_empty
from tests.corpus import ALWAYS, Corpus, Draft, only
from tests.embedders import HashEmbedder

PAIRS = WindowsConfig(sentences=2, stride=1)
LONG = ChunkingConfig(max_tokens=512, overlap_tokens=0, min_tokens=0)
CAT = "La gata duerme en la cocina. Come sardinas del mercado. Luego toma el sol en el patio."
LIFT = "El ascensor no funciona. La junta votó arreglarlo. Costará novecientos euros."
WALK = "El médico recomienda caminar. Media hora cada día basta. Mejor por la playa."
NOTES = [Draft(CAT, "La gata"), Draft(LIFT, "El ascensor"), Draft(WALK, "")]
NOBODY = UUID(int=0)
KINDS_CUT = (VectorKind.CHUNK, VectorKind.WINDOW)


class Windowed(Corpus):
    """A corpus whose model has windows."""

    def __init__(self, database: Database, config: WindowsConfig = PAIRS) -> None:
        super().__init__(database)
        self.config = config
        self.embedder.info = replace(self.embedder.info, cosine_range=(0.0, 1.0))
        self.register(config)

    def register(self, config: WindowsConfig) -> None:
        """Have the chunks cut in a way."""
        self.config = config
        with self.database.transaction() as connection:
            register_model(connection, self.embedder.info, KINDS_CUT, windows=config)

    def cut(self) -> EmbedReport:
        """Make the windows that are missing, with the texts remembered so far forgotten."""
        self.embedder.texts.clear()
        return embed_chunks(self.database, self.embedder, ALWAYS, windows=self.config)

    def chunk(self) -> None:
        """Chunk the notes that changed."""
        chunk_window(self.database, ALWAYS, LONG)
        with self.database.transaction() as connection:
            refresh_statistics(connection)

    def stored(self) -> set[tuple[str, str]]:
        """The windows there are: the title of their note, their own text."""
        rows = self.fetch(
            "SELECT n.title, substr(c.content, w.start_char + 1, w.end_char - w.start_char) AS text"
            " FROM vectors w JOIN chunks c ON c.id = w.chunk_id JOIN notes n ON n.id = c.note_id"
            " WHERE w.kind = 'window'"
        )
        return {(row.title, row.text) for row in rows}

    def waiting(self) -> set[UUID]:
        """The notes that wait for their windows."""
        return {row.note_id for row in self.fetch("SELECT note_id FROM pending_vectors")}


@pytest.fixture
def tenant() -> str:
    return "ana"


@pytest.fixture
def corpus(database: Database) -> Windowed:
    return Windowed(database)


def searched(method: str = "scaled", **weights: float) -> RetrievalConfig:
    """A configuration of some retrievers by weight."""
    raw = {
        "model": "openai_hash",
        "contextual": False,
        "retrievers": {name: {"weight": weight} for name, weight in weights.items()},
        "fusion": {"method": method},
    }
    return parse_retrieval(raw, origin="prueba")


# --- Making them ------------------------------------------------------------------------------


def expected(notes: Sequence[Draft], config: WindowsConfig = PAIRS) -> set[tuple[str, str]]:
    return {
        (note.title, note.text[span.start : span.end])
        for note in notes
        for span in cut_windows(note.text, config)
    }


def test_every_chunk_gets_the_windows_that_the_core_cuts_and_the_second_run_embeds_nothing(
    corpus: Windowed,
) -> None:
    corpus.fill(NOTES, LONG)
    report = corpus.cut()
    assert corpus.stored() == expected(NOTES)
    assert set(corpus.embedder.texts) == {window_text(*pair) for pair in expected(NOTES)}
    assert (report.notes, report.vectors, report.embedded, report.reused) == (3, 6, 6, 0)
    assert corpus.waiting() == set()
    again = corpus.cut()
    assert (again.notes, again.vectors, corpus.embedder.texts) == (0, 0, [])


def test_a_note_whose_tags_changed_is_found_by_the_new_ones_alone(corpus: Windowed) -> None:
    corpus.fill([*NOTES, Draft("Compramos pan.", tags=("fiesta",))], LONG)
    with corpus.database.transaction() as connection:
        connection.execute("UPDATE notes SET tags = '{merienda}' WHERE 'fiesta' = ANY(tags)")
    for again in (False, True):
        if again:
            corpus.chunk()
        assert corpus.ask("fiesta", searched(fulltext=1.0)).results == ()
        assert len(corpus.ask("merienda", searched(fulltext=1.0)).results) == 1


def test_another_way_of_cutting_queues_every_note_once(corpus: Windowed) -> None:
    ids = corpus.fill(NOTES, LONG)
    corpus.cut()
    single = WindowsConfig(sentences=1, stride=1)
    corpus.register(single)
    assert corpus.waiting() == set(ids)
    corpus.cut()
    assert corpus.stored() == expected(NOTES, single)
    corpus.register(single)
    assert corpus.waiting() == set()


def test_a_text_that_the_model_refuses_leaves_its_note_waiting(corpus: Windowed) -> None:
    ids = corpus.fill(NOTES, LONG)
    corpus.embedder.refuses = "sardinas"
    report = corpus.cut()
    assert [failure.note_id for failure in report.failed] == [ids[0]]
    assert corpus.waiting() == {ids[0]}
    failures = corpus.fetch("SELECT stage, note_id FROM indexing_failures")
    assert [(row.stage, row.note_id) for row in failures] == [("embed_chunk", ids[0])]
    assert corpus.stored() == expected(NOTES[1:])
    corpus.embedder.refuses = ""
    corpus.cut()
    assert corpus.waiting() == set()
    assert corpus.fetch("SELECT FROM indexing_failures") == []


def test_gaps_are_counted_and_the_index_is_current_without_them(corpus: Windowed) -> None:
    corpus.fill(NOTES, LONG)
    name, info = corpus.embedder.info.name, corpus.embedder.info

    def is_current() -> tuple[bool, bool]:
        with corpus.database.transaction() as connection:
            is_done = is_empty(connection, name, ALWAYS)
            return is_done, index_is_current(
                connection, ALWAYS, chunking_hash="x", kinds={name: KINDS_CUT}, windows=PAIRS
            )

    def windows() -> VectorGaps:
        with corpus.database.transaction() as connection:
            (found,) = [g for g in count_gaps(connection, info, ALWAYS) if g.kind == "window"]
        return found

    assert windows().missing == 3
    assert is_current() == (False, False)
    corpus.cut()
    assert is_current() == (True, True)
    assert (windows().owners, windows().vectors, windows().total) == (3, 6, 0)
    with corpus.database.transaction() as connection:
        connection.execute(
            "UPDATE vectors_openai_hash_window SET end_char = 1000 WHERE ctid IN "
            "(SELECT ctid FROM vectors_openai_hash_window LIMIT 1)"
        )
    assert windows().stale == 1


@pytest.mark.parametrize(
    ("spoil", "wrong_norms", "same_direction"),
    [
        ("UPDATE notes SET title = 'otra cosa bien distinta'", 0, False),
        ("UPDATE vectors_openai_hash_window SET embedding = embedding + embedding", 6, True),
        (
            "UPDATE vectors_openai_hash_window AS w SET embedding = o.embedding "
            "FROM vectors_openai_hash_window AS o WHERE o.chunk_id <> w.chunk_id",
            0,
            False,
        ),
    ],
)
def test_windows_that_are_not_the_models_are_found(
    corpus: Windowed, spoil: str, wrong_norms: int, *, same_direction: bool
) -> None:
    assert verify_vectors(corpus.database, corpus.embedder, ALWAYS) == VectorState(0, None, 0, 0)
    corpus.fill(NOTES, LONG)
    corpus.cut()
    good = verify_vectors(corpus.database, corpus.embedder, ALWAYS)
    assert (good.sampled, good.faults) == (10, [])
    with corpus.database.transaction() as connection:
        connection.execute(spoil)
        connection.execute("DELETE FROM pending_vectors")
    bad = verify_vectors(corpus.database, corpus.embedder, ALWAYS)
    assert bad.lowest_cosine is not None
    assert (bad.wrong_norms, bad.lowest_cosine > 0.999) == (wrong_norms, same_direction)
    assert len(bad.faults) == 1


class Impostor:
    """A server that has another model under the name of a corpus's."""

    def __init__(self, corpus: Windowed) -> None:
        self.info = corpus.embedder.info
        normal = np.random.default_rng(1).normal(size=(self.info.dimension,) * 2)
        self._turned = np.linalg.qr(normal)[0].astype(np.float32)
        self.embed_queries = self.embed_passages

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Embed as no one else does."""
        turned: Vectors = HashEmbedder().embed_passages(texts) @ self._turned
        return turned


def test_refused_vectors_are_deleted_and_made_again(corpus: Windowed) -> None:
    """Property 63: exactly the bad ones go, wherever their text is, unless the server is broken."""
    corpus.fill([*NOTES, Draft(LIFT, "El ascensor")], LONG)
    corpus.cut()

    def stored() -> set[tuple[object, ...]]:
        rows = corpus.fetch(
            "SELECT chunk_id, kind, position, embedding::text FROM vectors WHERE note_id IS NULL"
        )
        return {tuple(row) for row in rows}

    def refuse(embedder: Embedder) -> Discarded | None:
        return discard_refused(corpus.database, embedder, ALWAYS)

    good = stored()
    assert refuse(corpus.embedder) == Discarded(0, 0)
    with corpus.database.transaction() as connection:
        connection.execute(
            "WITH w AS (SELECT v.chunk_id, n.title, v.embedding FROM vectors_openai_hash_window v"
            " JOIN chunks c ON c.id = v.chunk_id JOIN notes n ON n.id = c.note_id)"
            " UPDATE vectors_openai_hash_window SET embedding ="
            " (SELECT w.embedding FROM w WHERE w.title = 'La gata' LIMIT 1)"
            " WHERE chunk_id IN (SELECT w.chunk_id FROM w WHERE w.title = 'El ascensor')"
        )
    bad = stored()
    assert refuse(Impostor(corpus)) is None
    assert (stored(), corpus.waiting()) == (bad, set())

    assert refuse(corpus.embedder) == Discarded(len(bad - good), 2)
    assert stored() == good & bad
    assert len(corpus.waiting()) == 2
    assert corpus.cut().reused == 0
    assert (stored(), corpus.waiting()) == (good, set())

    assert discard_all(corpus.database, "openai_hash", ALWAYS).notes == 4
    assert (stored(), len(corpus.waiting())) == (set(), 4)
    corpus.cut()
    assert stored() == good


def test_the_index_of_windows_is_built_once_there_are_enough(corpus: Windowed) -> None:
    corpus.fill(NOTES, LONG)
    corpus.cut()
    info = corpus.embedder.info
    assert ensure_vector_indexes(corpus.database, info, min_rows=7) == []
    names = [f"vectors_{info.name}_window_hnsw"]
    assert ensure_vector_indexes(corpus.database, info, min_rows=6) == names
    assert ensure_vector_indexes(corpus.database, info, min_rows=6) == []


# --- Their end --------------------------------------------------------------------------------


# --- Searching them ---------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["scaled", "weighted", "rrf"])
@pytest.mark.parametrize("config", [{"windows": 1.0}, {"windows": 0.5, "fulltext": 0.5}])
def test_a_chunk_is_found_by_its_best_window_which_the_result_names(
    corpus: Windowed, method: str, config: dict[str, float]
) -> None:
    corpus.fill(NOTES, LONG)
    corpus.cut()
    response = corpus.ask("sardinas mercado sol patio", searched(method, **config))
    assert response.degraded == ()
    first = response.results[0]
    assert first.title == "La gata"
    assert first.matched_window is not None
    start, end = first.matched_window
    assert CAT[start:end] == "Come sardinas del mercado. Luego toma el sol en el patio."
    assert first.to_json()["metadata"]["matchedWindow"] == [start, end]


@pytest.mark.parametrize("indexed", [False, True])
def test_every_chunk_of_the_nearest_windows_is_a_candidate(
    corpus: Windowed, *, indexed: bool
) -> None:
    corpus.fill(NOTES, LONG)
    corpus.cut()
    if indexed:
        assert ensure_vector_indexes(corpus.database, corpus.embedder.info, min_rows=1)
    (vector,) = corpus.embedder.embed_queries(["el ascensor de la cocina"])
    wanted = SearchedList(
        RankedList.WINDOWS, embedded=EmbeddedQuery(corpus.embedder.info, vector, 0.0)
    )
    for pool, expected_chunks in ((1, 2), (2, 3)):
        nearest = corpus.fetch(
            "SELECT chunk_id FROM vectors_openai_hash_window"
            " ORDER BY embedding::halfvec <=> %s::halfvec, chunk_id, position LIMIT %s",
            HalfVector(vector),
            pool * WINDOWS_PER_CHUNK,
        )
        chunks = list(dict.fromkeys(row.chunk_id for row in nearest))
        request = replace(only(wanted, tenant="ana", pool=pool), shown=50)
        with corpus.database.transaction() as connection:
            found = search(connection, request, read_facts(connection, "ana")).chunks
        assert [each.chunk_id for each in found] == chunks
        assert len(chunks) == expected_chunks


def test_a_note_that_waits_for_its_windows_is_found_by_its_words(corpus: Windowed) -> None:
    ids = corpus.fill(NOTES, LONG)
    corpus.embedder.refuses = "ascensor"
    corpus.cut()
    corpus.embedder.refuses = ""
    response = corpus.ask("junta ascensor euros", searched(windows=0.5, fulltext=0.5))
    first = response.results[0]
    assert (first.note_id, "+".join(first.lists)) == (ids[1], "fulltext")
    assert first.matched_window is None
    assert len({result.note_id for result in response.results}) == len(response.results)


ONLY_SCORING = {
    "model": "openai_hash",
    "similarity_threshold": 0.0,
    "retrievers": {
        "semantic": {"weight": 0.25, "candidates": False},
        "windows": {"weight": 0.25},
        "fulltext": {"weight": 0.5},
    },
}


def only_scoring(**changes: object) -> RetrievalConfig:
    """Chunks are found by windows and words; their own vectors only score."""
    return parse_retrieval({**ONLY_SCORING, **changes}, origin="prueba")


@pytest.mark.parametrize(
    "changes",
    [
        {"strategy": "fulltext"},
        {"fusion": {"method": "rrf"}},
        {"retrievers": {"semantic": {"candidates": False}, "fulltext": {}}},
        {
            "retrievers": {
                "semantic": {"candidates": False},
                "windows": {"candidates": False},
                "fulltext": {},
            }
        },
    ],
)
def test_where_nothing_else_finds_by_vectors_or_scores_are_not_looked_up_all_find(
    changes: dict[str, object],
) -> None:
    assert only_scoring().only_scoring == {RetrieverName.SEMANTIC}
    assert only_scoring(**changes).only_scoring == set()


def test_a_model_without_windows_is_searched_by_chunks_in_their_place(database: Database) -> None:
    corpus = Corpus(database)
    corpus.fill(NOTES, LONG)
    response = corpus.ask("sardinas del mercado", searched(windows=0.5, fulltext=0.5))
    assert response.results[0].title == "La gata"
    assert "semantic" in "+".join(response.results[0].lists)
    assert response.degraded == ("windows",)
    assert any("embeddings/openai_hash" in message for message in response.messages)


# --- Comparable scores ------------------------------------------------------------------------


def test_a_fresh_note_whose_unique_word_is_the_question_comes_first(corpus: Windowed) -> None:
    """Lists stretched by themselves put irrelevant chunks before it."""
    fresh = Draft("Compré un quinqué en el rastro para el salón.", "Compras", state="new")
    corpus.fill([*NOTES, fresh], LONG)
    corpus.cut()
    config = searched(semantic=0.3, windows=0.3, fulltext=0.4)
    response = corpus.ask("quinqué", config)
    assert response.results[0].title == "Compras"
    assert response.results[0].score > 2 * response.results[1].score
