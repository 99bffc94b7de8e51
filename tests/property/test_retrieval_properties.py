"""Properties of what is retrieved, on a real PostgreSQL with notes in every state of indexing."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from rag_resources.core.configuration import ChunkingConfig, RetrievalConfig, Strategy
from rag_resources.core.errors import ProviderUnavailableError
from rag_resources.core.filters import RetrievalFilters
from rag_resources.core.fusion_config import RetrieverConfig
from rag_resources.core.query import decompose
from rag_resources.core.retrievers import RankedList, RetrieverName
from rag_resources.core.types import Vectors
from rag_resources.database.pool import Database
from rag_resources.indexing.chunk import chunk_window
from rag_resources.ingestion.ingest import ingest
from rag_resources.languages.messages import _
from rag_resources.retrieval.cache import build_caches
from rag_resources.retrieval.pipeline import RetrievalPipeline
from rag_resources.retrieval.request import MAX_RESULTS
from rag_resources.store.chunks import refresh_statistics
from rag_resources.store.notes import note_id
from rag_resources.store.search import SIDE_CANDIDATES
from tests.corpus import (
    ALWAYS,
    GENEROUS_MS,
    SMALL,
    SOURCE,
    START,
    VECTOR_LISTS,
    Corpus,
    Draft,
    one_list,
    records,
)
from tests.embedders import HashEmbedder
from tests.language_models import ScriptedModel
from tests.strategies import (
    INJECTIONS,
    drafts,
    filters,
    questions,
    retrieval_configs,
    short_notes,
)
from tests.waiting import wait_until

# The database is emptied by every example itself.
one_database = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


ONE_CHUNK = ChunkingConfig(max_tokens=512, overlap_tokens=0, min_tokens=0)


def configs() -> st.SearchStrategy[RetrievalConfig]:
    """Any configuration with the tests' model and the maximum time."""

    def patient(config: RetrievalConfig) -> RetrievalConfig:
        reranking = config.reranking.model_copy(update={"timeout_ms": 5_000})
        return config.model_copy(update={"reranking": reranking})

    return retrieval_configs(["openai_hash"]).map(patient)


def strategies(config: RetrievalConfig) -> dict[Strategy, RetrievalConfig]:
    """The configuration with each strategy."""
    return {name: config.model_copy(update={"strategy": name}) for name in Strategy}


def finding_all(config: RetrievalConfig) -> RetrievalConfig:
    """The configuration with vectors, and none too far from a question."""
    by_vectors = Strategy.HYBRID if config.strategy is Strategy.FULLTEXT else config.strategy
    return config.model_copy(update={"strategy": by_vectors, "similarity_threshold": 0.0})


def helpful_model() -> ScriptedModel:
    """A language model that answers all requests of a retrieval, passages one by one."""
    return ScriptedModel({"intent": "abstract", "answer": "La casa, así: 2024.", "scores": [0.5]})


@pytest.fixture
def corpus(database: Database) -> Corpus:
    return Corpus(database)


# --- Scores and order -------------------------------------------------------------------------


@one_database
@given(drafts(), questions(), configs())
def test_property_01_every_score_is_finite_and_between_0_and_1(
    corpus: Corpus, written: list[Draft], question: str, config: RetrievalConfig
) -> None:
    """Of every list and of the results, before and after re-ranking."""
    corpus.fill(written)
    scores = [score for found in corpus.lists(question).values() for _, _, score in found]
    for result in corpus.ask(question, config).results:
        scores += [result.score, result.original_score]
        if result.rerank_score is not None:
            scores.append(result.rerank_score)
    assert all(math.isfinite(score) and 0 <= score <= 1 for score in scores)


@one_database
@given(drafts(), questions(), configs())
def test_property_02_a_fused_score_is_the_sum_over_all_lists_of_all_questions(
    corpus: Corpus, written: list[Draft], question: str, config: RetrievalConfig
) -> None:
    """Of `weight / (rank_constant + rank)`, what a list or a question lacks adding nothing."""
    corpus.fill(written)
    config = strategies(config)[Strategy.HYBRID].model_copy(update={"diversity_weight": 0.0})
    weights = {
        RetrieverName.SEMANTIC: RetrieverConfig(weight=0.3),
        RetrieverName.FULLTEXT: RetrieverConfig(weight=0.9),
    }
    fusion = config.fusion.model_copy(update={"method": "rrf"})
    config = config.model_copy(update={"fusion": fusion, "retrievers": weights})
    expected = sums_over_lists(corpus, question, config)
    results = corpus.ask(question, config).results
    for result in results:
        assert result.score == pytest.approx(expected.pop(result.chunk_id), abs=1e-12)
    if expected:
        assert len(results) == config.top_k.final
        assert max(expected.values()) <= results[-1].score + 1e-12


def sums_over_lists(corpus: Corpus, question: str, config: RetrievalConfig) -> dict[UUID, float]:
    """Every chunk's score, by lists fetched for one question at a time."""
    wanted = config.transformation
    decomposes = wanted.enabled and wanted.decomposition
    parts = decompose(question, coordinated=wanted.coordinated) if decomposes else ()
    lists: list[tuple[RankedList, list[UUID]]] = []
    for number, text in enumerate((question, *parts)):
        found = corpus.lists(
            text, pool=config.top_k.retrieval, threshold=config.similarity_threshold or 0.0
        )
        for name in searched_lists(config):
            side = SIDE_CANDIDATES if number else None
            lists.append((name, [chunk for chunk, _, _ in found[name]][:side]))
    if len(lists) == 1:
        (only,) = searched_lists(config)
        found = corpus.lists(question, threshold=config.similarity_threshold or 0.0)
        return {chunk: score for chunk, _, score in found[only][: config.top_k.retrieval]}
    kinds = Counter(name is RankedList.FULLTEXT for name, _ in lists)
    sums: dict[UUID, float] = {}
    for name, chunks in lists:
        by_words = name is RankedList.FULLTEXT
        weight = (0.9 if by_words else 0.3) / kinds[by_words]
        for rank, chunk in enumerate(chunks, start=1):
            sums[chunk] = sums.get(chunk, 0.0) + weight / (config.fusion.rank_constant + rank)
    return sums


def searched_lists(config: RetrievalConfig) -> Sequence[RankedList]:
    """The lists of a hybrid search."""
    if config.unit == "notes":
        return (RankedList.NOTES,)
    vectors = VECTOR_LISTS if config.contextual else VECTOR_LISTS[:1]
    return (*vectors, RankedList.FULLTEXT)


@one_database
@given(drafts(), questions(), configs())
def test_property_03_scores_never_increase_and_ties_go_as_configured(
    corpus: Corpus, written: list[Draft], question: str, config: RetrievalConfig
) -> None:
    """By chunk id, or the newer note first and then by chunk id; diversity has no such rule."""
    corpus.fill(written)
    orders = [[(-s, chunk) for chunk, _, s in found] for found in corpus.lists(question).values()]
    for order in orders:
        assert order == sorted(order)
    for own in (config, reranking_two(config)):
        results = corpus.ask(question, own).results
        scores = [result.score for result in results]
        assert scores == sorted(scores, reverse=True)
        if own.diversity_weight:
            continue
        reranked = [r for r in results if r.rerank_score is not None]
        others = results[len(reranked) :]
        keys = [(-r.score, r.chunk_id) for r in reranked]
        assert keys == sorted(keys)
        # What was not re-ranked keeps its fused order; its score may be lowered to that of others.
        keys = [(-(r.original_score if reranked else r.score), r.chunk_id) for r in others]
        assert keys == sorted(keys)


def reranking_two(config: RetrievalConfig) -> RetrievalConfig:
    """The configuration with the first two results re-ranked, and nothing after that."""
    return config.model_copy(
        update={
            "strategy": Strategy.HYBRID_RERANK,
            "reranking": config.reranking.model_copy(
                update={"enabled": True, "method": "sentences"}
            ),
            "top_k": config.top_k.model_copy(update={"reranking": 2}),
            "diversity_weight": 0.0,
        }
    )


@one_database
@given(drafts(), questions(), configs())
def test_property_04_hybrid_finds_something_if_vectors_or_words_do(
    corpus: Corpus, written: list[Draft], question: str, config: RetrievalConfig
) -> None:
    corpus.fill(written)
    found = {name: corpus.ask(question, own).results for name, own in strategies(config).items()}
    if found[Strategy.SEMANTIC] or found[Strategy.FULLTEXT]:
        assert found[Strategy.HYBRID]
        assert found[Strategy.HYBRID_RERANK]


@one_database
@given(drafts(), questions(), configs())
def test_property_05_every_result_is_complete(
    corpus: Corpus, written: list[Draft], question: str, config: RetrievalConfig
) -> None:
    """And each result has the stored text: the chunk, or the note of a search by notes."""
    corpus.fill(written)
    chunks = {
        row.id: (row.note_id, row.chunk_index, row.content)
        for row in corpus.fetch("SELECT id, note_id, chunk_index, content FROM chunks")
    }
    whole = {row.id: (row.id, 0, row.content) for row in corpus.fetch("SELECT * FROM notes")}
    response = corpus.ask(question, config)
    results = response.results
    assert len(results) <= config.top_k.final
    assert len({result.chunk_id for result in results}) == len(results)
    for result in results:
        stored = (whole | chunks)[result.chunk_id]
        assert (result.note_id, result.chunk_index, result.content) == stored
        found_by = list(result.lists)
        assert (found_by == [RankedList.NOTES]) == (config.unit == "notes")
        written_out = result.to_json()
        assert all(
            written_out[key] is not None
            for key in ("chunkId", "noteId", "content", "expandedContent", "score", "createdAt")
        )
        start, end = result.matched_bounds
        assert written_out["metadata"]["matchedChunkBounds"] == {"start": start, "end": end}
        assert written_out["metadata"]["retrievalMethod"]
    reranked = [result.rerank_score is not None for result in results]
    if not config.reranks or "rerank" in response.degraded:
        assert not any(reranked)
    elif not config.diversity_weight:
        assert reranked == [n < config.top_k.reranking for n in range(len(results))]


# --- What fails -------------------------------------------------------------------------------

TABLES: Mapping[str, Sequence[str]] = {
    "vectors": ("TABLE vectors_openai_hash_chunk", "TABLE vectors_openai_hash_note"),
    "words": ("FUNCTION spanish_tsvector",),
}
"""What a search of the database cannot do without."""

NEEDS: Mapping[RetrieverName, set[str]] = {
    RetrieverName.SEMANTIC: {"embedder", "vectors"},
    RetrieverName.FULLTEXT: {"words"},
}
"""What each retriever of the configurations cannot do without."""

FAULTS = st.sets(st.sampled_from(["embedder", "language model", *TABLES]))


class BrokenEmbedder(HashEmbedder):
    """Embeds no question."""

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Fail as a server that is gone."""
        raise ProviderUnavailableError("El servidor no responde.")


@contextmanager
def broken(corpus: Corpus, faults: set[str]) -> Iterator[RetrievalPipeline]:
    """A pipeline of which some parts fail."""
    lost = [thing for fault in sorted(faults & set(TABLES)) for thing in TABLES[fault]]
    for thing in lost:
        rename(corpus, thing, f"{thing.split()[1]}_lost")
    try:
        failing = ScriptedModel(ProviderUnavailableError("El servidor no responde."))
        yield corpus.pipeline(
            embedder=BrokenEmbedder() if "embedder" in faults else None,
            language_model=failing if "language model" in faults else helpful_model(),
        )
    finally:
        for thing in lost:
            rename(corpus, f"{thing}_lost", thing.split()[1])


def rename(corpus: Corpus, thing: str, name: str) -> None:
    with corpus.database.transaction() as connection:
        connection.execute(f"ALTER {thing} RENAME TO {name}")


def asked(
    config: RetrievalConfig, faults: set[str]
) -> tuple[list[RetrieverName], list[RetrieverName]]:
    """The retrievers of a strategy, and those that answer: the stand-ins if all of them fail."""
    whole = [name for name, needed in NEEDS.items() if not faults & needed]
    wanted = list(config.searched)
    return wanted, [name for name in wanted if name in whole] or whole


@one_database
@given(drafts(), questions(), configs(), FAULTS)
def test_property_35_whatever_fails_what_one_search_finds_is_not_lost(
    corpus: Corpus, written: list[Draft], question: str, config: RetrievalConfig, faults: set[str]
) -> None:
    corpus.fill(written)
    alone = strategies(config)
    # A search by notes has no words: those of the chunks stand in.
    alone[Strategy.FULLTEXT] = alone[Strategy.FULLTEXT].model_copy(update={"unit": "chunks"})
    finds = {name: bool(corpus.ask(question, alone[Strategy(name)]).results) for name in NEEDS}
    _, working = asked(config, faults)
    with broken(corpus, faults) as pipeline:
        response = pipeline.retrieve(question, config, deadline_ms=GENEROUS_MS)
    if any(finds[name] for name in working):
        assert response.results
    assert (response.error is None) == bool(working)


@one_database
@given(drafts(), questions(), configs(), FAULTS)
def test_property_36_what_the_user_reads_of_failures_is_the_promised_spanish(
    corpus: Corpus, written: list[Draft], question: str, config: RetrievalConfig, faults: set[str]
) -> None:
    """And nothing else, whatever the errors of the failed parts contain."""
    corpus.fill(written)
    wanted, working = asked(config, faults)
    with broken(corpus, faults) as pipeline:
        response = pipeline.retrieve(question, config, deadline_ms=GENEROUS_MS)
    promised = {
        (): (),
        (RetrieverName.SEMANTIC,): (_("Semantic search is unavailable, using keyword search"),),
        (RetrieverName.FULLTEXT,): (_("Keyword search is unavailable, using semantic search"),),
    }
    missing = tuple(name for name in wanted if name not in working)
    assert response.messages == (
        promised[missing] if working else (_("No results could be retrieved. Please try again."),)
    )
    assert response.error == (
        None if working else _("No results could be retrieved. Please try again.")
    )
    assert response.degraded or not missing


# --- Migration, determinism, isolation --------------------------------------------------------


@one_database
@given(drafts(), questions(), configs())
def test_property_39_notes_in_every_state_are_found_and_none_twice_for_one_reason(
    corpus: Corpus, written: list[Draft], question: str, config: RetrievalConfig
) -> None:
    """By its chunks or its provisional chunk, never both; chunks without vectors by words."""
    notes_ = corpus.fill(written)
    found = corpus.lists(question)
    states = {note: draft.state for note, draft in zip(notes_, written, strict=True)}
    embedded = {note for note, state in states.items() if state != "pending"}
    for name in VECTOR_LISTS:
        assert {note for _, note, _ in found[name]} == embedded
    assert {note for _, note, _ in found[RankedList.NOTES]} == set(notes_)
    for name, candidates in found.items():
        assert len({chunk for chunk, _, _ in candidates}) == len(candidates)
        if name is not RankedList.NOTES:
            assert all((chunk == n) == (states[n] == "new") for chunk, n, _ in candidates)
    deep = config.top_k.model_copy(update={"retrieval": 500, "final": 1})
    everything = finding_all(config).model_copy(update={"top_k": deep})
    results = corpus.ask(question, everything, distinct_notes=len(notes_)).results
    by_words = {note for _, note, _ in found[RankedList.FULLTEXT]}
    at_least = set(notes_) if config.unit == "notes" else embedded
    assert at_least <= {result.note_id for result in results} <= at_least | by_words
    assert len({result.chunk_id for result in results}) == len(results)


def by_windows(top_k: int) -> RetrievalConfig:
    """Windows alone, and none too far from a question."""
    return RetrievalConfig(
        model="openai_hash",
        retrievers={"windows": {"weight": 1.0}},
        similarity_threshold=0.0,
        transformation={"enabled": False},
        top_k={"retrieval": 500, "final": top_k},
    )


@one_database
@given(drafts(), short_notes(), questions())
def test_property_61_a_text_scores_alike_as_a_fresh_note_and_as_the_chunk_of_one(
    corpus: Corpus, others: list[Draft], text: str, question: str
) -> None:
    """By its standard vector, where it has no title and no markup.

    By words it does within a factor of two: those of a chunk count its note's first sentence once
    more, which at most doubles the occurrences of a word, and the length.
    """
    text = text.strip()
    fresh, chunked, *_ = corpus.fill([Draft(text, state="new"), Draft(text), *others], ONE_CHUNK)
    rows = corpus.fetch("SELECT content, rendered FROM chunks WHERE note_id = %s", chunked)
    assume(rows == [(text, None)])

    def scores(name: RankedList) -> tuple[float | None, float | None]:
        asked = f"{question} {text[:200]}"
        found = {
            own.note_id: own.score
            for own in one_list(corpus.database, corpus.embedder, asked, name, threshold=-1.0)
        }
        return found.get(fresh), found.get(chunked)

    one, other = scores(RankedList.SEMANTIC)
    assert one == pytest.approx(other, abs=1e-9)
    one, other = scores(RankedList.FULLTEXT)
    assert (one is None) == (other is None)
    if one is not None and other is not None:
        assert other / 2.01 <= one <= other * 2.01


@one_database
@given(drafts(), questions())
def test_property_39_windows_find_notes_in_every_state_and_none_twice(
    corpus: Corpus, written: list[Draft], question: str
) -> None:
    """A chunk once, however many of its windows match; every note, chunked or not."""
    notes_ = corpus.fill(written)
    corpus.cut()
    results = corpus.ask(question, by_windows(5), distinct_notes=len(notes_)).results
    assert {result.note_id for result in results} == set(notes_)
    assert len({result.chunk_id for result in results}) == len(results)
    new = {n for n, draft in zip(notes_, written, strict=True) if draft.state == "new"}
    assert {result.note_id for result in results if result.chunk_id == result.note_id} == new
    for result in results:
        assert result.lists == (RankedList.WINDOWS,)
        assert result.matched_window is not None


@one_database
@given(drafts(), questions(), configs())
def test_property_58_what_is_ranked_could_be_returned_and_begins_with_what_is_served(
    corpus: Corpus, written: list[Draft], question: str, config: RetrievalConfig
) -> None:
    """An evaluation ranks within the searched depth; a served hit is a hit within it."""
    corpus.fill(written)
    depth = config.top_k.retrieval
    served = [result.chunk_id for result in corpus.ask(question, config).results]
    ranked = [r.chunk_id for r in corpus.ask(question, config, distinct_notes=10).results]
    assert ranked[: len(served)] == served
    assert len(served) <= config.top_k.final
    assert len(ranked) <= depth
    most = min(depth, MAX_RESULTS)
    returned = {r.chunk_id for r in corpus.ask(question, config, top_k=most).results}
    assert set(ranked[:most]) <= returned


@one_database
@given(drafts(), questions(), configs(), st.randoms(use_true_random=False))
def test_property_43_the_same_corpus_and_question_give_the_same_results(
    corpus: Corpus, written: list[Draft], question: str, config: RetrievalConfig, random: Any
) -> None:
    """Asked again, from the cache, and on a database filled in another order."""
    corpus.fill(written)
    first = corpus.ask(question, config).results
    assert corpus.ask(question, config).results == first
    arriving = records(written, "ana")
    random.shuffle(arriving)
    corpus.fetch("DELETE FROM notes RETURNING id")
    for state in ("indexed", "pending", "new"):
        those = [r for r in arriving if written[int(r.external_id)].state == state]
        ingest(corpus.database, those, tenant="ana", source=SOURCE)
        if state == "indexed":
            corpus.index(SMALL)
        elif state == "pending":
            chunk_window(corpus.database, ALWAYS, SMALL)
    with corpus.database.bulk() as connection:
        fresh = [number for number, own in enumerate(written) if own.state == "new"]
        corpus.embed(connection, [note_id("ana", SOURCE, str(number)) for number in fresh])
        refresh_statistics(connection)
    assert corpus.ask(question, config).results == first


CHANGES: Mapping[str, str] = {
    "edited": "UPDATE notes SET content = 'Así: la casa, 2024.', chunked_at = NULL WHERE id = %s",
    "retitled": "UPDATE notes SET title = 'Otra casa' WHERE id = %s",
    "dated": "UPDATE notes SET created_at = created_at + interval '9 days' WHERE id = %s",
    "given away": "UPDATE notes SET tenant_id = 'blas' WHERE id = %s",
    "expired": "UPDATE notes SET expires_at = now() WHERE id = %s",
    "deleted": "DELETE FROM notes WHERE id = %s",
    "unchunked": "UPDATE notes SET chunked_at = NULL WHERE id = %s",
    "bare": "DELETE FROM vectors WHERE kind = 'note' AND note_id = %s",
}


@one_database
@given(
    drafts(),
    questions(),
    configs(),
    st.lists(st.tuples(st.sampled_from(sorted(CHANGES)), st.integers(0, 3)), max_size=3),
)
def test_property_43_an_answer_of_the_cache_is_what_a_search_would_give_now(
    corpus: Corpus,
    written: list[Draft],
    question: str,
    config: RetrievalConfig,
    changes: list[tuple[str, int]],
) -> None:
    """Before and after any change of the notes, whoever made it."""
    notes_ = corpus.fill(written)
    reranking = config.reranking.model_copy(update={"method": "sentences"})
    config = config.model_copy(update={"reranking": reranking})
    pipeline = corpus.pipeline(caches=build_caches(None))
    for change, number in [("", 0), *changes]:
        if change:
            with corpus.database.transaction() as connection:
                connection.execute(CHANGES[change], (notes_[number % len(notes_)],))
        fresh = corpus.ask(question, config)
        for __ in range(2):
            answer = pipeline.retrieve(question, config, deadline_ms=GENEROUS_MS)
            assert answer.results == fresh.results
            assert answer.messages == fresh.messages
        assert answer.cached


@one_database
@given(
    drafts(foreign=True),
    st.one_of(questions(), st.sampled_from(INJECTIONS)),
    configs(),
    st.one_of(st.just(RetrievalFilters()), filters()),
)
@example(
    [Draft("La casa de Blas.", tenant="blas"), Draft("La casa.", expired=True), Draft("Casa.")],
    "casa de Blas",
    RetrievalConfig(model="openai_hash"),
    RetrievalFilters(),
)
def test_property_44_no_question_finds_foreign_or_expired_notes(
    corpus: Corpus,
    written: list[Draft],
    question: str,
    config: RetrievalConfig,
    wanted: RetrievalFilters,
) -> None:
    """Whoever asks, in turn, of one pipeline with caches."""
    notes_ = corpus.fill(written)
    numbered = dict(zip(notes_, written, strict=True))
    for found in corpus.lists(question).values():
        assert all(numbered[note].is_visible("ana") for _, note, _ in found)
    pipeline = corpus.pipeline(caches=build_caches(None))
    for tenant in ("ana", "blas", "", "ana"):
        response = pipeline.retrieve(
            question, config, tenant=tenant, filters=wanted, deadline_ms=GENEROUS_MS
        )
        assert all(numbered[result.note_id].is_visible(tenant) for result in response.results)


@one_database
@given(drafts(foreign=True), questions(), st.one_of(st.just(RetrievalFilters()), filters()))
def test_property_44_no_window_of_a_foreign_or_expired_note_is_found(
    corpus: Corpus, written: list[Draft], question: str, wanted: RetrievalFilters
) -> None:
    """Vectors find every note that a tenant may see and the filters leave, and no other."""
    notes_ = corpus.fill(written)
    corpus.cut()
    numbered = list(enumerate(zip(notes_, written, strict=True)))
    pipeline = corpus.pipeline()
    for tenant in ("ana", "blas"):
        results = pipeline.retrieve(
            question,
            by_windows(5),
            tenant=tenant,
            filters=wanted,
            distinct_notes=max(1, len(notes_)),
            deadline_ms=GENEROUS_MS,
        ).results
        assert {result.note_id for result in results} == {
            note
            for number, (note, draft) in numbered
            if draft.is_visible(tenant) and meets(wanted, note, number, draft)
        }


def meets(wanted: RetrievalFilters, note: UUID, number: int, draft: Draft) -> bool:
    created_at = START + timedelta(days=number)
    missing = object()
    return (
        wanted.source in (None, SOURCE)
        and set(wanted.tags) <= set(draft.tags)
        and (not wanted.note_ids or note in wanted.note_ids)
        and (wanted.created_from is None or created_at >= wanted.created_from)
        and (wanted.created_until is None or created_at < wanted.created_until)
        and all(
            same_json(draft.metadata.get(key, missing), value)
            for key, value in wanted.metadata.items()
        )
    )


def same_json(one: object, other: object) -> bool:
    """In JSON, unlike in Python, true is not 1."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)


@one_database
@given(drafts(), questions(), configs())
def test_property_44_an_answer_kept_before_a_note_expired_is_not_given_afterwards(
    corpus: Corpus, written: list[Draft], question: str, config: RetrievalConfig
) -> None:
    """Nobody writes when a note expires."""
    first, *_ = corpus.fill(written)
    corpus.fetch(
        "UPDATE notes SET expires_at = clock_timestamp() + interval '40 ms'"
        " WHERE id = %s RETURNING id",
        first,
    )
    pipeline = corpus.pipeline(caches=build_caches(None))
    config = finding_all(config)
    pipeline.retrieve(question, config, deadline_ms=GENEROUS_MS)
    wait_until(lambda: not corpus.fetch("SELECT FROM notes WHERE expires_at > now()"))
    for __ in range(2):
        response = pipeline.retrieve(question, config, deadline_ms=GENEROUS_MS)
        assert first not in {result.note_id for result in response.results}
