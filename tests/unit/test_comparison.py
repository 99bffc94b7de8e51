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
from rag_resources.core.significance import (
    bootstrap_intervals,
    randomization_p_values,
)

Ranks = list[int | None]


def evaluated(ranks: Ranks) -> dict[UUID, dict[str, float]]:
    """The metrics of questions whose only relevant note came at these ranks."""
    return {
        UUID(int=number): {
            "hit_rate_at_10": float(rank is not None),
            "served_hit_rate": float(rank is not None and rank <= 5),
            "mrr": 1 / rank if rank else 0.0,
            "ndcg_at_10": 1 / np.log2(rank + 1) if rank else 0.0,
        }
        for number, rank in enumerate(ranks)
    }


def test_hits_are_tested_by_mcnemar_and_the_rest_by_randomization() -> None:
    """One of eight is lost and five are gained: 2 * (1 + 6) / 64."""
    before = evaluated([4, None, None, None, None, None, 1, 2])
    after = evaluated([None, 1, 2, 3, 4, 5, 2, 2])
    hits, _, mrr, ndcg = compare(before, after).metrics
    assert hits.p_value == pytest.approx(14 / 64, abs=1e-12)
    differences = np.array(
        [[after[key][name] - before[key][name] for name in COMPARED] for key in before]
    )
    *_, of_mrr, of_ndcg = randomization_p_values(differences)
    assert (mrr.p_value, ndcg.p_value) == (of_mrr, of_ndcg)
    assert (mrr.interval, ndcg.interval) == tuple(bootstrap_intervals(differences)[2:])


def test_without_a_question_in_common_nothing_is_compared() -> None:
    with pytest.raises(InvalidParameterError, match="ninguna pregunta"):
        compare(evaluated([1]), {})


def test_more_comparisons_need_more_evidence() -> None:
    """Nine questions gained of forty are evidence alone, and none among twenty comparisons."""
    before, after = evaluated([None] * 9 + [1] * 31), evaluated([10] * 9 + [1] * 31)
    alone = compare(before, after)
    among = compare_pairs([(before, after), *[(before, before)] * 19])
    assert alone.metrics[0].verdict is Verdict.BETTER
    assert among[0].metrics[0].p_value == alone.metrics[0].p_value
    assert among[0].metrics[0].verdict is Verdict.NO_EVIDENCE


@pytest.mark.parametrize(
    ("lost", "gained", "queries", "state"),
    [
        (0, 0, 132, Inferiority.UNDECIDED),  # 132 questions alike rule out 2.01 points, not 2
        (0, 0, 140, Inferiority.NON_INFERIOR),
        (20, 2, 132, Inferiority.INFERIOR),
        (12, 4, 132, Inferiority.INFERIOR),  # worse, though perhaps by less than the margin
        (4, 0, 132, Inferiority.UNDECIDED),  # one side of the exact test: 1/16
        (5, 0, 132, Inferiority.INFERIOR),
        (20, 4, 4_000, Inferiority.NON_INFERIOR),  # worse, but certainly within the margin
        (3, 2, 132, Inferiority.UNDECIDED),
        (5, 12, 400, Inferiority.NON_INFERIOR),
    ],
)
def test_non_inferiority_by_a_margin_of_two_points(
    lost: int, gained: int, queries: int, state: Inferiority
) -> None:
    assert judge_inferiority(lost=lost, gained=gained, queries=queries, margin=0.02).state is state


def test_non_inferiority_is_wrong_as_rarely_as_it_claims() -> None:
    """A system that loses exactly the margin passes in at most 5 % of 2,000 cases."""
    generator = np.random.default_rng(5)
    counts = generator.multinomial(300, [0.05, 0.03, 0.92], size=2_000)
    passed = [
        judge_inferiority(lost=int(lost), gained=int(gained), queries=300, margin=0.02).state
        is Inferiority.NON_INFERIOR
        for lost, gained, _ in counts
    ]
    assert np.mean(passed) <= 0.06
