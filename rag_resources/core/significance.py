"""Paired statistics of two evaluations over the same questions: tests, intervals, correction.

Comparing two evaluations with them belongs in `core.comparison`; the interval of a single
proportion in `core.gate`. SciPy is imported when something is tested: it takes a second.
"""

import math
from collections.abc import Callable, Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rag_resources.core.errors import InvalidParameterError
from rag_resources.languages.messages import _

PERMUTATIONS = 9_999
RESAMPLES = 9_999
SEED = 20_070_906
"""Seed; fixed, so that the same evaluations always give the same report."""

_BATCH = 500
_ROUNDING = 1e-9
_NORMAL = NormalDist()

Matrix = NDArray[np.float64]


class DifferenceInterval(NamedTuple):
    """A confidence interval of a difference, inside [-1, 1]."""

    low: float
    high: float


def randomization_p_values(
    differences: Matrix, *, permutations: int = PERMUTATIONS, seed: int = SEED
) -> list[float]:
    """Return two-sided p-values of mean differences by the paired randomization test.

    Under the null hypothesis, each question's difference could equally have the opposite sign. All
    columns use the same random signs, so the test is one matrix product.

    Args:
        differences: `(n_queries, n_columns)`: after minus before; a column per metric and pair.
        permutations: Number of random sign vectors, >= 1.
        seed: Seed of the signs.

    Returns:
        One per column, in (0, 1]. The observed signs count as one of the permutations, so the test
        is valid and never gives 0.

    Raises:
        InvalidParameterError: There is no question.

    Source: Smucker, Allan and Carterette, CIKM 2007, doi:10.1145/1321440.1321528; the correction is
    of Phipson and Smyth, 2010, doi:10.2202/1544-6115.1585.
    """
    queries = _count(differences)
    # A difference that equals the observed one except for rounding counts as reaching it.
    observed = np.abs(differences.sum(axis=0)) - _ROUNDING
    reached = np.ones(differences.shape[1])
    generator = np.random.default_rng(seed)
    for size in _batches(permutations):
        signs = generator.integers(0, 2, (size, queries), dtype=np.int8) * 2.0 - 1.0
        reached += (np.abs(signs @ differences) >= observed).sum(axis=0)
    return [float(value) for value in reached / (permutations + 1)]


def bootstrap_intervals(
    differences: Matrix, *, resamples: int = RESAMPLES, seed: int = SEED, level: float = 0.95
) -> list[DifferenceInterval]:
    """Return bias-corrected and accelerated bootstrap intervals of mean differences.

    Args:
        differences: As for `randomization_p_values`.
        resamples: Number of resamples of the questions, with replacement, >= 1.
        seed: Seed of the resamples.
        level: Confidence level.

    Returns:
        One per column; a single point if all differences are equal. If only a tenth of 150
        questions differ, the coverage is 89 % instead of 95 %, so decisions should use the tests.

    Raises:
        InvalidParameterError: There is no question.

    Source: Efron, JASA 1987, doi:10.1080/01621459.1987.10478410; for a mean the jackknife's
    acceleration is its skewness over six.
    """
    queries = _count(differences)
    generator = np.random.default_rng(seed)
    means = np.vstack(
        [
            _counts(generator.integers(0, queries, (size, queries))) @ differences / queries
            for size in _batches(resamples)
        ]
    )
    return [
        _bca(column, np.sort(resampled), level)
        for column, resampled in zip(differences.T, means.T, strict=True)
    ]


def _bca(differences: Matrix, resampled: Matrix, level: float) -> DifferenceInterval:
    mean = float(differences.mean())
    centred = differences - mean
    spread = float((centred**2).sum())
    if spread < _ROUNDING:
        return DifferenceInterval(mean, mean)
    acceleration = float((centred**3).sum()) / (6 * spread**1.5)
    # Resamples equal to the mean count as half below it: means of few hits are discrete.
    below = (
        float((resampled < mean - _ROUNDING).mean() + (resampled <= mean + _ROUNDING).mean()) / 2
    )
    inside = min(max(below, 1 / len(resampled)), 1 - 1 / len(resampled))
    bias = _NORMAL.inv_cdf(inside)
    low, high = (
        _quantile(resampled, _NORMAL.cdf(bias + (bias + z) / (1 - acceleration * (bias + z))))
        for z in map(_NORMAL.inv_cdf, ((1 - level) / 2, (1 + level) / 2))
    )
    return DifferenceInterval(low, high)


def _quantile(ordered: Matrix, share: float) -> float:
    return float(ordered[min(len(ordered) - 1, int(share * len(ordered)))])


def _counts(drawn: NDArray[np.int64]) -> Matrix:
    """How often each question was drawn: `(n_resamples, n_queries)`."""
    rows, queries = drawn.shape
    offsets = np.arange(rows)[:, None] * queries
    counted = np.bincount((drawn + offsets).ravel(), minlength=rows * queries)
    return counted.reshape(rows, queries).astype(np.float64)


def mcnemar_p_value(lost: int, gained: int) -> float:
    """Return the two-sided p-value of the exact McNemar test (the sign test of discordant pairs).

    Source: McNemar, Psychometrika 1947, doi:10.1007/BF02295996.
    """
    if lost + gained == 0:
        return 1.0
    from scipy.stats import binomtest

    return float(binomtest(lost, lost + gained).pvalue)


def loss_p_value(lost: int, gained: int) -> float:
    """Return the one-sided p-value of the exact McNemar test against a loss.

    Source: as for `mcnemar_p_value`.
    """
    if lost + gained == 0:
        return 1.0
    from scipy.stats import binomtest

    return float(binomtest(lost, lost + gained, alternative="greater").pvalue)


def paired_proportions_interval(
    *, lost: int, gained: int, queries: int, level: float = 0.95
) -> DifferenceInterval:
    """Return Tango's score interval of the difference of two paired proportions.

    It keeps its level even with few or no discordant pairs, where Wald's interval collapses to a
    point.

    Args:
        lost: Questions found before and not after.
        gained: Questions found after and not before.
        queries: All questions, >= 1.
        level: Confidence level.

    Returns:
        The interval of the share found after minus the share found before.

    Raises:
        InvalidParameterError: The counts are inconsistent.

    Source: Tango, Statistics in Medicine 1998, 17:891-908.
    """
    if lost < 0 or gained < 0 or queries < 1 or lost + gained > queries:
        raise InvalidParameterError(
            _(
                "{lost} lost and {gained} gained hits of {queries} questions cannot be compared."
            ).format(lost=lost, gained=gained, queries=queries)
        )
    critical = _NORMAL.inv_cdf((1 + level) / 2)

    def score(difference: float) -> float:
        """Score of the hypothesis that this is the true difference; decreasing in it."""
        linear = -lost - gained + (2 * queries - gained + lost) * difference
        product = -lost * difference * (1 - difference)
        root = math.sqrt(max(0.0, linear**2 - 8 * queries * product))
        share_lost = (root - linear) / (4 * queries)
        variance = queries * (2 * share_lost + difference * (1 - difference))
        distance = gained - lost - queries * difference
        if variance <= 0:
            return math.copysign(math.inf, distance) if distance else 0.0
        return distance / math.sqrt(variance)

    estimate = (gained - lost) / queries
    return DifferenceInterval(
        _bound(score, critical, -1.0, estimate), _bound(score, -critical, 1.0, estimate)
    )


def _bound(score: Callable[[float], float], target: float, end: float, estimate: float) -> float:
    """The difference between `end` and the estimate at which the score equals the target."""
    edge = end * (1 - 1e-12)
    if abs(score(edge)) <= abs(target):
        return end
    from scipy.optimize import brentq

    return float(brentq(lambda difference: score(difference) - target, edge, estimate))


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust the p-values of a family of tests, which controls the probability of any false alarm.

    Args:
        p_values: In any order.

    Returns:
        The adjusted p-values in the same order, at most 1. Compare each with the family-wise level.

    Source: Holm, Scandinavian Journal of Statistics 1979, 6:65-70.
    """
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        highest = max(highest, (len(p_values) - rank) * p_values[index])
        adjusted[index] = min(1.0, highest)
    return adjusted


def _count(differences: Matrix) -> int:
    if differences.shape[0] == 0:
        raise InvalidParameterError(_("There is no common question to compare."))
    return int(differences.shape[0])


def _batches(total: int) -> list[int]:
    return [min(_BATCH, total - start) for start in range(0, total, _BATCH)]
