"""Fuses the ranked lists of one question: by ranks, by scores in a list, by scores on a scale.

The order of results belongs here too. Re-ranking is in `core.reranking`, diversity in
`core.diversity`.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from uuid import UUID

from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.fusion_config import FusionConfig, RetrieverConfig
from rag_resources.core.messages import Message
from rag_resources.core.retrievers import (
    DOCUMENTS_OF,
    RETRIEVER_OF,
    Documents,
    RankedList,
    RetrieverName,
)
from rag_resources.core.types import Candidate, Ranking, ScoredChunk
from rag_resources.core.whole_notes import ScoreRange, found_by, merge_whole_notes

SIDE_CANDIDATES = 3
"""How many candidates are used of a list that searched a sub-question or a hypothetical answer.

Measured on pairs of unrelated XQuAD-es questions asked as one. With three, RRF finds more passages
that answer either question: recall@5 +.03. With whole lists RRF gets much worse, MRR from .98 to
.55, since a passage in the middle of all lists then beats the best passage of a single question.
"""

_UNNAMED = RetrieverConfig()


def fuse(
    rankings: Sequence[Ranking],
    config: FusionConfig,
    retrievers: Mapping[RetrieverName, RetrieverConfig],
    *,
    ranges: Sequence[ScoreRange] | None = None,
    pool: int | None = None,
    scores: Sequence[Mapping[UUID, float]] | None = None,
    most: int | None = None,
) -> list[ScoredChunk]:
    """Fuse the lists of one question as configured.

    Lists of one retriever over the same documents share that retriever's weight equally, so neither
    a second vector per chunk nor a sub-question makes a retriever count twice. By ranks, and by
    scores in a list, whole notes are first put among the chunks of their retriever. Of lists that
    did not search the question itself, only the first `SIDE_CANDIDATES` are used. A single list
    keeps its own scores.

    Args:
        rankings: The lists.
        config: How they are fused.
        retrievers: The weight of each retriever; a stand-in that is not named here has the
            default weight.
        ranges: For the methods `rrf` and `weighted`: the range of each list's scores; None: whole
            notes are fused as lists of their own.
        pool: For these methods: how many candidates a list may hold; None: any number.
        scores: For the method `scaled`: each list's scores of all candidates, in
            [0, 1], also of those that the list does not hold. None: only the candidates of a list
            have a score in it.
        most: How many chunks the caller needs; None: all.

    Returns:
        The chunks of all lists used, or the best of them, best first, ties by chunk id.
    """
    if config.looks_up_scores and rankings:
        narrowed = narrow(rankings)
        known = scores if scores is not None else [_held(ranking) for ranking in narrowed]
        weights = shared_weights(narrowed, retrievers)
        return scaled_combination(narrowed, known, weights=weights, most=most)
    merged = merge_whole_notes(rankings, ranges, pool=pool) if ranges is not None else rankings
    filled = [ranking for ranking in narrow(merged) if ranking.candidates]
    if len(filled) < 2:
        return _alone(filled, most)
    weights = shared_weights(filled, retrievers)
    if config.method == "weighted":
        return convex_combination(filled, weights=weights, most=most)
    return reciprocal_rank_fusion(
        filled, weights=weights, rank_constant=config.rank_constant, most=most
    )


def reciprocal_rank_fusion(
    rankings: Sequence[Ranking],
    *,
    weights: Sequence[float],
    rank_constant: int = 60,
    most: int | None = None,
) -> list[ScoredChunk]:
    """Fuse the rankings of one query by weighted reciprocal rank.

    A chunk scores the sum of ``weight / (rank_constant + rank)`` over the rankings that hold it.

    Args:
        rankings: One per retriever, best first, no repeats; empty if it found nothing.
        weights: One per ranking, each in [0, 1], not all 0.
        rank_constant: Damping of the top ranks, >= 1; 60 in the paper.
        most: How many chunks to return; None: all.

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
    parts = [
        [weight / (rank_constant + rank) for rank in range(1, len(ranking.candidates) + 1)]
        for ranking, weight in zip(rankings, weights, strict=True)
    ]
    return _summed(rankings, parts, most)


def convex_combination(
    rankings: Sequence[Ranking], *, weights: Sequence[float], most: int | None = None
) -> list[ScoredChunk]:
    """Fuse by the weighted mean of the scores, after min-max normalisation of each ranking.

    A chunk that is absent from a ranking scores 0 there. Scores that are all equal become 1. Same
    arguments, order and errors as `reciprocal_rank_fusion`; the weights are scaled to sum to 1.

    Properties: 1, 3, 4. Source: Bruch et al., ACM TOIS 2023, arXiv 2210.11934.
    """
    _check_weights(rankings, weights)
    total = math.fsum(weights)
    parts = []
    for ranking, weight in zip(rankings, weights, strict=True):
        normalized = min_max([candidate.score for candidate in ranking.candidates])
        parts.append([weight / total * score for score in normalized])
    return _summed(rankings, parts, most)


def scaled_combination(
    rankings: Sequence[Ranking],
    scores: Sequence[Mapping[UUID, float]],
    *,
    weights: Sequence[float],
    most: int | None = None,
) -> list[ScoredChunk]:
    """Fuse by the weighted sum of every candidate's scores, each on the fixed scale of its list.

    A list counts for all candidates of the kind that it ranks (chunks or whole notes), even those
    that it does not hold. A list for a sub-question or hypothetical answer counts only for its own
    candidates. Weights are scaled so that those of either kind sum to at most 1. So chunks and
    whole notes are comparable, and a candidate scores 0 in a list that its kind lacks. Same order
    and errors as `reciprocal_rank_fusion`.

    Args:
        rankings: The lists, best first, no repeats.
        scores: By list, in [0, 1]; a document without one scores 0.
        weights: One per list, each in [0, 1], not all 0.
        most: How many chunks to return; None: all.

    Properties: 1, 3, 4, 61.
    """
    _check_weights(rankings, weights)
    by_kind: dict[Documents, list[float]] = {}
    for ranking, weight in zip(rankings, weights, strict=True):
        by_kind.setdefault(DOCUMENTS_OF[ranking.name], []).append(weight)
    total = max(map(math.fsum, by_kind.values()), default=0.0)
    seen: dict[UUID, tuple[list[_Held], list[float]]] = {}
    terms_of: dict[Documents, dict[UUID, list[float]]] = {kind: {} for kind in by_kind}
    for ranking in rankings:
        of_kind = terms_of[DOCUMENTS_OF[ranking.name]]
        for candidate in ranking.candidates:
            held, terms = seen.setdefault(candidate.chunk_id, ([], []))
            held.append((candidate, ranking.name))
            of_kind[candidate.chunk_id] = terms
    for ranking, known, weight in zip(rankings, scores, weights, strict=True):
        share, of_kind = weight / total, terms_of[DOCUMENTS_OF[ranking.name]]
        if ranking.question == 0:
            for chunk_id, terms in of_kind.items():
                terms.append(share * known.get(chunk_id, 0.0))
        else:
            for candidate in ranking.candidates:
                of_kind[candidate.chunk_id].append(share * known.get(candidate.chunk_id, 0.0))
    return _best(seen.items(), most)


def on_scale(score: float, low: float, high: float) -> float:
    """Map a score from a range to [0, 1]; a score outside the range is clipped."""
    return min(1.0, max(0.0, (score - low) / (high - low)))


def min_max(scores: Sequence[float]) -> list[float]:
    """Scale scores to [0, 1], the lowest to 0 and the highest to 1; all 1 if they are equal."""
    low, high = min(scores, default=0.0), max(scores, default=0.0)
    if high == low:
        return [1.0] * len(scores)
    return [(score - low) / (high - low) for score in scores]


def narrow(rankings: Sequence[Ranking]) -> list[Ranking]:
    """Return the part of the lists that is used: the first few of lists for other texts."""
    return [
        replace(ranking, candidates=ranking.candidates[:SIDE_CANDIDATES])
        if ranking.question
        else ranking
        for ranking in rankings
    ]


def _held(ranking: Ranking) -> dict[UUID, float]:
    return {candidate.chunk_id: candidate.score for candidate in ranking.candidates}


def _alone(rankings: Sequence[Ranking], most: int | None) -> list[ScoredChunk]:
    """The scores of the only list, unchanged; empty if there is no list."""
    scores = [[candidate.score for candidate in ranking.candidates] for ranking in rankings]
    return _summed(rankings, scores, most)


_Held = tuple[Candidate, RankedList]
"""A chunk in a list, with the list."""


def _summed(
    rankings: Sequence[Ranking], parts: Sequence[Sequence[float]], most: int | None
) -> list[ScoredChunk]:
    """Return the chunks with the sums of their parts, best first.

    Args:
        rankings: The lists.
        parts: For each list, the contribution of each of its candidates.
        most: How many chunks to return; None: all.
    """
    seen: dict[UUID, tuple[list[_Held], list[float]]] = {}
    for ranking, own in zip(rankings, parts, strict=True):
        for candidate, part in zip(ranking.candidates, own, strict=True):
            # One look-up per candidate: hashing ids is most of the cost of fusing.
            held, terms = seen.setdefault(candidate.chunk_id, ([], []))
            held.append((candidate, ranking.name))
            terms.append(part)
    return _best(seen.items(), most)


def _best(
    seen: Iterable[tuple[UUID, tuple[list[_Held], Sequence[float]]]], most: int | None
) -> list[ScoredChunk]:
    """Return the chunks with the highest sums of terms, ties by chunk id.

    Args:
        seen: By chunk id, where it was found, and the terms whose sum is its score.
        most: How many chunks to return; None: all.
    """
    scored = [
        (-min(1.0, max(0.0, math.fsum(terms))), chunk_id, held) for chunk_id, (held, terms) in seen
    ]
    scored.sort(key=itemgetter(0, 1))
    return [
        ScoredChunk(
            chunk_id=chunk_id,
            note_id=held[0][0].note_id,
            score=abs(negated),
            lists=tuple(dict.fromkeys(found_by(own, name) for own, name in held)),
            original_score=held[0][0].score,
            path=next((own.path for own, _ in held if own.path), ()),
        )
        for negated, chunk_id, held in scored[:most]
    ]


def shared_weights(
    rankings: Sequence[Ranking], retrievers: Mapping[RetrieverName, RetrieverConfig]
) -> list[float]:
    """Divide each retriever's weight equally among its lists over the same kind of documents.

    Lists of chunks and lists of whole notes rank different documents, so they do not share it.
    """
    sizes = Counter(_sharing(ranking) for ranking in rankings)
    weights = [
        retrievers.get(RETRIEVER_OF[ranking.name], _UNNAMED).weight / sizes[_sharing(ranking)]
        for ranking in rankings
    ]
    return weights if any(weights) else [1.0 / len(rankings)] * len(rankings)


def _sharing(ranking: Ranking) -> tuple[RetrieverName, Documents]:
    return RETRIEVER_OF[ranking.name], DOCUMENTS_OF[ranking.name]


def _check_weights(rankings: Sequence[Ranking], weights: Sequence[float]) -> None:
    valid = all(math.isfinite(weight) and 0 <= weight <= 1 for weight in weights)
    if len(rankings) != len(weights) or not valid or (weights and not any(weights)):
        raise InvalidParameterError(Message.FUSION_WEIGHTS.format(weights=list(weights)))
