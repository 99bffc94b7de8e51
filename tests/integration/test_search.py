"""The ranked lists of a question against references, and what the pipeline makes of them."""

import math
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from rag_resources.core.configuration import ChunkingConfig, RetrievalConfig, Strategy, TopKConfig
from rag_resources.core.errors import InvalidQueryError
from rag_resources.core.fusion_config import FusionConfig
from rag_resources.core.messages import Message
from rag_resources.core.query import MAX_QUERY_CHARS
from rag_resources.core.retrievers import RankedList
from rag_resources.core.types import Candidate, NoteRecord, TimeWindow
from rag_resources.database.pool import Database
from rag_resources.indexing.chunk import chunk_window
from rag_resources.indexing.embed import embed_chunks, embed_notes
from rag_resources.ingestion.ingest import ingest
from rag_resources.retrieval.pipeline import RetrievalPipeline
from rag_resources.store import chunks as chunk_store
from rag_resources.store import search as store
from rag_resources.store.chunks import refresh_statistics, update_statistics
from rag_resources.store.index_state import index_version
from rag_resources.store.models import register_model
from rag_resources.store.notes import note_id
from rag_resources.store.ranked_lists import EmbeddedQuery, ListRequest
from rag_resources.store.search import SearchScope, plan_search, search
from tests.embedders import HashEmbedder

ALWAYS = TimeWindow(datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC))
START = datetime(2025, 1, 1, tzinfo=UTC)
SMALL = ChunkingConfig(max_tokens=24, overlap_tokens=0, min_tokens=0)
CHUNK_LISTS = (RankedList.SEMANTIC, RankedList.CONTEXTUAL, RankedList.FULLTEXT)
NOTE_LISTS = (RankedList.NOTES_SEMANTIC, RankedList.NOTES_FULLTEXT)
ALL_LISTS = (*CHUNK_LISTS, *NOTE_LISTS)
WORD_LISTS = (RankedList.FULLTEXT, RankedList.NOTES_FULLTEXT)

SENTENCES = """
La organización del barrio se reunió en Orriols y habló del ascensor.
Vera tiene fiebre y el pediatra dice que es un virus.
El ascensor de la escalera no funciona desde el apagón del lunes.
Lola hizo mermelada de naranja amarga con mucho azúcar y poca agua.
La tortuga se ha roto una pata y la veterinaria la ha vendado.
Ensayamos el réquiem de Fauré en la iglesia; la mezzosoprano cantó muy bien.
El padre se cayó en el baño y lo llevaron a urgencias, a La Fe.
La gotera del baño sigue ahí: llamar otra vez al fontanero.
Compramos habas, tomates y fresas en el bancal de la huerta.
Nos robaron la bicicleta en la puerta de la biblioteca de Benimaclet.
El ascensor, siempre el ascensor: la junta votó arreglarlo en mayo.
Pilar firmó el contrato del piso de Teruel y cenamos en la plaza.
""".strip().splitlines()


class Corpus:
    """A database with one embedder, filled step by step."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.embedder = HashEmbedder()
        self._count = 0
        with database.transaction() as connection:
            register_model(connection, self.embedder.info, embeds_chunks=True)

    def add(self, *texts: str, tenant: str = "ana", title: str = "") -> list[UUID]:
        """Notes that are neither chunked nor embedded."""
        records = []
        for text in texts:
            self._count += 1
            created = START + timedelta(minutes=self._count)
            records.append(NoteRecord(str(self._count), title, text, created))
        ingest(self.database, records, tenant=tenant, source="diario")
        return [note_id(tenant, "diario", record.external_id) for record in records]

    def chunk(self, config: ChunkingConfig = SMALL) -> None:
        """Chunk what is not chunked; its embeddings stay pending."""
        chunk_window(self.database, ALWAYS, config)
        with self.database.transaction() as connection:
            refresh_statistics(connection)

    def embed(self) -> None:
        """Embed what is pending, and whole notes."""
        embed_chunks(self.database, self.embedder, ALWAYS)
        embed_notes(self.database, self.embedder, ALWAYS)

    def index(self, *texts: str, tenant: str = "ana", title: str = "") -> list[UUID]:
        """Notes that are chunked and embedded."""
        notes = self.add(*texts, tenant=tenant, title=title)
        self.chunk()
        self.embed()
        return notes

    def expire(self, note: UUID) -> None:
        """Let a note have expired a moment ago."""
        with self.database.transaction() as connection:
            connection.execute("UPDATE notes SET expires_at = now() WHERE id = %s", (note,))

    def fetch(self, query: str, *parameters: object) -> list[Any]:
        """Rows of a statement."""
        with self.database.transaction() as connection:
            return connection.execute(query, parameters).fetchall()  # type: ignore[arg-type]

    def lists(
        self,
        query: str,
        *retrievers: RankedList,
        pool: int = 20,
        tenant: str = "ana",
        threshold: float = 0.0,
        unchunked_only: bool = True,
    ) -> dict[RankedList, list[Candidate]]:
        """The ranked lists of a question."""
        (vector,) = self.embedder.embed_queries([query])
        embedded = EmbeddedQuery(self.embedder.info, vector, threshold)
        wanted = [
            ListRequest(retriever, text=query)
            if retriever in WORD_LISTS
            else ListRequest(retriever, embedded=embedded)
            for retriever in retrievers or ALL_LISTS
        ]
        scope = SearchScope(
            tenant, chunk_model=self.embedder.info.name, unchunked_only=unchunked_only
        )
        with self.database.transaction() as connection:
            rankings = search(connection, wanted, scope, pool=pool)
            plan = plan_search(connection, scope, models=[])
            if plan.matching is None:  # Else few notes are searched exactly, without a budget.
                assert search(connection, wanted, scope.under(plan), pool=pool) == rankings
        assert [ranking.name for ranking in rankings] == [item.name for item in wanted]
        return {ranking.name: list(ranking.candidates) for ranking in rankings}

    def pipeline(self, tenant: str = "ana") -> RetrievalPipeline:
        """The retrieval over this corpus."""
        return RetrievalPipeline(
            self.database,
            embedder=lambda _: self.embedder,
            tenant=tenant,
            note_model=self.embedder.info.name,
        )


@pytest.fixture
def tenant() -> str:
    return "ana"


@pytest.fixture
def corpus(database: Database) -> Corpus:
    return Corpus(database)


def config(**changes: Any) -> RetrievalConfig:
    return RetrievalConfig(model="openai_hash", **changes)


def ids(candidates: Sequence[Candidate]) -> list[UUID]:
    return [candidate.chunk_id for candidate in candidates]


def assert_ranked(candidates: Sequence[Candidate], expected: Mapping[UUID, float]) -> None:
    """Same documents, same scores, best first, ties by id."""
    assert {item.chunk_id: item.score for item in candidates} == pytest.approx(expected, abs=1e-6)
    order = [(-item.score, item.chunk_id) for item in candidates]
    assert order == sorted(order)


def cosines(corpus: Corpus, query: str, table: str, column: str = "embedding") -> dict[UUID, float]:
    """Exact cosines of a question with every stored vector."""
    key = "note_id" if table.startswith("note") else "chunk_id"
    (vector,) = corpus.embedder.embed_queries([query])
    own = vector.astype(np.float16).astype(np.float64)
    result = {}
    for row in corpus.fetch(f"SELECT {key} AS id, {column} AS vector FROM {table}"):
        other = row.vector.to_numpy().astype(np.float64)
        cosine = float(own @ other / np.linalg.norm(own) / np.linalg.norm(other))
        result[row.id] = min(1.0, max(0.0, cosine))
    return result


# --- Each list alone --------------------------------------------------------------------------

QUESTIONS = ["¿Qué pasa con el ascensor?", "fiebre de Vera", "mermelada", "baño urgencias padre"]


@pytest.mark.parametrize("query", QUESTIONS)
def test_vector_lists_are_exact_cosines(corpus: Corpus, query: str) -> None:
    corpus.index(*SENTENCES, title="Diario")

    found = corpus.lists(query, pool=100, unchunked_only=False)

    table = "chunk_embeddings"
    assert_ranked(found[RankedList.SEMANTIC], cosines(corpus, query, table))
    assert_ranked(
        found[RankedList.CONTEXTUAL], cosines(corpus, query, table, "contextual_embedding")
    )
    assert_ranked(found[RankedList.NOTES_SEMANTIC], cosines(corpus, query, "note_embeddings"))


def bm25(corpus: Corpus, query: str) -> dict[UUID, float]:
    """BM25 by the book over PostgreSQL's lexemes, divided by its upper bound.

    Robertson and Zaragoza, "The Probabilistic Relevance Framework", 2009; k1 1.2, b 0.75; the
    idf of Lucene, which is never negative.
    """
    frequencies: dict[UUID, dict[str, int]] = {}
    for row in corpus.fetch(
        "SELECT c.id, t.lexeme, cardinality(t.positions) AS count FROM chunks c, unnest(c.tsv) t"
    ):
        frequencies.setdefault(row.id, {})[row.lexeme] = row.count
    lexemes = [
        row.lexeme for row in corpus.fetch("SELECT lexeme FROM unnest(spanish_tsvector(%s))", query)
    ]
    average = sum(sum(words.values()) for words in frequencies.values()) / len(frequencies)

    def idf(lexeme: str) -> float:
        holding = sum(lexeme in words for words in frequencies.values())
        return math.log(1 + (len(frequencies) - holding + 0.5) / (holding + 0.5))

    bound = sum(idf(lexeme) * 2.2 for lexeme in lexemes)
    scores = {}
    for chunk, words in frequencies.items():
        norm = 1.2 * (0.25 + 0.75 * sum(words.values()) / average)
        terms = [idf(x) * words[x] * 2.2 / (words[x] + norm) for x in lexemes if x in words]
        if terms:
            scores[chunk] = math.fsum(terms) / bound
    return scores


@pytest.mark.parametrize(
    "query", [*QUESTIONS, "el ascensor, el ascensor y la palabra desconocida", "Fauré réquiem"]
)
def test_full_text_of_chunks_is_bm25(corpus: Corpus, query: str) -> None:
    corpus.index(*SENTENCES, " ".join(SENTENCES), title="Diario")

    found = corpus.lists(query, RankedList.FULLTEXT, pool=100)[RankedList.FULLTEXT]

    expected = bm25(corpus, query)
    assert expected
    assert_ranked(found, expected)
    cut = corpus.lists(query, RankedList.FULLTEXT, pool=2)[RankedList.FULLTEXT]
    assert cut == found[:2]


def test_full_text_of_stale_statistics_still_gives_scores_between_0_and_1(corpus: Corpus) -> None:
    """The statistics are older than some added notes, or than the removal of all but one."""
    corpus.index(*SENTENCES)
    corpus.add("El ascensor de enfrente.", "Un ornitorrinco en el ascensor.")
    chunk_window(corpus.database, ALWAYS, SMALL)
    corpus.embed()
    for query in ("ornitorrinco", "ascensor", "ascensor ornitorrinco"):
        found = corpus.lists(query, RankedList.FULLTEXT)[RankedList.FULLTEXT]
        assert found
        assert all(0 < item.score <= 1 for item in found)
    corpus.fetch("DELETE FROM notes WHERE content !~ 'ornitorrinco' RETURNING id")
    corpus.fetch("UPDATE corpus_statistics SET chunk_count = 1 RETURNING chunk_count")

    (only,) = corpus.lists("ascensor", RankedList.FULLTEXT)[RankedList.FULLTEXT]
    assert 0 < only.score <= 1


def test_budget_takes_the_rarest_words_and_keeps_at_least_one_known(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Candidates hold one of the words within the budget; they are scored by all words."""
    corpus.index(*(f"Casa número {n} con jardín." for n in range(6)), "Una casa con establo.")
    corpus.index("Un establo y un jardín.")
    query = "casa establo jardín palabrainexistente"
    everything = corpus.lists(query, RankedList.FULLTEXT)[RankedList.FULLTEXT]
    assert len(everything) == 8

    monkeypatch.setattr(store, "CANDIDATE_BUDGET", 1)
    (limited,) = corpus.lists(query, RankedList.FULLTEXT).values()

    assert limited == [item for item in everything if item in limited]
    contents = corpus.fetch("SELECT content FROM chunks WHERE id = ANY(%s)", ids(limited))
    assert sorted(row.content for row in contents) == [
        "Un establo y un jardín.",
        "Una casa con establo.",
    ]


def test_unknown_words_find_nothing_by_words(corpus: Corpus) -> None:
    corpus.index(*SENTENCES)
    corpus.add("Una nota sin trocear.")

    found = corpus.lists("xilófono zeppelin", RankedList.FULLTEXT, RankedList.NOTES_FULLTEXT)

    assert list(found.values()) == [[], []]


def test_interrogatives_find_no_other_words_of_their_stem(corpus: Corpus) -> None:
    """The word "cómo" shares its stem with "comer", and "cuánto" with "cuanto"."""
    corpus.index("Vamos a comer arroz en cuanto llegue Ana.", "El fontanero vive en Soria.")

    for query in (
        "¿Cómo vive el fontanero?",
        "¿Cuánto vive el fontanero?",
        "como vive el fontanero",
    ):
        (found,) = corpus.lists(query, RankedList.FULLTEXT).values()
        assert len(found) == 1, query


@pytest.mark.parametrize("query", ["de la que el en y a los", "¿...?", "—", "😀", "\t\n"])
def test_query_without_lexemes_finds_nothing_by_words(corpus: Corpus, query: str) -> None:
    """An empty index or database causes no error, either."""
    lists = (RankedList.FULLTEXT, RankedList.NOTES_FULLTEXT)
    assert list(corpus.lists(query, *lists).values()) == [[], []]
    corpus.index(*SENTENCES)
    corpus.add("de la que el en y a los")
    assert list(corpus.lists(query, *lists).values()) == [[], []]


HARMLESS = [
    *("'", "''", "\\", "a'b\\'c", "& | ! :*", "perro & !gato:*A <-> (pez", "')) | ('x", '"'),
    *("%", "%s %(query)s {dimension} :query", "'; DROP TABLE chunks; --", "E'\\\\'", "$9 $$"),
    *("C:\\Usuarios\\Vera", "http://ejemplo.es/it's?a=b\\c&d='e'", "/ruta/d'una/cosa.txt"),
    *("<b a='x\\y'>&amp;", "vera'o@ejemplo.es", "1e5 -3.7 12:30 n.º", "\u202e\ufeff\x01\x7f"),
    *("casa " * 20_000, "x" * 100_000, "Ⱥ" * 1000, "İ" * 1000, "ß" * 3000, "ñ'" * 3000),
    " ".join(f"palabra{number}" for number in range(3000)),
]


def test_no_query_text_does_any_harm(corpus: Corpus) -> None:
    """Each alone, and with a known word behind it, which is then found as ever."""
    (indexed,) = corpus.index("Un ornitorrinco.")
    (whole,) = corpus.add("Otro ornitorrinco.")
    for query in HARMLESS:
        alone = corpus.lists(query, RankedList.FULLTEXT, RankedList.NOTES_FULLTEXT)
        assert list(alone.values()) == [[], []], query[:50]
        found = corpus.lists(
            query + " ornitorrinco", RankedList.FULLTEXT, RankedList.NOTES_FULLTEXT
        )
        assert [item.note_id for item in found[RankedList.FULLTEXT]] == [indexed], query[:50]
        assert [item.note_id for item in found[RankedList.NOTES_FULLTEXT]] == [whole], query[:50]
    assert len(corpus.fetch("SELECT id FROM notes")) == 2


def test_note_of_any_text_is_indexed_and_found(corpus: Corpus) -> None:
    """The same texts as notes."""
    notes = corpus.index(*(f"Ornitorrinco.\n{text[:4000]}" for text in HARMLESS))

    (found,) = corpus.lists("ornitorrinco", RankedList.FULLTEXT, pool=500).values()

    assert {item.note_id for item in found} == set(notes)


@pytest.mark.parametrize(
    ("query", "word"),
    [
        ("organizacion", "organización"),
        ("organización", "organizaciones"),
        ("organizaciones", "organizacion"),
        ("organizacion", "organizaciones"),
        ("Decision", "decisiones"),
        ("ORGANIZACIÓN", "organización"),
        ("organizacio\u0301n", "organización"),
        ("pingüino", "pinguinos"),
        ("camion", "camiones"),
        ("camiones", "camión"),
        ("cancion", "CANCIÓN"),
    ],
)
def test_accents_case_and_number_do_not_matter(corpus: Corpus, query: str, word: str) -> None:
    corpus.index(f"Hablamos de la {word} del barrio.", "Otra cosa distinta.")
    corpus.add(f"Una nota sobre {word}.", "Otra más.")

    found = corpus.lists(query, RankedList.FULLTEXT, RankedList.NOTES_FULLTEXT)

    assert [len(candidates) for candidates in found.values()] == [1, 1]


def test_ene_is_a_letter_of_its_own(corpus: Corpus) -> None:
    corpus.index("El año nuevo.", "El ano.")

    (found,) = corpus.lists("año", RankedList.FULLTEXT).values()

    assert len(found) == 1


# --- Whose notes, and which -------------------------------------------------------------------


def test_property_44_no_list_holds_foreign_or_expired_notes(corpus: Corpus) -> None:
    """Chunked, pending and unchunked ones, however near the question they are."""
    text = "El ascensor no funciona."
    own = [*corpus.index(text)]
    expired = [*corpus.index(text + " Caducada.")]
    corpus.index(text, tenant="blas")
    own += corpus.add(text)
    expired += corpus.add(text + " Caducada.")
    corpus.add(text, tenant="blas")
    corpus.chunk()
    embed_notes(corpus.database, corpus.embedder, ALWAYS)
    own += corpus.add(text)
    expired += corpus.add(text + " Caducada.")
    corpus.add(text, tenant="blas")
    embed_notes(corpus.database, corpus.embedder, ALWAYS)
    for note in expired:
        corpus.expire(note)

    found = corpus.lists(text)
    assert {r: {item.note_id for item in found[r]} for r in ALL_LISTS} == {
        **{retriever: {own[0]} for retriever in CHUNK_LISTS},
        **{retriever: set(own[1:]) for retriever in NOTE_LISTS},
    }
    everything = corpus.lists(text, *NOTE_LISTS, unchunked_only=False)
    for candidates in everything.values():
        assert {item.note_id for item in candidates} == set(own)
    assert all(not candidates for candidates in corpus.lists(text, tenant="' OR 1=1").values())
    for unit in ("chunks", "notes"):
        results = corpus.pipeline().retrieve(text, config(unit=unit)).results
        assert {result.note_id for result in results} == set(own)


def test_note_that_expires_in_the_future_is_found(corpus: Corpus) -> None:
    (note,) = corpus.index("El ascensor no funciona.")
    corpus.fetch("UPDATE notes SET expires_at = now() + interval '1 hour' RETURNING id")

    for candidates in corpus.lists("ascensor", unchunked_only=False).values():
        assert [item.note_id for item in candidates] == [note]


def test_unchunked_and_pending_notes_come_whole_and_once_per_list(corpus: Corpus) -> None:
    """An edited note and one whose vectors are not all there count among them."""
    text = "El ascensor no funciona. Hoy tampoco funciona el ascensor de la otra escalera."
    chunked, edited = corpus.index(text, text + " Ni el lunes.")
    (pending,) = corpus.add(text)
    corpus.chunk()
    corpus.fetch(
        "UPDATE notes SET content = content || ' Martes.' WHERE id = %s RETURNING 1", edited
    )
    (fresh,) = corpus.add(text)
    embed_notes(corpus.database, corpus.embedder, ALWAYS)

    found = corpus.lists("ascensor", pool=100)

    for retriever in CHUNK_LISTS:
        assert {item.note_id for item in found[retriever]} == {chunked}
    for retriever in NOTE_LISTS:
        assert sorted(ids(found[retriever])) == sorted([edited, pending, fresh])
        assert all(item.chunk_id == item.note_id for item in found[retriever])
    results = corpus.pipeline().retrieve("ascensor", config()).results
    assert len({result.chunk_id for result in results}) == len(results)
    contents = {result.note_id: result.content for result in results}
    assert contents[edited].endswith("Ni el lunes. Martes.")
    assert contents[fresh] == contents[pending] == text


def test_words_alone_search_chunks_before_their_vectors_are_made(corpus: Corpus) -> None:
    """Full text needs no model: what waits for one is searched by its chunks already."""
    (note,) = corpus.add("El ascensor no funciona.")
    corpus.chunk()

    (result,) = corpus.pipeline().retrieve("ascensor", config(strategy=Strategy.FULLTEXT)).results

    assert result.note_id == note
    assert result.retrieval_method == "fulltext"


def test_unit_notes_searches_all_notes_whatever_is_chunked(corpus: Corpus) -> None:
    notes = corpus.index("El ascensor no funciona.", "El ascensor ya funciona.")
    notes += corpus.add("El ascensor, otra vez.")
    corpus.chunk()
    notes += corpus.add("Ascensor.")
    embed_notes(corpus.database, corpus.embedder, ALWAYS)
    for strategy in Strategy:
        results = corpus.pipeline().retrieve("ascensor", config(unit="notes", strategy=strategy))
        assert sorted(r.note_id for r in results.results) == sorted(notes)
        for result in results.results:
            assert result.chunk_id == result.note_id
            assert set(result.retrieval_method.split("+")) <= {"notes_semantic", "notes_fulltext"}


def test_threshold_drops_what_is_too_far(corpus: Corpus) -> None:
    """Inclusive, for each vector list; words know no threshold."""
    corpus.index(*SENTENCES)
    corpus.add(*SENTENCES)
    embed_notes(corpus.database, corpus.embedder, ALWAYS)
    everything = corpus.lists("ascensor", pool=100)
    middle = everything[RankedList.SEMANTIC][3].score

    for retriever, candidates in corpus.lists("ascensor", pool=100, threshold=middle).items():
        exempt = retriever in (RankedList.FULLTEXT, RankedList.NOTES_FULLTEXT)
        kept = [item for item in everything[retriever] if exempt or item.score >= middle]
        assert candidates == kept
        assert kept
    strict = config(strategy=Strategy.SEMANTIC, similarity_threshold=1.0)
    assert corpus.pipeline().retrieve("ascensor", strict).results == ()


def test_threshold_of_the_model_holds_unless_the_configuration_has_one(corpus: Corpus) -> None:
    corpus.index(*SENTENCES)
    corpus.fetch("UPDATE embedding_models SET similarity_threshold = 1 RETURNING name")
    semantic = config(strategy=Strategy.SEMANTIC)

    assert corpus.pipeline().retrieve("ascensor", semantic).results == ()
    own = semantic.model_copy(update={"similarity_threshold": 0.0})
    assert len(corpus.pipeline().retrieve("ascensor", own).results) == 5


def test_ties_go_by_id_and_the_pool_cuts_them_so(corpus: Corpus) -> None:
    corpus.index(*["El ascensor no funciona."] * 6)
    whole = corpus.add(*["El ascensor no funciona."] * 6)
    embed_notes(corpus.database, corpus.embedder, ALWAYS)
    chunks = [row.id for row in corpus.fetch("SELECT id FROM chunks")]

    for pool in (6, 4, 1):
        for retriever, candidates in corpus.lists("ascensor", pool=pool).items():
            expected = sorted(chunks if retriever in CHUNK_LISTS else whole)
            assert ids(candidates) == expected[:pool]


def test_nothing_asked_is_nothing_searched(corpus: Corpus) -> None:
    with corpus.database.transaction() as connection:
        assert search(connection, [], SearchScope("ana"), pool=5) == []


def test_whether_any_note_is_searched_whole(corpus: Corpus) -> None:
    def whole(model: str) -> bool:
        with corpus.database.transaction() as connection:
            scope = SearchScope("ana", chunk_model=model)
            return plan_search(connection, scope, models=[]).any_unchunked

    assert not whole("openai_hash")
    corpus.add("Nota.")
    assert whole("openai_hash")
    corpus.chunk()
    assert whole("openai_hash")
    assert not whole("")
    corpus.embed()
    assert not whole("openai_hash")


def test_refreshing_the_statistics_gives_a_new_version(corpus: Corpus) -> None:
    def version() -> int:
        with corpus.database.transaction() as connection:
            return index_version(connection)

    before = version()
    corpus.index(*SENTENCES)
    counts = {
        row.lexeme: row.document_count
        for row in corpus.fetch("SELECT lexeme, document_count FROM lexeme_statistics")
    }
    assert version() > before
    assert counts["ascensor"] == 3
    corpus.fetch("DELETE FROM notes RETURNING id")
    corpus.chunk()
    assert corpus.fetch("SELECT * FROM lexeme_statistics") == []


def test_accents_fold_letter_by_letter(corpus: Corpus) -> None:
    """Composed or not, in either case; the tilde of ñ is no accent, nor are other alphabets'."""
    with_accents = "áéíóúüàèìòùâêîôûäëïöçÁÉÍÓÚÜÀÈÌÒÙÂÊÎÔÛÄËÏÖÇ"
    without = "aeiouuaeiouaeiouaeiocAEIOUUAEIOUAEIOUAEIOC"
    kept = "ñÑ aZ 9 ß å ø ő έ й 日本 😀 “…”"
    texts = ["", "sin nada", "Ésa acción, ¿según él?", *with_accents, with_accents, *kept, kept]
    texts += [unicodedata.normalize("NFD", text) for text in texts]
    table = str.maketrans(with_accents, without)
    expected = [unicodedata.normalize("NFC", text).translate(table) for text in texts]
    rows = corpus.fetch(
        "SELECT fold_accents(t.text) AS folded FROM unnest(%s::text[]) WITH ORDINALITY "
        "AS t (text, place) ORDER BY t.place",
        texts,
    )
    assert [row.folded for row in rows] == expected


def test_statistics_of_a_small_index_follow_every_change(corpus: Corpus) -> None:
    corpus.index(*SENTENCES)
    with corpus.database.transaction() as connection:
        assert not update_statistics(connection)
        assert update_statistics(connection, rewritten=1)
    corpus.fetch("DELETE FROM chunks WHERE content LIKE 'Vera%%' RETURNING id")
    with corpus.database.transaction() as connection:
        assert update_statistics(connection)


def test_statistics_of_a_large_index_wait_for_a_hundredth_or_a_longer_text_or_a_day(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunk_store, "LARGE_INDEX", 90)
    notes = corpus.index(*(f"Nota {number} del ascensor." for number in range(110)))

    def due_after(change: str, *parameters: object, rewritten: int = 0) -> bool:
        with corpus.database.transaction() as connection:
            connection.execute(change, parameters)  # type: ignore[arg-type]
            return update_statistics(connection, rewritten=rewritten)

    assert not due_after("DELETE FROM notes WHERE id = %s", notes[0])
    assert due_after("DELETE FROM notes WHERE id = %s", notes[1])
    assert not due_after("DELETE FROM notes WHERE id = %s", notes[2], rewritten=1)
    assert due_after("SELECT", rewritten=2)
    assert not due_after("DELETE FROM notes WHERE id = %s", notes[3])
    assert due_after("UPDATE corpus_statistics SET refreshed_at = now() - interval '25 hours'")
    longer = "UPDATE chunks SET topics = %s WHERE id = (SELECT id FROM chunks ORDER BY id LIMIT 1)"
    assert not due_after(longer, "ascensor " * 8)
    assert due_after(longer, "ascensor " * 80)


# --- The pipeline -----------------------------------------------------------------------------


def test_an_evaluation_sees_as_many_distinct_notes_as_the_configuration_searches(
    corpus: Corpus,
) -> None:
    """One long note fills the first lists; what lies beyond them is never ranked."""
    long = " ".join(f"El ascensor número {number} no funciona hoy." for number in range(40))
    corpus.index(long, *(f"Hace {n} días que falla un ascensor en Orriols." for n in range(12)))
    pipeline = corpus.pipeline()

    def ranked(retrieval: int) -> list[UUID]:
        limits = config(top_k=TopKConfig(retrieval=retrieval, final=2))
        results = pipeline.retrieve("el ascensor", limits, distinct_notes=10).results
        assert [r.score for r in results] == sorted((r.score for r in results), reverse=True)
        return [result.note_id for result in results]

    assert len(ranked(2)) == 2
    assert (len(ranked(5)), len(set(ranked(5)))) == (5, 1)
    notes = ranked(100)
    assert len(set(notes)) == 10
    assert notes.count(notes[-1]) == 1


@pytest.mark.parametrize("strategy", [Strategy.SEMANTIC, Strategy.HYBRID])
@pytest.mark.parametrize("unit", ["chunks", "notes"])
def test_model_without_an_index_is_named_and_words_stand_in(
    corpus: Corpus, strategy: Strategy, unit: str
) -> None:
    (note,) = corpus.index("El ascensor no funciona.")
    unknown = RetrievalConfig(model="nobody", strategy=strategy, unit=unit)  # type: ignore[arg-type]

    response = corpus.pipeline().retrieve("ascensor", unknown)

    assert [result.note_id for result in response.results] == [note]
    assert response.degraded == ("semantic",)
    assert response.messages == (
        Message.SEMANTIC_UNAVAILABLE,
        Message.MODEL_NOT_INDEXED.format(model="nobody"),
    )


def test_words_need_no_model(corpus: Corpus) -> None:
    (note,) = corpus.index("El ascensor no funciona.")
    words = RetrievalConfig(model="nobody", strategy=Strategy.FULLTEXT)

    assert [r.note_id for r in corpus.pipeline().retrieve("ascensor", words).results] == [note]


@pytest.mark.parametrize("query", ["", " \n\t", "\u00a0\u3000", "\0", " \0 "])
def test_blank_question_is_refused(corpus: Corpus, query: str) -> None:
    with pytest.raises(InvalidQueryError, match="pregunta"):
        corpus.pipeline().retrieve(query, config())


def test_longest_question_is_answered_and_a_longer_one_refused(corpus: Corpus) -> None:
    (note,) = corpus.index("El ascensor no funciona.")
    longest = "ascensor" + "." * (MAX_QUERY_CHARS - 8)

    assert corpus.pipeline().retrieve(longest, config()).results[0].note_id == note
    with pytest.raises(InvalidQueryError, match=str(MAX_QUERY_CHARS + 1)):
        corpus.pipeline().retrieve(longest + ".", config())


@pytest.mark.parametrize("query", ["ascensor\0roto", "ascensor \ud800", "\udcff ascensor"])
def test_characters_the_database_does_not_store_are_no_obstacle(corpus: Corpus, query: str) -> None:
    (note,) = corpus.index("El ascensor no funciona.")

    response = corpus.pipeline().retrieve(query, config())

    assert response.query == query
    assert [result.note_id for result in response.results] == [note]
    assert "fulltext" in response.results[0].retrieval_method


def test_response_says_what_was_done(corpus: Corpus) -> None:
    corpus.index(*SENTENCES)
    fusion = FusionConfig(method="weighted")

    response = corpus.pipeline().retrieve("¿Qué pasa con el ascensor?", config(fusion=fusion))

    assert (response.strategy, response.model) == ("hybrid", "openai_hash")
    assert list(response.stages) == [
        "transform",
        "embed",
        "plan",
        "search",
        "fuse",
        "fetch",
        "expand",
    ]
    assert sum(response.stages.values()) <= response.latency_ms
    assert response.degraded == response.messages == ()
    (best, *_) = response.results
    assert best.retrieval_method == "semantic+semantic_contextual+fulltext"
    assert "ascensor" in best.content
    assert response.to_json()["results"][0]["metadata"]["chunkIndex"] == best.chunk_index
