"""Blends the fused scores of results with a re-ranker's scores, and sorts by the blend.

Passages are scored by a `providers.protocols.Reranker`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from rag_resources.core.fusion import min_max
from rag_resources.core.types import ScoredChunk


def rerank(
    chunks: Sequence[ScoredChunk],
    scores: Mapping[UUID, float],
    weight: float,
) -> list[ScoredChunk]:
    """Blend the scores of fused chunks with a re-ranker's scores of the best of them.

    A re-ranked chunk scores ``(1 - weight) * fused + weight * reranked``. Both are min-max
    normalised over the re-ranked chunks, so the number of further results makes no difference. The
    other chunks follow in their order with their fused scores, but at most the score of the last
    re-ranked chunk.

    Args:
        chunks: Fused chunks, best first.
        scores: Scores of the first chunks, by chunk id; clamped to [0, 1]. Scores that are not
            finite are ignored.
        weight: Share of the re-ranker, in [0, 1].

    Returns:
        The same chunks, best first, ties by chunk id, scores in [0, 1]. Each has its fused score as
        `original_score`; re-ranked ones also have a `rerank_score`. Without any score, the chunks
        are returned unchanged.

    Properties: 1, 3.
    """
    known = {
        chunk_id: min(1.0, max(0.0, score))
        for chunk_id, score in scores.items()
        if math.isfinite(score)
    }
    scored = [chunk for chunk in chunks if chunk.chunk_id in known]
    if not scored:
        return list(chunks)
    fused = min_max([chunk.score for chunk in scored])
    reranked = min_max([known[chunk.chunk_id] for chunk in scored])
    blended = sorted(
        (
            replace(
                chunk,
                score=(1 - weight) * own + weight * given,
                original_score=chunk.score,
                rerank_score=known[chunk.chunk_id],
            )
            for chunk, own, given in zip(scored, fused, reranked, strict=True)
        ),
        key=lambda chunk: (-chunk.score, chunk.chunk_id),
    )
    lowest = blended[-1].score
    rest = [
        replace(chunk, score=min(lowest, chunk.score), original_score=chunk.score)
        for chunk in chunks
        if chunk.chunk_id not in known
    ]
    return blended + rest
