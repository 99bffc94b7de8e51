"""Metrics by hand and against trec_eval itself."""

import random

import pytest
import pytrec_eval

from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.metrics import (
    JudgedRanking,
    per_query_metrics,
    percentile,
    percentile_interval,
)


def judged(relevant: str, retrieved: str) -> JudgedRanking:
    """Notes are letters."""
    return JudgedRanking(frozenset(relevant), tuple(retrieved))


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
