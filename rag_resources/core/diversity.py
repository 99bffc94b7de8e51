"""Maximal marginal relevance: ranks diverse results before repetitive ones."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from uuid import UUID

import numpy as np
import numpy.typing as npt

from rag_resources.core.types import ModelInfo, ScoredChunk, Vectors


def maximal_marginal_relevance(
    chunks: Sequence[ScoredChunk],
    vectors: Mapping[UUID, Vectors],
    diversity_weight: float,
    *,
    considered: int | None = None,
    cosine_range: tuple[float, float] = ModelInfo.cosine_range,
) -> list[ScoredChunk]:
    """Order chunks so that each is relevant and unlike the ones before it.

    Repeatedly picks the chunk with the greatest
    ``(1 - diversity_weight) * relevance + diversity_weight * (1 - similarity)``. Relevance is its
    score divided by the highest score. Similarity is the greatest cosine to a chunk already picked,
    on the model's scale (0 for the first). In some models the cosines of any two texts lie close
    together, and plain ones would hardly tell a repetition from another subject. Both terms are in
    [0, 1], and so is the new score. The scores never increase: each pick can only raise the
    similarities of the remaining chunks, so none of them scores more than when it lost to the chunk
    picked before.

    A chunk without a vector (a whole note of another model) is neither favoured nor penalised: its
    similarity to every other chunk is the average over pairs of chunks with vectors.

    Args:
        chunks: Best first.
        vectors: By chunk id, each `(dimension,)` float32, L2-normalised, all of one model.
        diversity_weight: In [0, 1]; 0 changes nothing.
        considered: How many of the best are reordered; None: all. The others follow in their order
            with at most the last of those scores, so they make no difference.
        cosine_range: The cosines of the model that stand for 0 and 1, as in `ModelInfo`; those
            outside are clipped.

    Returns:
        The same chunks with their new scores, ties in the given order. The time is quadratic in
        their number: 500 take a few milliseconds.

    Properties: 1, 3. Source: Carbonell and Goldstein, SIGIR 1998, doi:10.1145/290941.291025.
    """
    if diversity_weight == 0 or not chunks:
        return list(chunks)
    head = chunks[:considered]
    picked = _picked(head, _similarities(head, vectors, cosine_range), diversity_weight)
    lowest = picked[-1].score
    rest = chunks[len(head) :]
    return picked + [replace(chunk, score=min(lowest, chunk.score)) for chunk in rest]


def _picked(
    chunks: Sequence[ScoredChunk], similarities: npt.NDArray[np.float64], diversity_weight: float
) -> list[ScoredChunk]:
    scores = np.array([chunk.score for chunk in chunks])
    relevance = scores / (scores.max() or 1.0)
    left = np.ones(len(chunks), dtype=bool)
    nearest = np.zeros(len(chunks))
    picked: list[ScoredChunk] = []
    for _ in chunks:
        marginal = (1 - diversity_weight) * relevance + diversity_weight * (1 - nearest)
        best = int(np.argmax(np.where(left, marginal, -1.0)))
        picked.append(replace(chunks[best], score=float(marginal[best])))
        left[best] = False
        nearest = np.maximum(nearest, similarities[best])
    return picked


def _similarities(
    chunks: Sequence[ScoredChunk],
    vectors: Mapping[UUID, Vectors],
    cosine_range: tuple[float, float],
) -> npt.NDArray[np.float64]:
    """Return the similarity of each pair, `(n_chunks, n_chunks)` in [0, 1]."""
    rows = [row for row, chunk in enumerate(chunks) if chunk.chunk_id in vectors]
    similarities = np.zeros((len(chunks), len(chunks)))
    if len(rows) < 2:
        return similarities
    matrix = np.stack([vectors[chunks[row].chunk_id] for row in rows])
    low, high = cosine_range
    known = np.clip((matrix @ matrix.T - low) / (high - low), 0.0, 1.0).astype(np.float64)
    pairs = len(rows) * (len(rows) - 1)
    similarities += (known.sum() - np.trace(known)) / pairs
    similarities[np.ix_(rows, rows)] = known
    return similarities
