"""Retrieval metrics by `ir-measures`, over distinct notes; latency percentiles.

Whether the figures are good enough is decided in `core.gate`. Properties 25 to 28.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TypeVar

from rag_resources.core.errors import InvalidParameterError
from rag_resources.languages.messages import _, about

T = TypeVar("T", bound=Hashable)

CUTOFFS = (1, 3, 5, 10)
DEPTH = 10
"""Number of distinct notes that are considered; MRR and nDCG use the same cutoff."""

SERVED = "served_hit_rate"
"""The share of questions with a relevant note among the `top_k.final` results of a user."""

_MEASURES = {
    **{f"hit_rate_at_{cutoff}": f"Success@{cutoff}" for cutoff in CUTOFFS},
    **{f"precision_at_{cutoff}": f"P@{cutoff}" for cutoff in CUTOFFS},
    **{f"recall_at_{cutoff}": f"R@{cutoff}" for cutoff in CUTOFFS},
    "mrr": f"RR@{DEPTH}",
    "ndcg_at_10": f"nDCG@{DEPTH}",
}
"""The measures of `ir-measures`, by our names."""


@dataclass(frozen=True, slots=True)
class JudgedRanking:
    """The ranking of one question, and its relevant items.

    Attributes:
        relevant: Ids of the relevant notes, at least one.
        retrieved: Ids of the notes of the results, best first. A repeated note counts only at its
            best rank. Empty for a query that failed, which counts as a miss.
    """

    relevant: frozenset[str]
    retrieved: tuple[str, ...]

    @property
    def distinct(self) -> tuple[str, ...]:
        """The first `DEPTH` distinct notes, in order."""
        return distinct_in_order(self.retrieved)[:DEPTH]

    @property
    def first_relevant_rank(self) -> int | None:
        """1-based rank of the first relevant note among the distinct ones; None if absent."""
        return next(
            (rank for rank, note in enumerate(self.distinct, start=1) if note in self.relevant),
            None,
        )


def distinct_in_order(items: Sequence[T]) -> tuple[T, ...]:
    """Drop repeats, keeping the first occurrence of each item."""
    return tuple(dict.fromkeys(items))


def per_query_metrics(rankings: Mapping[str, JudgedRanking]) -> dict[str, dict[str, float]]:
    """Compute every metric of every question.

    Args:
        rankings: By question id.

    Returns:
        Question id to metric name to value in [0, 1]: `hit_rate_at_k`, `precision_at_k`,
        `recall_at_k` for k of `CUTOFFS`, `mrr` (reciprocal rank, cut at 10) and `ndcg_at_10`.

    Raises:
        InvalidParameterError: A question has no relevant note.
    """
    import ir_measures  # loads slowly

    if any(not judged.relevant for judged in rankings.values()):
        raise InvalidParameterError(about("relevantNotes", _("must not be empty")))
    qrels = {key: dict.fromkeys(judged.relevant, 1) for key, judged in rankings.items()}
    # A question that retrieved nothing still needs a row, or it would be missing from the means.
    run = {
        key: {note: float(DEPTH - rank) for rank, note in enumerate(judged.distinct)}
        for key, judged in rankings.items()
    }
    values: dict[str, dict[str, float]] = {key: dict.fromkeys(_MEASURES, 0.0) for key in rankings}
    names = {ir_measures.parse_measure(measure): name for name, measure in _MEASURES.items()}
    for metric in ir_measures.iter_calc(list(names), qrels, run):
        values[metric.query_id][names[metric.measure]] = float(metric.value)
    return values


def mean_metrics(per_query: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Average each metric over the questions; all 0 when there is none."""
    names = next(iter(per_query.values()), _MEASURES)
    return {
        name: fmean(values[name] for values in per_query.values()) if per_query else 0.0
        for name in names
    }


def percentile(values: Sequence[float], share: float) -> float:
    """Return the nearest-rank percentile.

    Args:
        values: At least one.
        share: In (0, 1], such as 0.95.

    Returns:
        The smallest value that at least `share` of the values do not exceed.
    """
    if not values or not 0 < share <= 1:
        raise InvalidParameterError(
            _("There is no percentile {share} of {count} values.").format(
                count=len(values), share=share
            )
        )
    # In floating point 0.07 * 100 is slightly more than 7, and must not become rank 8.
    rank = max(1, math.ceil(share * len(values) - 1e-9))
    return sorted(values)[rank - 1]


def percentile_interval(values: Sequence[float], share: float) -> tuple[float, float]:
    """Return the 95 % interval of a percentile, between two of the values.

    Few values do not bound a high percentile; then the interval ends at the largest.

    Args:
        values: At least one.
        share: As for `percentile`.

    Source: order statistics; David and Nagaraja, Order Statistics, 2003, section 7.1.
    """
    percentile(values, share)
    ordered = sorted(values)
    from scipy.stats import binom

    low, high = (int(binom.ppf(level, len(values), share)) for level in (0.025, 0.975))
    return ordered[max(low, 1) - 1], ordered[min(high, len(values) - 1)]
