"""The paired statistics against values computed by hand, by scipy, and by simulation."""

import math
from itertools import product

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize_scalar

from rag_resources.core.significance import (
    _bca,
    bootstrap_intervals,
    holm,
    mcnemar_p_value,
    paired_proportions_interval,
    randomization_p_values,
)


@pytest.fixture
def differences() -> np.ndarray:
    """Reciprocal ranks and hits of 200 questions, a tenth of which changed."""
    generator = np.random.default_rng(7)
    changed = generator.random((200, 2)) < [[0.3, 0.06]]
    ranks = generator.choice([-0.5, -0.25, 0.1, 0.5, 2 / 3], 200)
    hits = generator.choice([-1.0, 1.0], 200, p=[0.2, 0.8])
    return np.where(changed, np.column_stack([ranks, hits]), 0.0)


def test_randomization_agrees_with_all_signs_there_are() -> None:
    """Of the 32 signs of five differences, those that reach the observed mean are counted."""
    observed = np.array([0.5, 0.25, -0.1, 0.2, 0.4])
    reached = sum(
        abs(np.dot(signs, observed)) >= observed.sum() - 1e-12
        for signs in product((-1, 1), repeat=5)
    )
    (p_value,) = randomization_p_values(observed[:, None], permutations=99_999)
    assert p_value == pytest.approx(reached / 32, abs=0.005)


def test_randomization_never_gives_zero_and_gives_one_for_no_difference() -> None:
    same, apart = randomization_p_values(np.column_stack([np.zeros(40), np.ones(40)]))
    assert same == 1
    assert apart == 1 / 10_000


@pytest.mark.parametrize(("below", "tied"), [(0.3, 0.0), (0.1, 0.4), (0.0, 0.0), (1.0, 0.0)])
def test_bootstrap_bounds_are_those_of_efrons_formula(below: float, tied: float) -> None:
    """Of skewed differences, with given shares of the resampled means below and at the mean.

    Ties count half; a bias that cannot be told is that of one resample.
    """
    differences = np.array([0.0, 0.0, 0.0, 0.0, 0.1, 0.1, 0.2, 1.0])
    count, mean = 10_000, differences.mean()
    resampled = mean + np.repeat(
        [-1.0, 0.0, 1.0], [int(below * count), int(tied * count), round((1 - below - tied) * count)]
    )
    resampled += np.where(resampled == mean, 0.0, np.linspace(-0.5, 0.5, count))
    bias = stats.norm.ppf(np.clip(below + tied / 2, 1 / count, 1 - 1 / count))
    acceleration = stats.skew(differences) / (6 * math.sqrt(len(differences)))
    expected = [
        stats.norm.cdf(bias + (bias + z) / (1 - acceleration * (bias + z)))
        for z in stats.norm.ppf([0.025, 0.975])
    ]
    ranks = [min(count - 1, int(share * count)) for share in expected]
    assert _bca(differences, resampled, 0.95) == tuple(resampled[ranks])


@pytest.mark.parametrize(
    ("lost", "gained", "p_value"), [(0, 0, 1.0), (0, 5, 2 / 32), (1, 5, 14 / 64), (3, 3, 1.0)]
)
def test_mcnemar_by_hand(lost: int, gained: int, p_value: float) -> None:
    """The two-sided binomial tail: 1 of 6 is (1 + 6) / 64, twice."""
    assert mcnemar_p_value(lost, gained) == pytest.approx(p_value)


def test_holm_by_hand() -> None:
    """Smallest times four, next times three, never less than the one before."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


@pytest.mark.parametrize(
    ("lost", "gained", "queries"), [(3, 9, 50), (2, 0, 132), (0, 0, 60), (7, 7, 20), (1, 12, 400)]
)
def test_tango_bounds_are_where_the_score_is_critical(lost: int, gained: int, queries: int) -> None:
    """With the restricted likelihood maximised numerically instead of by the formula."""

    def score(difference: float) -> float:
        counts = (gained, lost, queries - gained - lost)

        def surprise(share: float) -> float:
            shares = (share + difference, share, 1 - 2 * share - difference)
            return -sum(
                n * math.log(max(p, 1e-300)) for n, p in zip(counts, shares, strict=True) if n
            )

        bounds = (max(0.0, -difference), (1 - difference) / 2)
        share = minimize_scalar(
            surprise, bounds=bounds, method="bounded", options={"xatol": 1e-12}
        ).x
        variance = queries * (2 * share + difference * (1 - difference))
        return (gained - lost - queries * difference) / math.sqrt(variance)

    low, high = paired_proportions_interval(lost=lost, gained=gained, queries=queries)
    assert score(low) == pytest.approx(1.96, abs=0.001)
    assert score(high) == pytest.approx(-1.96, abs=0.001)


def test_tango_is_symmetric_and_reaches_the_ends() -> None:
    better = paired_proportions_interval(lost=2, gained=9, queries=30)
    worse = paired_proportions_interval(lost=9, gained=2, queries=30)
    assert (-worse.high, -worse.low) == pytest.approx(tuple(better), abs=1e-6)
    assert paired_proportions_interval(lost=20, gained=0, queries=20).low == -1
    assert paired_proportions_interval(lost=0, gained=20, queries=20).high == 1


@pytest.mark.parametrize(("changed", "covered_at_least"), [(0.1, 0.87), (0.6, 0.93)])
def test_error_rates_are_those_claimed(changed: float, covered_at_least: float) -> None:
    """Of 600 pairs of equal systems the tests tell 5 % apart at most.

    The interval, which decides nothing, covers less than its 95 % where few questions differ.
    """
    generator = np.random.default_rng(11)
    chances = [changed / 2, 1 - changed, changed / 2]
    trials = generator.choice([-1.0, 0.0, 1.0], (150, 600), p=chances)
    ranks = trials * generator.choice([0.1, 0.5, 1.0], trials.shape)
    p_values = np.array(randomization_p_values(ranks, permutations=999))
    assert 0.02 <= (p_values <= 0.05).mean() <= 0.075
    intervals = bootstrap_intervals(ranks, resamples=999)
    assert np.mean([low <= 0 <= high for low, high in intervals]) >= covered_at_least
    counts = [(int((t < 0).sum()), int((t > 0).sum())) for t in trials.T]
    exact = [mcnemar_p_value(lost, gained) for lost, gained in counts]
    assert np.mean(np.array(exact) <= 0.05) <= 0.055
    tango = [
        paired_proportions_interval(lost=lost, gained=gained, queries=150)
        for lost, gained in counts
    ]
    assert np.mean([low <= 0 <= high for low, high in tango]) >= 0.93
