"""Blending a re-ranker's scores with the fused ones, with values computed by hand."""

import math

import pytest

from rag_resources.core.reranking import rerank
from rag_resources.core.retrievers import RankedList
from rag_resources.core.types import ScoredChunk
from tests.strategies import uuid_number

A, B, C, D = (uuid_number(number) for number in (1, 2, 3, 4))


def chunk(chunk_id: object, score: float) -> ScoredChunk:
    return ScoredChunk(
        chunk_id=chunk_id,  # type: ignore[arg-type]
        note_id=uuid_number(100),
        score=score,
        lists=(RankedList.SEMANTIC,),
        original_score=0.99,
    )


FUSED = [chunk(A, 0.03), chunk(B, 0.02), chunk(C, 0.01)]


def order(chunks: list[ScoredChunk]) -> list[object]:
    return [item.chunk_id for item in chunks]


def test_chunks_that_were_not_reranked_follow_in_their_order_and_never_score_more() -> None:
    reranked = rerank([*FUSED, chunk(D, 0.005)], {A: 0.1, B: 0.9}, 0.6)
    assert order(reranked) == [B, A, C, D]
    assert [item.score for item in reranked] == pytest.approx([0.6, 0.4, 0.01, 0.005])
    assert [item.rerank_score for item in reranked] == [0.9, 0.1, None, None]
    assert [item.original_score for item in reranked] == [0.02, 0.03, 0.01, 0.005]


@pytest.mark.parametrize("scores", [{}, {A: math.nan, B: math.inf, C: -math.inf}, {D: 0.5}])
def test_without_a_usable_score_everything_stays_as_it_came(scores: dict[object, float]) -> None:
    assert rerank(FUSED, scores, 0.5) == FUSED  # type: ignore[arg-type]
