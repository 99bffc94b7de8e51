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


def test_what_repeats_a_result_comes_after_what_does_not() -> None:
    """Relevance 1, 0.9, 0.5; then C scores 0.2 + 0.6 * 0.4, and B 0.36 + 0."""
    diverse = maximal_marginal_relevance(RANKED, VECTORS, 0.6)
    assert [item.chunk_id for item in diverse] == [A, C, B]
    assert [item.score for item in diverse] == pytest.approx([1.0, 0.2 + 0.24, 0.36])


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


def test_a_chunk_without_a_vector_is_as_similar_as_two_chunks_are_on_average() -> None:
    """A and B: 1, A and C: 0.6, B and C: 0.6, on average 0.7333."""
    ranked = [*RANKED, chunk(D, 0.4)]
    diverse = maximal_marginal_relevance(ranked, VECTORS, 0.7)
    assert [item.chunk_id for item in diverse] == [A, C, D, B]
    assert diverse[2].score == pytest.approx(0.3 * 0.5 + 0.7 * (1 - 2.2 / 3))
