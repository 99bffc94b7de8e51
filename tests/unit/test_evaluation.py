"""The numbers of an evaluation, by hand, from what each question found."""

from dataclasses import replace
from uuid import UUID

import pytest

from rag_resources.core.evaluation import (
    Percentiles,
    QueryOutcome,
    Timing,
    judge_stored,
    summarize,
)
from rag_resources.core.gate import GateConfig, GateState
from rag_resources.core.judging import JudgeInfo, summarize_judgements
from tests.stored_evaluations import Asked, stored
from tests.strategies import uuid_number

A, B, X = (uuid_number(number) for number in (1, 2, 3))
FIRST, SECOND, MISSED = (str(UUID(int=number)) for number in (1, 2, 3))


def three_questions() -> list[QueryOutcome]:
    """Found first, found second, and one that failed before it was embedded."""
    first = Asked(1, [A], [A, X], "causal", difficulty=2, tags=["salud", "salud"])
    second = Asked(2, [A, B], [X, X, B], "factual", difficulty=2, tags=["salud", "viaje"])
    missed = Asked(3, [B], [], "factual", error="la base de datos no responde", difficulty=5)
    return [
        first.outcome,
        replace(second.outcome, degraded=("rerank",)),
        replace(missed.outcome, stages={"search": 8.0}),
    ]


def test_failed_questions_count_as_misses_and_degraded_ones_are_told() -> None:
    summary = summarize(three_questions())
    assert (summary.total_queries, summary.failed_queries, summary.degraded_queries) == (3, 1, 1)
    assert summary.metrics["mrr"] == pytest.approx((1 + 1 / 2 + 0) / 3)
    assert summary.metrics["hit_rate_at_10"] == pytest.approx(2 / 3)
    assert {key: found["mrr"] for key, found in summary.per_query.items()} == {
        FIRST: 1.0,
        SECOND: 0.5,
        MISSED: 0.0,
    }


def test_means_are_told_by_category_and_difficulty() -> None:
    breakdown = summarize(three_questions()).breakdown
    rates = [f"hit_rate_at_{cutoff}" for cutoff in (1, 3, 5, 10)]
    found = {"queries": 1.0, **dict.fromkeys(rates, 1), "mrr": 1}
    missed = dict.fromkeys(found, 0) | {"queries": 1.0}
    of_both = found | {"queries": 2.0, "hit_rate_at_1": 0.5, "mrr": 0.75}
    halved = {**dict.fromkeys(rates, 0.5), "hit_rate_at_1": 0, "mrr": 0.25}
    assert breakdown == {
        "category:causal": found,
        "category:factual": {"queries": 2.0, **halved},
        "difficulty:2": of_both,
        "difficulty:5": missed,
    }
    assert list(breakdown) == sorted(breakdown)


def test_latencies_are_percentiles_of_the_questions_that_reached_a_stage() -> None:
    summary = summarize(three_questions())
    assert summary.latency == Percentiles(12.0, 13.0, 13.0)
    assert list(summary.stages) == ["search", "embed"]
    assert summary.stages["search"] == Percentiles(7.0, 8.0, 8.0)
    assert summary.stages["embed"] == Percentiles(3.0, 3.0, 3.0)


def test_the_verdict_is_by_the_hits_and_the_threshold_of_the_gate() -> None:
    """Two of three."""
    outcomes = [replace(outcome, degraded=()) for outcome in three_questions()]
    verdict = summarize(outcomes).verdict
    assert (verdict.state, verdict.threshold) == (GateState.FAIL, GateConfig().hit_rate_at_10)
    assert verdict.hit_rate == pytest.approx(2 / 3)
    lenient = summarize(outcomes, gate=GateConfig(hit_rate_at_10=0.6)).verdict
    assert (lenient.state, lenient.threshold) == (GateState.INCONCLUSIVE, 0.6)


def test_a_question_that_was_not_asked_in_full_disturbs_the_verdict() -> None:
    """However many others hit, and however lenient the gate is."""
    verdict = summarize(three_questions(), gate=GateConfig(hit_rate_at_10=0.1)).verdict
    assert (verdict.state, verdict.allows_promotion) == (GateState.DISTURBED, False)


def test_latencies_are_those_of_their_own_pass() -> None:
    """A stage that only the quality pass had is none of users'."""
    timings = [Timing(2_000.0, {"embed": 1.0}, ("search",)), Timing(30.0, {"embed": 3.0})]
    summary = summarize(three_questions(), timings=timings)
    assert summary.latency == Percentiles(30.0, 2_000.0, 2_000.0)
    assert summary.stages == {"embed": Percentiles(1.0, 3.0, 3.0)}
    assert (summary.latency_queries, summary.late_queries) == (2, 1)


def test_judgements_come_with_the_numbers_if_there_are_any() -> None:
    judgements = summarize_judgements(JudgeInfo("embedded", "m", "v", "a"), {})
    assert summarize(three_questions()).judgements is None
    assert summarize(three_questions(), judgements).judgements is judgements


@pytest.mark.parametrize(
    ("rate", "threshold", "state"),
    [
        (0.85, 0.85, GateState.INCONCLUSIVE),
        (17 / 20, 0.9, GateState.FAIL),
        (0.8499999, 0.85, GateState.INCONCLUSIVE),  # stored rounded: 17 hits all the same
        (16 / 20, 0.85, GateState.FAIL),
        (1.0, 0.5, GateState.PASS),
    ],
)
def test_a_stored_evaluation_is_judged_by_the_gate_as_it_is_now(
    rate: float, threshold: float, state: GateState
) -> None:
    verdict = judge_stored(stored(hit_rate_at_10=rate), GateConfig(hit_rate_at_10=threshold))
    assert (verdict.state, verdict.threshold) == (state, threshold)
    assert verdict.hit_rate == pytest.approx(rate, abs=1e-6)


def test_what_users_get_is_the_beginning_of_the_ranking() -> None:
    """Found second and asked for one: a hit of the ranking, a miss for the user."""
    found = Asked(1, [A], [X, A])
    for final, served in ((1, 0.0), (2, 1.0)):
        summary = summarize([replace(found, final=final).outcome])
        assert summary.metrics["hit_rate_at_10"] == 1
        assert summary.metrics["served_hit_rate"] == served
