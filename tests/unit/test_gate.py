"""The gate at its borders, and Wilson intervals from the literature."""

import math

import pytest

from rag_resources.core.gate import GateState, judge, wilson_interval


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
