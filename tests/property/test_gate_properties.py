"""The gate's figures compared with brute force and with `scipy.stats`."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from rag_resources.core.gate import queries_to_settle, wilson_interval

TRIED = 2_000


@st.composite
def counts(draw: st.DrawFn) -> tuple[int, int]:
    """Hits and questions."""
    queries = draw(st.integers(1, 400))
    return draw(st.integers(0, queries)), queries


@given(counts(), st.floats(0.05, 0.99))
def test_the_questions_that_settle_a_gate_are_the_smallest_number_that_does(
    observed: tuple[int, int], threshold: float
) -> None:
    hits, queries = observed
    by_brute_force = next(
        (
            more
            for more in range(TRIED)
            if wilson_interval(hits * (queries + more) // queries, queries + more).low >= threshold
        ),
        None,
    )
    found = queries_to_settle(hits, queries, threshold)
    if by_brute_force is None:
        assert found is None or found >= TRIED
    else:
        assert found == by_brute_force


@given(counts())
def test_intervals_equal_those_of_scipy(observed: tuple[int, int]) -> None:
    interval = wilson_interval(*observed)
    expected = binomtest(*observed).proportion_ci(confidence_level=0.95, method="wilson")
    assert interval.low == pytest.approx(expected.low, abs=1e-12)
    assert interval.high == pytest.approx(expected.high, abs=1e-12)
