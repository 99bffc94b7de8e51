"""Metrics by hand and against trec_eval itself."""

import math
import random

import pytest
import pytrec_eval

from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.metrics import (
    JudgedRanking,
    mean_metrics,
    per_query_metrics,
    percentile,
    percentile_interval,
)


def judged(relevant: str, retrieved: str) -> JudgedRanking:
    """Notes are letters."""
    return JudgedRanking(frozenset(relevant), tuple(retrieved))


def test_the_metrics_of_one_question_by_hand() -> None:
    """Relevant a, b, c; found at the distinct ranks 2 (a) and 4 (b)."""
    values = per_query_metrics({"q": judged("abc", "xxaxaayb")})["q"]
    ideal = 1 + 1 / math.log2(3) + 1 / math.log2(4)
    assert values == pytest.approx(
        {
            "hit_rate_at_1": 0,
            "hit_rate_at_3": 1,
            "hit_rate_at_5": 1,
            "hit_rate_at_10": 1,
            "precision_at_1": 0,
            "precision_at_3": 1 / 3,
            "precision_at_5": 2 / 5,
            "precision_at_10": 2 / 10,
            "recall_at_1": 0,
            "recall_at_3": 1 / 3,
            "recall_at_5": 2 / 3,
            "recall_at_10": 2 / 3,
            "mrr": 1 / 2,
            "ndcg_at_10": (1 / math.log2(3) + 1 / math.log2(5)) / ideal,
        }
    )


def test_a_question_that_retrieved_nothing_is_a_zero_in_the_mean() -> None:
    per_query = per_query_metrics({"q1": judged("a", "a"), "q2": judged("a", "")})
    assert set(per_query["q2"].values()) == {0.0}
    means = mean_metrics(per_query)
    assert means["hit_rate_at_10"] == means["mrr"] == means["ndcg_at_10"] == 0.5


@pytest.mark.parametrize("seed", range(2))
def test_trec_eval_agrees(seed: int) -> None:
    """The same run by `pytrec_eval`, whose scores break ties by nothing: all are different."""
    chance = random.Random(seed)
    notes = [f"nota-{number}" for number in range(30)]
    rankings = {
        f"q{number}": JudgedRanking(
            frozenset(chance.sample(notes, chance.randint(1, 6))),
            tuple(chance.choices(notes, k=chance.randint(1, 25))),
        )
        for number in range(20)
    }
    qrels = {key: dict.fromkeys(judged.relevant, 1) for key, judged in rankings.items()}
    run = {}
    for key, ranking in rankings.items():
        distinct = list(dict.fromkeys(ranking.retrieved))[:10]
        run[key] = {note: 1 / (1 + place) for place, note in enumerate(distinct)}
    names = {"success.1,3,5,10", "P.1,3,5,10", "recall.1,3,5,10", "recip_rank", "ndcg_cut.10"}
    reference = pytrec_eval.RelevanceEvaluator(qrels, names).evaluate(run)
    ours = per_query_metrics(rankings)
    assert ours.keys() == reference.keys()
    for key, values in reference.items():
        expected = {"mrr": values["recip_rank"], "ndcg_at_10": values["ndcg_cut_10"]}
        for cutoff in (1, 3, 5, 10):
            expected[f"hit_rate_at_{cutoff}"] = values[f"success_{cutoff}"]
            expected[f"precision_at_{cutoff}"] = values[f"P_{cutoff}"]
            expected[f"recall_at_{cutoff}"] = values[f"recall_{cutoff}"]
        assert ours[key] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("values", "share"), [([], 0.5), ([1], 0), ([1], -0.1), ([1], 1.01)])
def test_a_percentile_of_nothing_or_out_of_range_is_refused(
    values: list[float], share: float
) -> None:
    with pytest.raises(InvalidParameterError, match="No hay percentil") as caught:
        percentile(values, share)
    assert f"{share}" in caught.value.message
    assert f"{len(values)} valores" in caught.value.message


@pytest.mark.parametrize(
    ("count", "expected"), [(1, (1, 1)), (20, (17, 20)), (132, (120, 131)), (1_000, (936, 964))]
)
def test_the_interval_of_a_percentile_is_between_order_statistics(
    count: int, expected: tuple[int, int]
) -> None:
    """Of n values about 95 % are below the p95, give or take what a binomial varies."""
    assert percentile_interval(list(range(count, 0, -1)), 0.95) == expected
