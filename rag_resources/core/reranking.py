"""Fused results put in the order of a re-ranker's scores, blended with their own.

What scores passages is a `providers.protocols.Reranker`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from rag_resources.core.fusion import TieBreak, best_first, min_max
from rag_resources.core.types import ScoredChunk


def rerank(
    chunks: Sequence[ScoredChunk],
    scores: Mapping[UUID, float],
    weight: float,
    *,
    tie_break: TieBreak = "chunk_id",
) -> list[ScoredChunk]:
    """Blend the scores of fused chunks with those a re-ranker gave the best of them.

    A re-ranked chunk scores ``(1 - weight) * fused + weight * reranked``, both min-max normalised
    over the re-ranked ones, so that how many more were found changes nothing. The others follow in
    their order with their fused scores, lowered where needed to the last re-ranked one's.

    Args:
        chunks: Fused, best first.
        scores: By chunk id, of the first chunks; clamped to [0, 1]. One that is not finite is none.
        weight: Share of the re-ranker, in [0, 1].
        tie_break: Which of two equal scores of re-ranked chunks comes first.

    Returns:
        The same chunks, best first, scores in [0, 1], each with its fused score as
        `original_score` and the re-ranked ones with their `rerank_score`; as they came if there is
        no score at all.

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
    blended = best_first(
        (
            replace(
                chunk,
                score=(1 - weight) * own + weight * given,
                original_score=chunk.score,
                rerank_score=known[chunk.chunk_id],
            )
            for chunk, own, given in zip(scored, fused, reranked, strict=True)
        ),
        tie_break,
    )
    lowest = blended[-1].score
    rest = [
        replace(chunk, score=min(lowest, chunk.score), original_score=chunk.score)
        for chunk in chunks
        if chunk.chunk_id not in known
    ]
    return blended + rest
