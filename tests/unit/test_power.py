"""What a number of golden questions can resolve."""

from uuid import UUID

import numpy as np
import pytest

from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.power import (
    ASSUMED,
    POWER,
    Discordance,
    fewest_discordant,
    golden_power,
    mcnemar_power,
    mean_power,
    observed,
    requirement,
    resolution,
    smallest_p_values,
)
from rag_resources.core.significance import mcnemar_p_value, randomization_p_values

SIMULATIONS = 2_000
SIMULATED = pytest.approx(0, abs=0.035)
"""Three standard errors of a share of `SIMULATIONS`."""


@pytest.mark.parametrize(
    ("queries", "difference", "discordance", "power"),
    [
        (6, 1.0, 1.0, 1.0),  # six gains of six: p = 2/64
        (5, 1.0, 1.0, 0.0),  # five of five: p = 2/32, never significant
        (6, 0.5, 1.0, 0.75**6),  # three gains to each loss, and all six have to be gains
        (10, 0.5, 0.2, 386 / 1024),  # at least six of ten are discordant, all of them gains
        (100, 0.0, 0.0, 0.0),
    ],
)
def test_power_of_mcnemar_by_hand(
    queries: int, difference: float, discordance: float, power: float
) -> None:
    assert mcnemar_power(queries, difference, discordance) == pytest.approx(power)


@pytest.mark.parametrize(
    ("queries", "difference", "discordance"), [(132, 0.08, 0.12), (657, 0.04, 0.15), (40, 0.2, 0.1)]
)
def test_power_of_mcnemar_by_simulation(
    queries: int, difference: float, discordance: float
) -> None:
    share = max(difference, discordance)
    rates = [(share - difference) / 2, (share + difference) / 2, 1 - share]
    drawn = np.random.default_rng(7).multinomial(queries, rates, SIMULATIONS)
    outcomes, counts = np.unique(drawn, axis=0, return_counts=True)
    shown = [
        gained > lost and mcnemar_p_value(lost, gained) <= 0.05 for lost, gained, _ in outcomes
    ]
    assert (
        counts @ shown / SIMULATIONS - mcnemar_power(queries, difference, discordance) == SIMULATED
    )


@pytest.mark.parametrize("queries", [30, 132, 657])
def test_power_of_the_randomization_test_by_simulation(queries: int) -> None:
    """Differences of reciprocal ranks: most are 0, the others far from normal."""
    ranks = np.array([0.0, 1 / 5, 1 / 3, 1 / 2, 1.0])
    values = np.array([after - before for before in ranks for after in ranks])
    shares = np.where(values > 0, 0.019, np.where(values < 0, 0.012, 0.0))
    shares[values == 0] = (1 - shares.sum()) / (values == 0).sum()
    mean = float(shares @ values)
    spread = float(np.sqrt(shares @ values**2 - mean**2))
    drawn = np.random.default_rng(7).choice(values, (queries, SIMULATIONS), p=shares)
    p_values = np.array(randomization_p_values(drawn, permutations=999))
    shown = (p_values <= 0.05) & (drawn.sum(axis=0) > 0)
    assert shown.mean() - mean_power(queries, mean, spread) == SIMULATED


def test_the_smallest_differences_have_just_the_power() -> None:
    discordance = Discordance(share=0.12, spread=0.3)
    found = resolution(132, discordance)
    assert found.hit_rate is not None
    assert found.mrr is not None
    assert mcnemar_power(132, found.hit_rate, 0.12) == pytest.approx(POWER, abs=1e-6)
    assert mean_power(132, found.mrr, 0.3) == pytest.approx(POWER, abs=1e-6)
    assert resolution(657, discordance).hit_rate < found.hit_rate  # type: ignore[operator]


def test_questions_needed_for_a_difference() -> None:
    """A paired t-test of half a standard deviation takes 34 pairs, as in Cohen's tables."""
    assert requirement(0.5, Discordance(share=0.5, spread=1.0)).mrr == 34
    for share in (0.0, 0.05, 0.2, 0.6):
        needed = requirement(0.2, Discordance(share=share, spread=0.3)).hit_rate
        by_trying = next(n for n in range(1, 200) if mcnemar_power(n, 0.2, share) >= POWER)
        assert needed == by_trying
    assert requirement(1e-6, ASSUMED).hit_rate is None
    assert requirement(1e-6, ASSUMED).mrr is None


@pytest.mark.parametrize("difference", [0.0, -0.1, 1.5, float("nan")])
def test_a_difference_out_of_range_is_refused(difference: float) -> None:
    with pytest.raises(InvalidParameterError, match="diferencia"):
        requirement(difference, ASSUMED)


def test_the_smallest_p_values() -> None:
    assert smallest_p_values(4) == (2 / 16, 2 / 16)
    assert smallest_p_values(132) == (mcnemar_p_value(0, 132), 1 / 10_000)
    assert mcnemar_p_value(0, 5) > 0.05
    assert fewest_discordant() == 6
    few = resolution(5, ASSUMED)
    assert few.hit_rate is None, "no outcome of five questions is significant"


def test_discordance_is_measured_on_the_common_questions() -> None:
    before, after = (
        {UUID(int=key): {"hit_rate_at_10": float(mrr > 0), "mrr": mrr} for key, mrr in each}
        for each in (
            [(1, 1.0), (2, 0.0), (3, 0.5), (4, 0.5)],
            [(1, 1.0), (2, 0.5), (3, 1.0), (5, 1.0)],
        )
    )
    found = observed(before, after)
    assert found is not None
    assert (found.share, found.queries) == (1 / 3, 3)
    assert found.spread == pytest.approx((1 / 12) ** 0.5)  # of 0, 1/2 and 1/2
    assert observed(before, before) is None
    assert observed(before, {}) is None


def test_without_evaluations_the_discordance_is_assumed() -> None:
    found = golden_power(132, "hybrid", {}, difference=0.05)
    assert found.reference is None
    assert [pair.configuration for pair in found.pairs] == [None]
    assert found.pairs[0].resolution == resolution(132, ASSUMED)
    assert found.pairs[0].requirement == requirement(0.05, ASSUMED)
