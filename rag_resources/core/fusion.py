"""Several ranked lists of one question made one: reciprocal rank fusion, convex combination."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from uuid import UUID

from rag_resources.core.configuration import FusionConfig
from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.messages import Message
from rag_resources.core.types import Candidate, Ranking, Retriever, ScoredChunk

# Which documents a list ranks, and whether it does so by words.
_GROUPS: Mapping[Retriever, tuple[str, bool]] = {
    Retriever.SEMANTIC: ("chunks", False),
    Retriever.CONTEXTUAL: ("chunks", False),
    Retriever.FULLTEXT: ("chunks", True),
    Retriever.NOTES_SEMANTIC: ("notes", False),
    Retriever.NOTES_FULLTEXT: ("notes", True),
}


def fuse(rankings: Sequence[Ranking], config: FusionConfig) -> list[ScoredChunk]:
    """Fuse the lists of one question as a configuration says.

    Lists of one kind over the same documents share that kind's weight, so a second vector per chunk
    does not make vectors count twice. A single list keeps its own scores.

    Returns:
        Every chunk seen, best first, ties by chunk id.
    """
    found = [ranking for ranking in rankings if ranking.candidates]
    if len(found) < 2:
        return _alone(found)
    weights = _shared_weights(found, config)
    if config.method == "weighted":
        return convex_combination(found, weights=weights)
    return reciprocal_rank_fusion(found, weights=weights, rank_constant=config.rank_constant)


def reciprocal_rank_fusion(
    rankings: Sequence[Ranking], *, weights: Sequence[float], rank_constant: int = 60
) -> list[ScoredChunk]:
    """Fuse the rankings of one query by weighted reciprocal rank.

    A chunk scores the sum of ``weight / (rank_constant + rank)`` over the rankings that hold it.

    Args:
        rankings: One per retriever, best first, no repeats; empty if it found nothing.
        weights: One per ranking, each in [0, 1], not all 0.
        rank_constant: Damping of the top ranks, >= 1; 60 in the paper.

    Returns:
        Every chunk seen, best first, ties by chunk id. Scores are dimensionless, in [0, 1] while
        the weights sum to at most `rank_constant + 1`, and comparable only within one query.

    Raises:
        InvalidParameterError: A weight or the constant is out of range, or the lengths differ.

    Properties: 1, 2, 3, 4. Source: Cormack et al., SIGIR 2009, doi:10.1145/1571941.1572114.
    """
    _check_weights(rankings, weights)
    if rank_constant < 1:
        raise InvalidParameterError(Message.FUSION_RANK_CONSTANT.format(value=rank_constant))
    terms: dict[UUID, list[float]] = {}
    for ranking, weight in zip(rankings, weights, strict=True):
        for rank, candidate in enumerate(ranking.candidates, start=1):
            terms.setdefault(candidate.chunk_id, []).append(weight / (rank_constant + rank))
    return _collect(rankings, terms)


def convex_combination(
    rankings: Sequence[Ranking], *, weights: Sequence[float]
) -> list[ScoredChunk]:
    """Fuse by the weighted mean of scores, min-max normalised inside each ranking; absent counts 0.

    A ranking whose scores are all equal normalises to 1. Same arguments, order and errors as
    `reciprocal_rank_fusion`; the weights are scaled to sum to 1.

    Properties: 1, 3, 4. Source: Bruch et al., ACM TOIS 2023, arXiv 2210.11934.
    """
    _check_weights(rankings, weights)
    total = math.fsum(weights) or 1.0
    terms: dict[UUID, list[float]] = {}
    for ranking, weight in zip(rankings, weights, strict=True):
        normalized = _min_max(ranking.candidates)
        for candidate, score in zip(ranking.candidates, normalized, strict=True):
            terms.setdefault(candidate.chunk_id, []).append(weight / total * score)
    return _collect(rankings, terms)


def _alone(rankings: Sequence[Ranking]) -> list[ScoredChunk]:
    """The scores of the only list as they are; nothing if there is none."""
    scores = {
        candidate.chunk_id: [candidate.score]
        for ranking in rankings
        for candidate in ranking.candidates
    }
    return _collect(rankings, scores)


def _collect(
    rankings: Sequence[Ranking], terms: Mapping[UUID, Sequence[float]]
) -> list[ScoredChunk]:
    first: dict[UUID, Candidate] = {}
    retrievers: dict[UUID, list[Retriever]] = {}
    for ranking in rankings:
        for candidate in ranking.candidates:
            first.setdefault(candidate.chunk_id, candidate)
            retrievers.setdefault(candidate.chunk_id, []).append(ranking.retriever)
    fused = [
        ScoredChunk(
            chunk_id=chunk_id,
            note_id=candidate.note_id,
            score=min(1.0, max(0.0, math.fsum(terms[chunk_id]))),
            retrievers=tuple(dict.fromkeys(retrievers[chunk_id])),
            original_score=candidate.score,
        )
        for chunk_id, candidate in first.items()
    ]
    return sorted(fused, key=lambda chunk: (-chunk.score, chunk.chunk_id))


def _shared_weights(rankings: Sequence[Ranking], config: FusionConfig) -> list[float]:
    """Each weight shared by the lists of its kind: chunks and unchunked notes are disjoint."""
    sizes = Counter(_GROUPS[ranking.retriever] for ranking in rankings)
    weights = [
        (config.fulltext_weight if _GROUPS[ranking.retriever][1] else config.semantic_weight)
        / sizes[_GROUPS[ranking.retriever]]
        for ranking in rankings
    ]
    return weights if any(weights) else [1.0 / len(rankings)] * len(rankings)


def _min_max(candidates: Sequence[Candidate]) -> list[float]:
    scores = [candidate.score for candidate in candidates]
    low, high = min(scores, default=0.0), max(scores, default=0.0)
    if high == low:
        return [1.0] * len(scores)
    return [(score - low) / (high - low) for score in scores]


def _check_weights(rankings: Sequence[Ranking], weights: Sequence[float]) -> None:
    valid = all(math.isfinite(weight) and 0 <= weight <= 1 for weight in weights)
    if len(rankings) != len(weights) or not valid or (weights and not any(weights)):
        raise InvalidParameterError(Message.FUSION_WEIGHTS.format(weights=list(weights)))
