"""The ranked lists of a question against references, and what the pipeline makes of them."""

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from rag_resources.core.configuration import ChunkingConfig, RetrievalConfig, Strategy, TopKConfig
from rag_resources.core.retrievers import RankedList, VectorKind
from rag_resources.core.types import NoteRecord, ScoredChunk, TimeWindow
from rag_resources.database.pool import Database
from rag_resources.indexing.chunk import chunk_window
from rag_resources.indexing.embed import embed_chunks, embed_notes
from rag_resources.ingestion.ingest import ingest
from rag_resources.languages.messages import _
from rag_resources.retrieval.pipeline import RetrievalPipeline
from rag_resources.store import chunks as chunk_store
from rag_resources.store import search as store
from rag_resources.store.chunks import refresh_statistics, update_statistics
from rag_resources.store.models import register_model
from rag_resources.store.notes import note_id
from tests.corpus import ALL_LISTS, VECTOR_LISTS, one_list
from tests.embedders import HashEmbedder

ALWAYS = TimeWindow(datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC))
START = datetime(2025, 1, 1, tzinfo=UTC)
SMALL = ChunkingConfig(max_tokens=24, overlap_tokens=0, min_tokens=0)

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
            register_model(
                connection,
                self.embedder.info,
                {VectorKind.CHUNK, VectorKind.CONTEXTUAL, VectorKind.NOTE},
            )

    def add(self, *texts: str, tenant: str = "ana", title: str = "") -> list[UUID]:
        """Notes that are not chunked; their provisional chunks have no vectors."""
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
    ) -> dict[RankedList, list[ScoredChunk]]:
        """The ranked lists of a question."""
        return {
            name: list(
                one_list(
                    self.database,
                    self.embedder,
                    query,
                    name,
                    tenant=tenant,
                    pool=pool,
                    threshold=threshold,
                )
            )
            for name in retrievers or ALL_LISTS
        }

    def pipeline(self, tenant: str = "ana") -> RetrievalPipeline:
        """The retrieval over this corpus."""
        return RetrievalPipeline(self.database, embedder=lambda _: self.embedder, tenant=tenant)


@pytest.fixture
def tenant() -> str:
    return "ana"


@pytest.fixture
def corpus(database: Database) -> Corpus:
    return Corpus(database)


def config(**changes: Any) -> RetrievalConfig:
    return RetrievalConfig(model="openai_hash", **changes)


def ids(candidates: Sequence[ScoredChunk]) -> list[UUID]:
    return [candidate.chunk_id for candidate in candidates]


def assert_ranked(
    candidates: Sequence[ScoredChunk], expected: Mapping[UUID, float], within: float = 1e-6
) -> None:
    """Same documents, same scores, best first, ties by id."""
    assert {item.chunk_id: item.score for item in candidates} == pytest.approx(expected, abs=within)
    order = [(-item.score, item.chunk_id) for item in candidates]
    assert order == sorted(order)


def cosines(corpus: Corpus, query: str, kind: str) -> dict[UUID, float]:
    """Exact cosines of a question with every stored vector of a kind."""
    (vector,) = corpus.embedder.embed_queries([query])
    own = vector.astype(np.float16).astype(np.float64)
    result = {}
    columns = "coalesce(chunk_id, note_id) AS id, embedding AS vector"
    for row in corpus.fetch(f"SELECT {columns} FROM vectors WHERE kind = %s", kind):
        other = row.vector.to_numpy().astype(np.float64)
        cosine = float(own @ other / np.linalg.norm(own) / np.linalg.norm(other))
        result[row.id] = min(1.0, max(0.0, cosine))
    return result


# --- Each list alone --------------------------------------------------------------------------

QUESTIONS = ["¿Qué pasa con el ascensor?", "fiebre de Vera", "mermelada", "baño urgencias padre"]


@pytest.mark.parametrize("query", QUESTIONS)
def test_vector_lists_are_exact_cosines(corpus: Corpus, query: str) -> None:
    corpus.index(*SENTENCES, title="Diario")

    found = corpus.lists(query, pool=100)

    assert_ranked(found[RankedList.SEMANTIC], cosines(corpus, query, "chunk"))
    assert_ranked(found[RankedList.CONTEXTUAL], cosines(corpus, query, "contextual"))
    assert_ranked(found[RankedList.NOTES], cosines(corpus, query, "note"))


def bm25(corpus: Corpus, query: str) -> dict[UUID, float]:
    """BM25 by the book over PostgreSQL's lexemes, divided by its upper bound.

    The average length is the one that stored weights assume.

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
    average = 200

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
    # Stored weights are whole thousandths.
    assert_ranked(found, expected, within=5e-4)
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
    monkeypatch.setattr(store, "_composed_before", {})
    (limited,) = corpus.lists(query, RankedList.FULLTEXT).values()

    assert limited == [item for item in everything if item in limited]
    contents = corpus.fetch("SELECT content FROM chunks WHERE id = ANY(%s)", ids(limited))
    assert sorted(row.content for row in contents) == [
        "Un establo y un jardín.",
        "Una casa con establo.",
    ]


HARMLESS = [
    *("'", "''", "\\", "a'b\\'c", "& | ! :*", "perro & !gato:*A <-> (pez", "')) | ('x", '"'),
    *("%", "%s %(query)s {dimension} :query", "'; DROP TABLE chunks; --", "E'\\\\'", "$9 $$"),
    *("C:\\Usuarios\\Vera", "http://ejemplo.es/it's?a=b\\c&d='e'", "/ruta/d'una/cosa.txt"),
    *("<b a='x\\y'>&amp;", "vera'o@ejemplo.es", "1e5 -3.7 12:30 n.º", "\u202e\ufeff\x01\x7f"),
    *("casa " * 20_000, "x" * 100_000, "Ⱥ" * 1000, "İ" * 1000, "ß" * 3000, "ñ'" * 3000),
    " ".join(f"palabra{number}" for number in range(3000)),
]


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

    (found,) = corpus.lists(query, RankedList.FULLTEXT).values()

    assert len(found) == 2


def test_ene_is_a_letter_of_its_own(corpus: Corpus) -> None:
    corpus.index("El año nuevo.", "El ano.")

    (found,) = corpus.lists("año", RankedList.FULLTEXT).values()

    assert len(found) == 1


# --- Whose notes, and which -------------------------------------------------------------------


def test_note_that_is_not_chunked_is_found_by_its_provisional_chunk(corpus: Corpus) -> None:
    """So is an edited note: its former chunks are not seen, and keep their vectors."""
    text = "El ascensor no funciona. Hoy tampoco funciona el ascensor de la otra escalera."
    chunked, edited = corpus.index(text, text + " Ni el lunes.")
    former = corpus.fetch("SELECT chunk_id FROM vectors WHERE kind = 'chunk' ORDER BY 1")
    corpus.fetch(
        "UPDATE notes SET content = content || ' Martes.' WHERE id = %s RETURNING 1", edited
    )
    (fresh,) = corpus.add(text)

    def by_note(name: RankedList) -> dict[UUID, bool]:
        """Whether each found note was found by its provisional chunk."""
        (found,) = corpus.lists("ascensor", name, pool=100).values()
        return {item.note_id: item.chunk_id == item.note_id for item in found}

    assert by_note(RankedList.FULLTEXT) == {chunked: False, edited: True, fresh: True}
    assert by_note(RankedList.SEMANTIC) == {chunked: False}
    corpus.embed()
    for name in (*VECTOR_LISTS, RankedList.FULLTEXT):
        assert by_note(name) == {chunked: False, edited: True, fresh: True}
    results = corpus.pipeline().retrieve("ascensor", config()).results
    contents = {result.note_id: result.content for result in results}
    assert contents[edited].endswith("Ni el lunes. Martes.")
    assert contents[fresh] == text
    assert set(former) <= set(corpus.fetch("SELECT chunk_id FROM vectors WHERE kind = 'chunk'"))


@pytest.mark.parametrize("is_chunked", [False, True])
@pytest.mark.parametrize(
    "text",
    ["La coo\u00adpe\u200bra\u00adti\u00adva abre.", "cami\u006f\u0301n y cooperativa"],
)
def test_what_a_reader_does_not_see_hides_no_word(
    corpus: Corpus, text: str, is_chunked: bool
) -> None:
    (note,) = corpus.add(text)
    if is_chunked:
        corpus.chunk()
    found = corpus.pipeline().retrieve("cooperativa", config(strategy=Strategy.FULLTEXT)).results
    assert [result.note_id for result in found] == [note]


def test_words_and_vectors_are_of_what_a_note_shows_and_its_text_stays(corpus: Corpus) -> None:
    text = "La vi&ntilde;a de **Mar**ta. %%No decirle nada del seguro.%% Fin."
    corpus.add(text)
    corpus.chunk()
    corpus.embed()
    searches = {
        word: corpus.pipeline().retrieve(word, config(strategy=Strategy.FULLTEXT)).results
        for word in ("viña", "Marta", "seguro")
    }
    assert [bool(found) for found in searches.values()] == [True, True, False]
    assert searches["viña"][0].content == text
    assert "La viña de Marta. Fin." in corpus.embedder.texts


def test_threshold_of_the_model_holds_unless_the_configuration_has_one(corpus: Corpus) -> None:
    corpus.index(*SENTENCES)
    corpus.fetch("UPDATE embedding_models SET similarity_threshold = 1 RETURNING name")
    semantic = config(strategy=Strategy.SEMANTIC)

    assert corpus.pipeline().retrieve("ascensor", semantic).results == ()
    own = semantic.model_copy(update={"similarity_threshold": 0.0})
    assert len(corpus.pipeline().retrieve("ascensor", own).results) == 5


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
        _("Semantic search is unavailable, using keyword search"),
        _(
            "Nothing is indexed with the model “{model}”, or it was retired. Materialize the "
            "asset embeddings/{model} (if it does not exist, first add the model to "
            "EMBEDDING_MODELS and restart) or choose another configuration."
        ).format(model="nobody"),
    )


@pytest.mark.parametrize("query", ["ascensor\0roto", "ascensor \ud800", "\udcff ascensor"])
def test_characters_the_database_does_not_store_are_no_obstacle(corpus: Corpus, query: str) -> None:
    (note,) = corpus.index("El ascensor no funciona.")

    response = corpus.pipeline().retrieve(query, config())

    assert response.query == query
    assert [result.note_id for result in response.results] == [note]
    assert "fulltext" in "+".join(response.results[0].lists)
