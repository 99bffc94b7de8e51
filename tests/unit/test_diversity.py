"""Maximal marginal relevance with values computed by hand."""

import math
from uuid import UUID

import numpy as np
import pytest

from rag_resources.core.diversity import maximal_marginal_relevance
from rag_resources.core.retrievers import RankedList
from rag_resources.core.types import ScoredChunk, Vectors
from tests.strategies import uuid_number

A, B, C, D = (uuid_number(number) for number in (1, 2, 3, 4))


def chunk(chunk_id: UUID, score: float) -> ScoredChunk:
    return ScoredChunk(chunk_id, uuid_number(100), score, (RankedList.SEMANTIC,), score)


def vector(*components: float) -> Vectors:
    return np.array(components, dtype=np.float32)


RANKED = [chunk(A, 0.8), chunk(B, 0.72), chunk(C, 0.4)]
VECTORS = {A: vector(1, 0), B: vector(1, 0), C: vector(0.6, 0.8)}
"""B repeats A; C has a cosine of 0.6 with both."""


def pairs(chunks: list[ScoredChunk]) -> list[tuple[UUID, float]]:
    return [(item.chunk_id, item.score) for item in chunks]


def test_what_repeats_a_result_comes_after_what_does_not() -> None:
    """Relevance 1, 0.9, 0.5; then C scores 0.2 + 0.6 * 0.4, and B 0.36 + 0."""
    diverse = maximal_marginal_relevance(RANKED, VECTORS, 0.6)
    assert [item.chunk_id for item in diverse] == [A, C, B]
    assert [item.score for item in diverse] == pytest.approx([1.0, 0.2 + 0.24, 0.36])


def test_a_little_diversity_does_not_beat_relevance() -> None:
    diverse = maximal_marginal_relevance(RANKED, VECTORS, 0.2)
    assert [item.chunk_id for item in diverse] == [A, B, C]
    assert [item.score for item in diverse] == pytest.approx([1.0, 0.72, 0.4 + 0.2 * 0.4])


def test_cosines_count_on_the_scale_of_their_model() -> None:
    """With e5 the range is .75–.95: B repeats A at .95 and C, at .75, is about something else."""
    vectors = {
        A: vector(1, 0, 0),
        B: vector(0.95, math.sqrt(1 - 0.95**2), 0),
        C: vector(0.75, 0, math.sqrt(1 - 0.75**2)),
    }
    plain = maximal_marginal_relevance(RANKED, vectors, 0.5)
    assert [item.chunk_id for item in plain] == [A, B, C]
    scaled = maximal_marginal_relevance(RANKED, vectors, 0.5, cosine_range=(0.75, 0.95))
    assert [item.chunk_id for item in scaled] == [A, C, B]
    assert [item.score for item in scaled] == pytest.approx([1.0, 0.25 + 0.5, 0.45], abs=1e-6)


def test_without_a_weight_nothing_changes() -> None:
    assert maximal_marginal_relevance(RANKED, VECTORS, 0) == RANKED


def test_opposite_vectors_are_no_more_unlike_than_orthogonal_ones() -> None:
    vectors = {A: vector(1, 0), B: vector(-1, 0), C: vector(0, 1)}
    diverse = maximal_marginal_relevance(RANKED, vectors, 1.0)
    assert pairs(diverse) == [(A, 1.0), (B, 1.0), (C, 1.0)]


def test_a_chunk_without_a_vector_is_as_similar_as_two_chunks_are_on_average() -> None:
    """A and B: 1, A and C: 0.6, B and C: 0.6, on average 0.7333."""
    ranked = [*RANKED, chunk(D, 0.4)]
    diverse = maximal_marginal_relevance(ranked, VECTORS, 0.7)
    assert [item.chunk_id for item in diverse] == [A, C, D, B]
    assert diverse[2].score == pytest.approx(0.3 * 0.5 + 0.7 * (1 - 2.2 / 3))


def test_of_that_average_opposite_vectors_are_no_less_than_unlike() -> None:
    """A and B: 0, not -1; A and C: 0.6; B and C: 0, not -0.6; on average 0.2."""
    vectors = {A: vector(1, 0), B: vector(-1, 0), C: vector(0.6, 0.8)}
    ranked = [chunk(A, 1.0), chunk(B, 1.0), chunk(C, 1.0), chunk(D, 0.5)]
    (*_, last) = maximal_marginal_relevance(ranked, vectors, 0.5)
    assert pairs([last]) == [(D, pytest.approx(0.5 * 0.5 + 0.5 * 0.8))]


def test_two_vectors_are_enough_for_an_average() -> None:
    ranked = [chunk(A, 1.0), chunk(C, 0.8), chunk(D, 0.6)]
    diverse = maximal_marginal_relevance(ranked, {A: VECTORS[A], C: VECTORS[C]}, 0.5)
    assert [item.chunk_id for item in diverse] == [A, C, D]
    assert [item.score for item in diverse] == pytest.approx([1.0, 0.4 + 0.2, 0.3 + 0.2])


def test_vectors_a_little_longer_than_1_make_no_score_negative() -> None:
    """As half precision leaves them."""
    long = vector(1.0005, 0)
    diverse = maximal_marginal_relevance(RANKED[:2], {A: long, B: long}, 1.0)
    assert pairs(diverse) == [(A, 1.0), (B, 0.0)]


@pytest.mark.parametrize("vectors", [{}, {A: vector(1, 0)}])
def test_without_vectors_to_compare_the_order_stays(vectors: dict[UUID, Vectors]) -> None:
    diverse = maximal_marginal_relevance(RANKED, vectors, 0.5)
    assert [item.chunk_id for item in diverse] == [A, B, C]


def test_results_that_all_score_0_stay_in_their_order() -> None:
    ranked = [chunk(B, 0.0), chunk(A, 0.0)]
    diverse = maximal_marginal_relevance(ranked, {}, 0.5)
    assert pairs(diverse) == [(B, 0.5), (A, 0.5)]


def test_nothing_diversifies_to_nothing() -> None:
    assert maximal_marginal_relevance([], {}, 0.5) == []
