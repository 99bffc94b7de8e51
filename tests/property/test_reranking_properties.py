"""Properties 1 and 3 for re-ranked and diversified results, whatever the scores and vectors."""

import math
from uuid import UUID

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rag_resources.core.diversity import maximal_marginal_relevance
from rag_resources.core.reranking import rerank
from rag_resources.core.retrievers import RankedList
from rag_resources.core.types import ScoredChunk, Vectors
from tests.strategies import shares, uuid_number

MAX_CHUNKS = 15


@st.composite
def fused_chunks(draw: st.DrawFn) -> list[ScoredChunk]:
    """Up to `MAX_CHUNKS` chunks, best first, some with equal scores."""
    scores = draw(st.lists(shares(), max_size=MAX_CHUNKS))
    return [
        ScoredChunk(uuid_number(number), uuid_number(100), score, (RankedList.FULLTEXT,), score)
        for number, score in enumerate(sorted(scores, reverse=True))
    ]


@st.composite
def passage_scores(draw: st.DrawFn) -> dict[UUID, float]:
    """Scores of any value a program can give to some chunks."""
    numbers = st.integers(0, MAX_CHUNKS - 1).map(uuid_number)
    return draw(st.dictionaries(numbers, st.one_of(shares(), st.floats())))


@st.composite
def chunk_vectors(draw: st.DrawFn) -> dict[UUID, Vectors]:
    """Unit vectors of three components for some chunks, some of them equal or opposite."""
    component = st.integers(-3, 3)
    triples = st.tuples(component, component, component).filter(any)
    numbers = st.integers(0, MAX_CHUNKS - 1).map(uuid_number)
    drawn = draw(st.dictionaries(numbers, triples))
    return {
        chunk_id: (np.array(triple) / np.linalg.norm(triple)).astype(np.float32)
        for chunk_id, triple in drawn.items()
    }


def assert_ranked(before: list[ScoredChunk], after: list[ScoredChunk]) -> None:
    scores = [chunk.score for chunk in after]
    assert all(math.isfinite(score) and 0 <= score <= 1 for score in scores)
    assert scores == sorted(scores, reverse=True)
    assert sorted(c.chunk_id for c in after) == sorted(c.chunk_id for c in before)


@given(fused_chunks(), passage_scores(), shares())
def test_property_01_and_03_reranked_scores_are_in_range_and_never_increase(
    chunks: list[ScoredChunk], scores: dict[UUID, float], weight: float
) -> None:
    reranked = rerank(chunks, scores, weight)
    assert_ranked(chunks, reranked)
    given_scores = [chunk.rerank_score for chunk in reranked if chunk.rerank_score is not None]
    assert all(math.isfinite(score) and 0 <= score <= 1 for score in given_scores)
    fused = {chunk.chunk_id: chunk.score for chunk in chunks}
    assert all(chunk.original_score == fused[chunk.chunk_id] for chunk in reranked)


@given(fused_chunks(), chunk_vectors(), shares())
def test_property_01_and_03_diversified_scores_are_in_range_and_never_increase(
    chunks: list[ScoredChunk], vectors: dict[UUID, Vectors], weight: float
) -> None:
    assert_ranked(chunks, maximal_marginal_relevance(chunks, vectors, weight))
