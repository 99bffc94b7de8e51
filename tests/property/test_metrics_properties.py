"""Properties 25 to 28: metrics count distinct notes, failed questions included."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from rag_resources.answers.answerers import QuotationAnswerer
from rag_resources.core.metrics import (
    CUTOFFS,
    JudgedRanking,
    mean_metrics,
    per_query_metrics,
    percentile,
)
from rag_resources.core.quotation import SourcePassage
from rag_resources.evaluation.judge import EmbeddedJudge
from tests.embedders import HashEmbedder
from tests.strategies import judged_runs

Run = dict[str, JudgedRanking]


def first_rank(judged: JudgedRanking, cutoff: int) -> int | None:
    """Return the rank of the first relevant note among distinct ones, None after `cutoff`."""
    seen: list[str] = []
    for note in judged.retrieved:
        if note not in seen:
            seen.append(note)
        if note in judged.relevant:
            return len(seen) if len(seen) <= cutoff else None
    return None


@given(judged_runs(min_size=1), st.integers(0, 3))
def test_property_25_hit_rate_counts_every_question_failed_ones_as_misses(
    run: Run, failures: int
) -> None:
    for number in range(failures):
        run[f"fallida-{number}"] = JudgedRanking(frozenset({"nota-1"}), ())
    means = mean_metrics(per_query_metrics(run))
    for cutoff in CUTOFFS:
        hits = sum(first_rank(judged, cutoff) is not None for judged in run.values())
        assert abs(means[f"hit_rate_at_{cutoff}"] - hits / len(run)) < 1e-12


@given(judged_runs(min_size=1))
def test_property_26_mrr_is_the_mean_reciprocal_rank_among_distinct_notes(run: Run) -> None:
    ranks = [first_rank(judged, 10) for judged in run.values()]
    expected = sum(Fraction(1, rank) for rank in ranks if rank) / len(run)
    per_query = per_query_metrics(run)
    assert abs(mean_metrics(per_query)["mrr"] - expected) < 1e-12
    for judged, (question, rank) in zip(run.values(), zip(run, ranks, strict=True), strict=True):
        assert judged.first_relevant_rank == rank
        assert abs(per_query[question]["mrr"] - (1 / rank if rank else 0)) < 1e-12


@given(
    st.lists(st.floats(0, 1e6), min_size=1, max_size=250),
    st.integers(1, 100).map(lambda hundredths: Fraction(hundredths, 100)),
)
def test_property_27_percentiles_are_nearest_ranks_in_order(
    values: list[float], share: Fraction
) -> None:
    assert percentile(values, 0.5) <= percentile(values, 0.95) <= percentile(values, 0.99)
    found = percentile(values, float(share))
    below = sum(value < found for value in values)
    up_to = sum(value <= found for value in values)
    assert found in values
    assert Fraction(below, len(values)) < share <= Fraction(up_to, len(values))


@given(judged_runs())
def test_property_28_every_metric_is_between_0_and_1(run: Run) -> None:
    per_query = per_query_metrics(run)
    assert per_query.keys() == run.keys()
    for values in (*per_query.values(), mean_metrics(per_query)):
        assert all(0 <= value <= 1 for value in values.values())
    for question, judged in run.items():
        distinct = list(dict.fromkeys(judged.retrieved))
        for cutoff in CUTOFFS:
            found = len(judged.relevant.intersection(distinct[:cutoff]))
            precision = per_query[question][f"precision_at_{cutoff}"]
            recall = per_query[question][f"recall_at_{cutoff}"]
            assert abs(precision - found / cutoff) < 1e-12
            assert abs(recall - found / len(judged.relevant)) < 1e-12


TEXTS = st.lists(
    st.sampled_from(["La", "gata", "no", "415", "dos", "come.", "a:", "\n", "\t", "|", "€"])
).map(" ".join)


@given(TEXTS, st.lists(TEXTS | st.text(max_size=40), min_size=1, max_size=4))
def test_property_28_a_quotation_gets_no_faithfulness(question: str, passages: list[str]) -> None:
    answer = QuotationAnswerer().answer(question, [SourcePassage(own) for own in passages])
    if answer.found:
        judged = EmbeddedJudge(HashEmbedder()).judge(question, answer.text, passages)
        assert judged.faithfulness is None
