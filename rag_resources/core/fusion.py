"""The normalisation of scores for the stages after the search.

The lists of a question are fused by the statement that searches them (`sql/queries/search.sql`).
"""

from collections.abc import Sequence


def min_max(scores: Sequence[float]) -> list[float]:
    """Scale scores to [0, 1], the lowest to 0 and the highest to 1; all 1 if they are equal."""
    low, high = min(scores, default=0.0), max(scores, default=0.0)
    if high == low:
        return [1.0] * len(scores)
    return [(score - low) / (high - low) for score in scores]
