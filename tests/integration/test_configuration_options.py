"""Every retrieval option has its documented effect on a real database; none is left out."""

import inspect
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import pytest
from pydantic import BaseModel

from rag_resources.core.configuration import (
    ChunkingConfig,
    RetrievalConfig,
    parse_retrieval,
    with_overrides,
)
from rag_resources.core.deadline import Deadline
from rag_resources.core.errors import DeadlineExceededError
from rag_resources.core.filters import RetrievalFilters
from rag_resources.core.fusion import min_max
from rag_resources.core.retrievers import VectorKind
from rag_resources.core.types import RetrievalResponse, Vectors
from rag_resources.database.pool import Database
from rag_resources.indexing.embed import embed_chunks
from rag_resources.languages.messages import _
from rag_resources.providers.protocols import Embedder, LanguageModel, Reranker
from rag_resources.retrieval.cache import build_caches
from rag_resources.retrieval.pipeline import RetrievalPipeline
from rag_resources.store.models import register_model
from tests.corpus import ALWAYS, GENEROUS_MS, Corpus, Draft
from tests.embedders import HashEmbedder
from tests.graph_corpus import GraphCorpus, event_id, graph_config
from tests.language_models import ScriptedModel

TestT = TypeVar("TestT", bound=Callable[..., None])

LONG = ChunkingConfig(max_tokens=512, overlap_tokens=0, min_tokens=0)
ONE_SENTENCE = ChunkingConfig(max_tokens=16, overlap_tokens=0, min_tokens=0)
WALK = "El médico recomienda caminar media hora cada día."
PILLS = "El médico cambió las pastillas de la tensión por otras."
SLEEPS = "La gata negra de Pilar duerme siempre en la cocina."
EATS = "Come sardinas frescas del mercado cada tarde."
SUNBATHES = "Luego toma el sol en la ventana del patio."
CAT = f"{SLEEPS} {EATS} {SUNBATHES}"
LIFT = (
    "El ascensor de la escalera no funciona desde el lunes. La junta votó arreglarlo antes de mayo."
)
DRAFTS = [
    Draft(CAT, title="Animales", tags=("casa",)),
    Draft(LIFT),
    Draft(WALK),
    Draft(PILLS),
    Draft(WALK),
    Draft(WALK),
    Draft("La gata negra de Blas duerme en el tejado.", tenant="blas"),
]

WHERE = "¿Dónde duerme la gata negra?"
TWO_QUESTIONS = "¿Dónde duerme la gata? ¿Cuándo votó la junta lo del ascensor?"
DOCTOR = "¿Qué recomienda el médico?"
ABSTRACT = "Felinos y felicidad"

# One list by vectors and one by words, whose scores can be computed by hand.
TWO_LISTS = {"contextual": False, "strategy": "hybrid"}
BY_VECTORS = {"contextual": False, "strategy": "semantic", "similarity_threshold": 0.0}

tested: set[str] = set()


def changes(option: str) -> Callable[[TestT], TestT]:
    """Mark the test of an option, given by its path."""

    def marked(test: TestT) -> TestT:
        tested.add(option)
        return test

    return marked


class Notes:
    """The drafts, indexed by two models, and pipelines over them."""

    def __init__(self, database: Database) -> None:
        self.corpus = Corpus(database)
        self.ids = self.corpus.fill(DRAFTS, ONE_SENTENCE)
        self.second = HashEmbedder("second_model", dimension=8)
        with database.transaction() as connection:
            register_model(
                connection,
                self.second.info,
                {VectorKind.CHUNK, VectorKind.CONTEXTUAL, VectorKind.NOTE},
            )
        embed_chunks(database, self.second, ALWAYS)

    def pipeline(self, **parts: Any) -> RetrievalPipeline:
        """A pipeline of Ana's."""
        embedders = {"openai_hash": self.corpus.embedder, "second_model": self.second}
        defaults: dict[str, Any] = {"embedder": embedders.__getitem__}
        return RetrievalPipeline(self.corpus.database, tenant="ana", **defaults | parts)

    def ask(
        self,
        question: str,
        overrides: Mapping[str, Any] | None = None,
        *,
        language_model: LanguageModel | None = None,
        reranker: Reranker | None = None,
        embedder: Embedder | None = None,
        **options: Any,
    ) -> RetrievalResponse:
        """What a question finds with some options changed."""
        parts: dict[str, Any] = {"language_model": language_model}
        if reranker:
            parts["reranker"] = lambda config, embedder: reranker
        if embedder:
            parts["embedder"] = lambda name: embedder
        return self.pipeline(**parts).retrieve(
            question, config(overrides), **{"deadline_ms": GENEROUS_MS} | options
        )


def config(overrides: Mapping[str, Any] | None = None) -> RetrievalConfig:
    """The defaults, of the model the tests have, with some options changed."""
    base = {"model": "openai_hash", "reranking": {"model": "openai_hash"}}
    return with_overrides(with_overrides(RetrievalConfig(), base), overrides or {})


def contents(response: RetrievalResponse) -> list[str]:
    return [result.content for result in response.results]


def scores(response: RetrievalResponse) -> list[float]:
    return [result.score for result in response.results]


def methods(response: RetrievalResponse) -> set[str]:
    """The retrievers that found any of the results."""
    return {name for result in response.results for name in result.lists}


def cosines(embedder: Embedder, question: str, texts: Sequence[str]) -> list[float]:
    found = embedder.embed_passages(texts) @ embedder.embed_queries([question])[0]
    return [float(cosine) for cosine in found]


class Recorder(Reranker):
    """Scores everything alike, and remembers what it was given and for how long."""

    def __init__(self) -> None:
        self.passages: list[str] = []
        self.granted_ms = 0.0

    def score(self, query: str, passages: Sequence[str], *, deadline: Deadline) -> list[float]:
        """Give each passage 0.5."""
        self.passages = list(passages)
        self.granted_ms = deadline.remaining_ms
        return [0.5] * len(passages)


@pytest.fixture
def notes(database: Database) -> Notes:
    return Notes(database)


@pytest.fixture
def opened() -> Iterator[threading.Event]:
    """An event that slow parts wait for; set at the end, so that no thread is left."""
    event = threading.Event()
    yield event
    event.set()


# --- What is searched -------------------------------------------------------------------------


@changes("unit")
def test_unit_says_whether_chunks_or_whole_notes_are_found(notes: Notes) -> None:
    assert contents(notes.ask(WHERE, {"unit": "chunks"}))[0] == SLEEPS
    whole = notes.ask(WHERE, {"unit": "notes"})
    assert contents(whole)[0] == CAT
    assert methods(whole) == {"notes_semantic"}


@changes("strategy")
@pytest.mark.parametrize(
    ("strategy", "stages", "found_by"),
    [
        ("semantic", {"embed"}, {"semantic", "semantic_contextual"}),
        ("fulltext", set(), {"fulltext"}),
        ("hybrid", {"embed"}, {"semantic", "semantic_contextual", "fulltext"}),
        ("hybrid+rerank", {"embed", "rerank"}, {"semantic", "semantic_contextual", "fulltext"}),
    ],
)
def test_strategy_says_which_searches_take_place(
    notes: Notes, strategy: str, stages: set[str], found_by: set[str]
) -> None:
    response = notes.ask(WHERE, {"strategy": strategy})
    assert methods(response) == found_by
    assert set(response.stages) & {"embed", "rerank"} == stages
    assert {result.rerank_score is not None for result in response.results} == {"rerank" in stages}
    assert response.strategy == strategy


@changes("model")
def test_model_is_the_one_whose_vectors_are_searched(notes: Notes) -> None:
    answers = {}
    for embedder in (notes.corpus.embedder, notes.second):
        response = notes.ask(WHERE, BY_VECTORS | {"model": embedder.info.name})
        expected = cosines(embedder, WHERE, contents(response))
        assert scores(response) == pytest.approx(expected, abs=0.002)
        assert response.model == embedder.info.name
        answers[response.model] = scores(response)
    assert answers["openai_hash"] != pytest.approx(answers["second_model"], abs=0.01)


@changes("score")
def test_score_is_the_other_model_that_scores_what_was_found(notes: Notes) -> None:
    found = notes.ask(WHERE, BY_VECTORS)
    scored = notes.ask(WHERE, BY_VECTORS | {"score": {"model": "second_model", "weight": 1.0}})
    assert (found.degraded, scored.degraded) == ((), ())
    assert contents(scored) != contents(found)
    by_second = cosines(notes.second, WHERE, contents(scored))
    assert by_second == pytest.approx(sorted(by_second, reverse=True), abs=0.002)


@changes("similarity_threshold")
def test_similarity_threshold_leaves_out_what_is_less_similar(notes: Notes) -> None:
    """Without one the model's own counts."""
    everything = notes.ask(WHERE, BY_VECTORS)
    first, second, *_ = scores(everything)
    middle = (first + second) / 2
    assert scores(notes.ask(WHERE, BY_VECTORS | {"similarity_threshold": middle})) == [first]
    notes.corpus.fetch("UPDATE embedding_models SET similarity_threshold = %s RETURNING 1", middle)
    of_the_model = {"contextual": False, "strategy": "semantic"}
    assert scores(notes.ask(WHERE, of_the_model)) == [first]


@changes("contextual")
def test_contextual_says_whether_the_vectors_with_context_are_searched(notes: Notes) -> None:
    assert "semantic_contextual" in methods(notes.ask(WHERE, {"contextual": True}))
    assert methods(notes.ask(WHERE, {"contextual": False})) == {"semantic", "fulltext"}


# --- Fusion -----------------------------------------------------------------------------------


def best_score(notes: Notes, **fusion: Any) -> float:
    """Of the chunk that is the first of both lists."""
    best = notes.ask(WHERE, TWO_LISTS | {"fusion": fusion}).results[0]
    assert "+".join(best.lists) == "semantic+fulltext"
    return best.score


@changes("fusion.method")
def test_fusion_method_is_by_rank_or_by_score(notes: Notes) -> None:
    assert best_score(notes, method="rrf") == pytest.approx(0.5 / 61 + 0.5 / 61)
    assert best_score(notes, method="weighted") == pytest.approx(1.0)


@changes("fusion.rank_constant")
def test_fusion_rank_constant_damps_the_ranks(notes: Notes) -> None:
    assert best_score(notes, method="rrf", rank_constant=9) == pytest.approx(1 / 10)


def weighted(notes: Notes, **weights: float) -> RetrievalResponse:
    """Fused by rank with these weights."""
    retrievers = {name: {"weight": weight} for name, weight in weights.items()}
    return notes.ask(WHERE, TWO_LISTS | {"fusion": {"method": "rrf"}, "retrievers": retrievers})


@changes("retrievers")
def test_retrievers_say_what_searches_and_how_much_it_counts(notes: Notes) -> None:
    best = weighted(notes, semantic=0.9, fulltext=0.2).results[0]
    assert best.score == pytest.approx((0.9 + 0.2) / 61)
    only_words = weighted(notes, semantic=0)
    by_words = [result for result in only_words.results if "fulltext" in result.lists]
    assert by_words == list(only_words.results[: len(by_words)])
    assert set(scores(only_words)[len(by_words) :]) == {0.0}
    assert contents(weighted(notes, fulltext=0)) == contents(notes.ask(WHERE, BY_VECTORS))
    words = parse_retrieval(
        {"model": "openai_hash", "retrievers": {"fulltext": {}}}, origin="words"
    )
    response = notes.pipeline().retrieve(WHERE, words, deadline_ms=GENEROUS_MS)
    assert methods(response) == {"fulltext"}
    assert (response.messages, response.degraded) == ((), ())


# --- Re-ranking -------------------------------------------------------------------------------


def reranking(**options: Any) -> dict[str, Any]:
    return TWO_LISTS | {"strategy": "hybrid+rerank", "reranking": options}


@changes("reranking.enabled")
def test_reranking_enabled_says_whether_it_takes_place(notes: Notes) -> None:
    without = notes.ask(WHERE, reranking(enabled=False))
    assert "rerank" not in without.stages
    assert [result.rerank_score for result in without.results] == [None] * 5
    assert "rerank" in notes.ask(WHERE, reranking(enabled=True)).stages


@changes("reranking.method")
def test_reranking_method_says_who_scores(notes: Notes) -> None:
    model = ScriptedModel({"scores": [0.25]})
    options = {"batch_size": 1, "weight": 1}
    by_model = notes.ask(WHERE, reranking(method="llm", **options), language_model=model)
    assert {result.rerank_score for result in by_model.results} == {0.25}
    asked = len(model.calls)
    by_sentences = notes.ask(WHERE, reranking(method="sentences"), language_model=model)
    assert len(model.calls) == asked > 0
    assert 0.25 not in {result.rerank_score for result in by_sentences.results}


@changes("reranking.model")
def test_reranking_model_is_the_one_that_embeds_the_sentences(notes: Notes) -> None:
    for embedder in (notes.corpus.embedder, notes.second):
        response = notes.ask(WHERE, reranking(model=embedder.info.name))
        expected = cosines(embedder, WHERE, contents(response))
        found = [result.rerank_score for result in response.results]
        assert found == pytest.approx(expected, abs=1e-5)


@changes("reranking.weight")
@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0])
def test_reranking_weight_is_the_share_of_its_score(notes: Notes, weight: float) -> None:
    overrides = reranking(weight=weight, model="second_model")
    results = notes.ask(WHERE, overrides | {"top_k": {"reranking": 5}}).results
    fused = np.array(min_max([result.original_score for result in results]))
    own = np.array(min_max([result.rerank_score or 0.0 for result in results]))
    assert [result.score for result in results] == pytest.approx(
        list((1 - weight) * fused + weight * own)
    )


@changes("reranking.batch_size")
@pytest.mark.parametrize(("batch_size", "calls"), [(1, 4), (2, 2), (4, 1)])
def test_reranking_batch_size_is_how_many_passages_a_call_holds(
    notes: Notes, batch_size: int, calls: int
) -> None:
    model = ScriptedModel({"scores": [0.5] * batch_size})
    overrides = reranking(method="llm", batch_size=batch_size) | {"top_k": {"reranking": 4}}
    response = notes.ask(WHERE, overrides, language_model=model)
    assert response.degraded == ()
    assert len(model.calls) == calls


@changes("reranking.timeout_ms")
def test_reranking_timeout_ms_is_how_long_it_is_waited_for(
    notes: Notes, opened: threading.Event
) -> None:
    class Slow(Recorder):
        def score(self, query: str, passages: Sequence[str], *, deadline: Deadline) -> list[float]:
            super().score(query, passages, deadline=deadline)
            opened.wait(30)
            raise DeadlineExceededError(_("There is no time left for this part of the search."))

    fused, slow = notes.ask(WHERE, TWO_LISTS), Slow()
    late = notes.ask(WHERE, reranking(timeout_ms=30), reranker=slow)
    assert slow.granted_ms <= 30
    assert late.degraded == ("rerank",)
    assert contents(late) == contents(fused)
    patient = Recorder()
    assert notes.ask(WHERE, reranking(timeout_ms=4_000), reranker=patient).degraded == ()
    assert 30 < patient.granted_ms <= 4_000


# --- Transformation ---------------------------------------------------------------------------


@changes("transformation.enabled")
def test_transformation_enabled_says_whether_more_than_the_question_is_searched(
    notes: Notes,
) -> None:
    model = ScriptedModel({"answer": SLEEPS, "intent": "causal"})
    off = {"transformation": {"enabled": False}}
    for question in (TWO_QUESTIONS, ABSTRACT):
        transformed = notes.ask(question, off, language_model=model).transformed
        assert transformed is not None
        assert transformed.sub_queries == ()
        assert transformed.hypothetical_answer is None
    assert model.calls == []
    on = notes.ask(TWO_QUESTIONS, language_model=model).transformed
    assert on is not None
    assert len(on.sub_queries) == 2


@changes("transformation.decomposition")
def test_transformation_decomposition_searches_the_questions_inside(notes: Notes) -> None:
    """What answers one of them comes first, as it does when that one is asked alone."""
    one_vector = {"contextual": False}
    apart = notes.ask(TWO_QUESTIONS, {"transformation": {"decomposition": True}, **one_vector})
    whole = notes.ask(TWO_QUESTIONS, {"transformation": {"decomposition": False}, **one_vector})
    assert apart.transformed is not None
    assert whole.transformed is not None
    assert len(apart.transformed.sub_queries) == 2
    assert whole.transformed.sub_queries == ()
    assert scores(apart) != scores(whole)
    best = {contents(notes.ask(part, one_vector))[0] for part in apart.transformed.sub_queries}
    assert best == set(contents(apart)[:2])


@changes("transformation.coordinated")
def test_transformation_coordinated_searches_the_questions_inside_a_single_one(
    notes: Notes,
) -> None:
    question = "¿Dónde duerme la gata y cuánto cuesta el abono del tren?"
    apart = notes.ask(question, {"transformation": {"coordinated": True}})
    whole = notes.ask(question, {"transformation": {"coordinated": False}})
    assert apart.transformed is not None
    assert whole.transformed is not None
    assert len(apart.transformed.sub_queries) == 2
    assert whole.transformed.sub_queries == ()
    assert scores(apart) != scores(whole)


@changes("transformation.hyde")
def test_transformation_hyde_searches_a_made_up_answer(notes: Notes) -> None:
    model = ScriptedModel({"answer": SLEEPS})
    near = BY_VECTORS | {"similarity_threshold": 0.9}
    with_answer = notes.ask(ABSTRACT, near, language_model=model)
    assert contents(with_answer) == [SLEEPS]
    assert with_answer.transformed is not None
    assert with_answer.transformed.hypothetical_answer == SLEEPS
    without = near | {"transformation": {"hyde": False}}
    assert contents(notes.ask(ABSTRACT, without, language_model=model)) == []


# --- Order, context, sizes --------------------------------------------------------------------


@changes("diversity_weight")
def test_diversity_weight_puts_what_is_unlike_before_what_repeats(notes: Notes) -> None:
    assert contents(notes.ask(DOCTOR, {"diversity_weight": 0}))[:3] == [WALK] * 3
    first, second, *_ = contents(notes.ask(DOCTOR, {"diversity_weight": 0.7}))
    assert first == WALK
    assert second != WALK


@changes("context.sentences_before")
def test_context_sentences_before_come_with_a_passage(notes: Notes) -> None:
    options = {"top_k": {"final": 1}, "context": {"sentences_after": 0}}
    question = "¿Quién toma el sol en la ventana?"
    for count, expected in ((0, SUNBATHES), (1, f"{EATS} {SUNBATHES}"), (2, CAT)):
        options["context"]["sentences_before"] = count
        (result,) = notes.ask(question, options).results
        assert result.content == SUNBATHES
        assert result.expanded_content == expected


@changes("context.sentences_after")
def test_context_sentences_after_come_with_a_passage(notes: Notes) -> None:
    options = {"top_k": {"final": 1}, "context": {"sentences_before": 0}}
    for count, expected in ((0, SLEEPS), (1, f"{SLEEPS} {EATS}"), (2, CAT)):
        options["context"]["sentences_after"] = count
        (result,) = notes.ask(WHERE, options).results
        assert result.content == SLEEPS
        assert result.expanded_content == expected


@changes("top_k.retrieval")
def test_top_k_retrieval_is_how_many_candidates_a_list_gives(notes: Notes) -> None:
    seen = Recorder()
    overrides = reranking() | BY_VECTORS | {"strategy": "hybrid+rerank"}
    notes.ask(ABSTRACT, overrides | {"top_k": {"retrieval": 2, "final": 1}}, reranker=seen)
    assert len(seen.passages) == 2
    notes.ask(ABSTRACT, overrides | {"top_k": {"retrieval": 7, "final": 1}}, reranker=seen)
    assert len(seen.passages) == 7


@changes("top_k.reranking")
def test_top_k_reranking_is_how_many_are_reranked(notes: Notes) -> None:
    seen = Recorder()
    results = notes.ask(WHERE, reranking() | {"top_k": {"reranking": 3}}, reranker=seen).results
    assert len(seen.passages) == 3
    assert [result.rerank_score is None for result in results] == [False] * 3 + [True] * 2


@changes("top_k.final")
def test_top_k_final_is_how_many_results_there_are(notes: Notes) -> None:
    for count in (1, 4):
        assert len(notes.ask(WHERE, {"top_k": {"final": count}}).results) == count


# --- What a call says -------------------------------------------------------------------------


@changes("retrieve.top_k")
def test_a_call_says_how_many_results_it_wants(notes: Notes) -> None:
    """Also more than the configuration has each list give."""
    narrow = {"top_k": {"retrieval": 2, "final": 2}}
    for count in (1, 6):
        assert len(notes.ask(WHERE, narrow, top_k=count).results) == count


@changes("retrieve.distinct_notes")
def test_a_call_says_how_many_distinct_notes_it_wants(notes: Notes) -> None:
    """No more than the configuration searches."""
    for retrieval, count in ((50, 6), (1, 1)):
        narrow = {"top_k": {"retrieval": retrieval, "final": 1}}
        response = notes.ask(WHERE, narrow, distinct_notes=6)
        assert len({result.note_id for result in response.results}) == count


@changes("retrieve.filters")
def test_a_call_says_which_notes_it_asks(notes: Notes) -> None:
    response = notes.ask(DOCTOR, filters=RetrievalFilters(tags=("casa",)))
    assert {result.note_id for result in response.results} == {notes.ids[0]}


@changes("retrieve.tenant")
def test_a_call_says_whose_notes_it_asks(notes: Notes) -> None:
    assert {r.note_id for r in notes.ask(WHERE, tenant="blas").results} == {notes.ids[6]}
    assert notes.ids[6] not in {r.note_id for r in notes.ask(WHERE).results}


@changes("retrieve.deadline_ms")
def test_a_call_says_how_long_it_waits(notes: Notes, opened: threading.Event) -> None:
    class Slow(HashEmbedder):
        def embed_queries(self, texts: Sequence[str]) -> Vectors:
            opened.wait(30)
            return super().embed_queries(texts)

    late = notes.ask(WHERE, embedder=Slow(), deadline_ms=1_500)
    assert late.degraded == ("embed",)
    assert late.messages == (
        _("Semantic search is unavailable, using keyword search"),
        _("Partial search completed (time limit exceeded)"),
    )
    assert methods(late) == {"fulltext"}
    opened.set()
    assert notes.ask(WHERE, embedder=Slow()).degraded == ()


@changes("retrieve.language")
def test_a_call_says_in_which_language_it_asks(notes: Notes) -> None:
    """The words that join questions are those of the language."""
    joined = "La gata negra et aussi la junta del ascensor"
    inside = {}
    for language in ("es", "fr"):
        transformed = notes.ask(joined, language=language).transformed
        inside[language] = transformed.sub_queries if transformed else ()
    assert inside == {"es": (), "fr": ("La gata negra", "la junta del ascensor")}


@changes("retrieve.cached")
def test_a_call_says_whether_the_cache_may_answer(notes: Notes) -> None:
    pipeline = notes.pipeline(caches=build_caches(None))
    answers = [
        pipeline.retrieve(WHERE, config(), cached=cached, deadline_ms=GENEROUS_MS)
        for cached in (True, True, False)
    ]
    assert [answer.cached for answer in answers] == [False, True, False]
    assert answers[0].results == answers[1].results == answers[2].results


# --- None is forgotten ------------------------------------------------------------------------


def options_of(model: type[BaseModel], path: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from options_of(inner, f"{path}{name}.")
        else:
            yield path + name


@changes("graph.enabled")
@changes("graph.max_depth")
@changes("graph.min_relevance")
@changes("graph.weight")
def test_the_graph_adds_what_a_cause_leads_to(database: Database) -> None:
    corpus = GraphCorpus(database)
    floods = [
        Draft("El patio sigue cerrado porque se hundió el techo."),
        Draft("Llovió mucho, así que reventó la tubería."),
    ]
    ids = corpus.fill(floods, LONG)
    corpus.read()
    ends = (event_id(ids[1], "reventó la tubería"), event_id(ids[0], "se hundió el techo"))
    corpus.relate([ends])

    def score(**graph: Any) -> float:
        """Of the note that shares nothing but a cause with the first."""
        response = corpus.ask("¿Por qué sigue cerrado el patio?", graph_config(**graph))
        found = {result.content[:4]: result.score for result in response.results}
        return found.get("Llov", 0.0)

    assert score(enabled=False) == 0
    assert score(min_relevance=0.5) > 0
    assert score(weight=0.4, min_relevance=0.5) > score(weight=0.2, min_relevance=0.5) > 0
    assert score(max_depth=3, min_relevance=0.5) < score(max_depth=4, min_relevance=0.5)
    assert score(min_relevance=0.9) == 0


def test_every_option_has_a_test_here() -> None:
    _, _, _, *arguments = inspect.signature(RetrievalPipeline.retrieve).parameters
    assert tested == {*options_of(RetrievalConfig), *(f"retrieve.{name}" for name in arguments)}
