"""The gate at its borders, and Wilson intervals from the literature."""

import math

import pytest

from rag_resources.core.gate import GateState, judge, queries_to_settle, wilson_interval

Z = 1.959963984540054


@pytest.mark.parametrize(
    ("hits", "queries", "low", "high"),
    [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_intervals_are_those_of_newcombe(hits: int, queries: int, low: float, high: float) -> None:
    """Newcombe, Statistics in Medicine 1998, table I, method 3."""
    interval = wilson_interval(hits, queries)
    assert interval.low == pytest.approx(low, abs=5e-5)
    assert interval.high == pytest.approx(high, abs=5e-5)


@pytest.mark.parametrize("queries", [1, 2, 7, 20, 55, 300])
def test_intervals_solve_the_equation_of_wilson(queries: int) -> None:
    for hits in range(queries + 1):
        interval = wilson_interval(hits, queries)
        rate = hits / queries
        assert 0 <= interval.low <= rate <= interval.high <= 1
        centre = (rate + Z**2 / (2 * queries)) / (1 + Z**2 / queries)
        spread = Z * math.sqrt(rate * (1 - rate) / queries + Z**2 / (4 * queries**2))
        margin = spread / (1 + Z**2 / queries)
        assert (interval.low, interval.high) == pytest.approx(
            (centre - margin, centre + margin), abs=1e-12
        )


@pytest.mark.parametrize(
    ("hits", "queries", "state"),
    [
        (17, 20, GateState.INCONCLUSIVE),
        (16, 20, GateState.FAIL),
        (20, 20, GateState.INCONCLUSIVE),
        (21, 21, GateState.INCONCLUSIVE),
        (22, 22, GateState.PASS),
        (0, 1, GateState.FAIL),
        (1, 1, GateState.INCONCLUSIVE),
        (950, 1000, GateState.PASS),
        (850, 1000, GateState.INCONCLUSIVE),
        (849, 1000, GateState.FAIL),
    ],
)
def test_the_verdict_has_three_states(hits: int, queries: int, state: GateState) -> None:
    """With no miss, the lower bound is n / (n + z^2): 21 / 24.84 < 0.85 < 22 / 25.84."""
    verdict = judge(hits, queries)
    assert verdict.state is state
    assert verdict.allows_promotion is (state is not GateState.FAIL)
    assert verdict.hit_rate == hits / queries
    assert verdict.threshold == 0.85
    assert verdict.interval == wilson_interval(hits, queries)


def test_a_lower_bound_at_the_threshold_passes() -> None:
    bound = wilson_interval(45, 50).low
    assert judge(45, 50, threshold=bound).state is GateState.PASS
    assert judge(45, 50, threshold=math.nextafter(bound, 1)).state is GateState.INCONCLUSIVE


@pytest.mark.parametrize(
    ("hits", "queries", "more"),
    [
        (20, 20, 2),  # 22 of 22 is the first to pass
        (1, 1, 21),
        (116, 132, 462),  # the bound falls again at 463: a binary search gave 514
        (17, 20, None),  # at the threshold itself, no number settles it
        (850_001, 1_000_000, None),
        (16, 20, 0),  # nothing to settle: failed
        (22, 22, 0),  # nothing to settle: passed
    ],
)
def test_an_inconclusive_verdict_says_how_many_questions_would_settle_it(
    hits: int, queries: int, more: int | None
) -> None:
    assert judge(hits, queries).queries_to_settle == more


@pytest.mark.parametrize(("hits", "queries"), [(18, 20), (45, 50), (90, 100), (44, 50), (173, 200)])
def test_that_many_questions_do_settle_it_and_one_less_does_not(hits: int, queries: int) -> None:
    more = queries_to_settle(hits, queries, 0.85)
    assert more is not None

    def low(total: int) -> float:
        return wilson_interval(hits * total // queries, total).low

    assert low(queries + more) >= 0.85
    assert low(queries + more - 1) < 0.85
