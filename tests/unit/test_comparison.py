"""Comparing evaluations question by question."""

from uuid import UUID

import numpy as np
import pytest

from rag_resources.core.comparison import (
    COMPARED,
    Inferiority,
    Verdict,
    compare,
    compare_pairs,
    judge_inferiority,
)
from rag_resources.core.errors import InvalidParameterError

Ranks = list[int | None]


def evaluated(ranks: Ranks) -> dict[UUID, dict[str, float]]:
    """The metrics of questions whose only relevant note came at these ranks."""
    return {
        UUID(int=number): {
            "hit_rate_at_10": float(rank is not None),
            "mrr": 1 / rank if rank else 0.0,
            "ndcg_at_10": 1 / np.log2(rank + 1) if rank else 0.0,
        }
        for number, rank in enumerate(ranks)
    }


def test_means_and_flips_by_hand() -> None:
    """Of four questions one is lost, one gained and one moved up."""
    found = compare(evaluated([1, 4, None, 2]), evaluated([1, 2, 5, None]))
    hits, mrr, _ = found.metrics
    assert (found.queries, found.left_out) == (4, 0)
    assert (hits.before, hits.after) == (0.75, 0.75)
    assert mrr.before == pytest.approx((1 + 0.25 + 0 + 0.5) / 4)
    assert mrr.after == pytest.approx((1 + 0.5 + 0.2 + 0) / 4)
    assert (found.lost, found.gained) == ((UUID(int=3),), (UUID(int=2),))
    assert hits.p_value == 1
    assert hits.verdict is Verdict.NO_EVIDENCE


def test_better_and_worse_are_mirror_images() -> None:
    low: Ranks = [None] * 30 + [5] * 30
    high: Ranks = [3] * 30 + [1] * 30
    up, down = compare(evaluated(low), evaluated(high)), compare(evaluated(high), evaluated(low))
    assert [item.metric for item in up.metrics] == list(COMPARED)
    assert {item.verdict for item in up.metrics} == {Verdict.BETTER}
    assert {item.verdict for item in down.metrics} == {Verdict.WORSE}
    assert all(item.interval.low > 0 for item in up.metrics)


def test_questions_of_one_evaluation_only_are_left_out_and_counted() -> None:
    found = compare(evaluated([1, 2, 3]), evaluated([1, 2, 3, 4, None]))
    assert (found.queries, found.left_out) == (3, 2)


def test_without_a_question_in_common_nothing_is_compared() -> None:
    with pytest.raises(InvalidParameterError):
        compare(evaluated([1]), {})


def test_more_comparisons_need_more_evidence() -> None:
    """Nine questions gained of forty are evidence alone, and none among twenty comparisons."""
    before, after = evaluated([None] * 9 + [1] * 31), evaluated([10] * 9 + [1] * 31)
    alone = compare(before, after)
    among = compare_pairs([(before, after), *[(before, before)] * 19])
    assert alone.metrics[0].verdict is Verdict.BETTER
    assert among[0].metrics[0].p_value == alone.metrics[0].p_value
    assert among[0].metrics[0].verdict is Verdict.NO_EVIDENCE


def test_pairs_of_different_questions_are_compared_each_over_its_own() -> None:
    few, many = evaluated([1, None]), evaluated([2, 1, 1])
    first, second = compare_pairs([(few, many), (many, many)])
    assert (first.queries, first.left_out) == (2, 1)
    assert (second.queries, second.left_out) == (3, 0)


@pytest.mark.parametrize(
    ("lost", "gained", "queries", "state"),
    [
        (0, 0, 132, Inferiority.UNDECIDED),  # 132 questions alike rule out 2.01 points, not 2
        (0, 0, 140, Inferiority.NON_INFERIOR),
        (20, 2, 132, Inferiority.INFERIOR),
        (3, 2, 132, Inferiority.UNDECIDED),
        (5, 12, 400, Inferiority.NON_INFERIOR),
    ],
)
def test_non_inferiority_by_a_margin_of_two_points(
    lost: int, gained: int, queries: int, state: Inferiority
) -> None:
    assert judge_inferiority(lost=lost, gained=gained, queries=queries, margin=0.02).state is state


def test_non_inferiority_is_wrong_as_rarely_as_it_claims() -> None:
    """A system that loses exactly the margin is let through in 5 % of 2,000 cases at most."""
    generator = np.random.default_rng(5)
    counts = generator.multinomial(300, [0.05, 0.03, 0.92], size=2_000)
    passed = [
        judge_inferiority(lost=int(lost), gained=int(gained), queries=300, margin=0.02).state
        is Inferiority.NON_INFERIOR
        for lost, gained, _ in counts
    ]
    assert np.mean(passed) <= 0.06
