"""A configuration with the graph has to win against itself without it."""

from uuid import UUID

import pytest

from rag_resources.core.graph_gate import judge_graph

SINGLE = [UUID(int=n) for n in range(200)]
MULTI = [UUID(int=n) for n in range(1000, 1060)]


def metrics(hit: float, recall: float) -> dict[str, float]:
    return {"hit_rate_at_10": hit, "recall_at_10": recall}


def judged(*, lost: int, gained: int, rises: int, falls: int = 0) -> str | None:
    """The reason against a graph that changes some of the questions."""
    before = {key: metrics(1, 1) for key in SINGLE} | {key: metrics(1, 0.5) for key in MULTI}
    after = dict(before)
    for key in SINGLE[:lost]:
        after[key] = metrics(0, 0)
    for key in SINGLE[lost : lost + gained]:
        before[key] = metrics(0, 0)
    for key in MULTI[:rises]:
        after[key] = metrics(1, 1)
    for key in MULTI[rises : rises + falls]:
        after[key] = metrics(1, 0)
    return judge_graph(before, after, single=SINGLE, multi=MULTI, margin=0.02).reason


def test_it_wins_without_harm_and_with_a_gain_that_is_no_chance() -> None:
    assert judged(lost=0, gained=0, rises=12) is None
    assert judged(lost=0, gained=3, rises=12) is None


@pytest.mark.parametrize(
    ("lost", "rises", "falls", "words"),
    [
        (10, 12, 0, "una sola nota"),
        (4, 12, 0, "una sola nota"),
        (0, 0, 0, "no gana"),
        (0, 3, 0, "no gana"),
        (0, 6, 6, "no gana"),
        (0, 0, 12, "no gana"),
    ],
)
def test_harm_and_a_gain_by_chance_are_named(lost: int, rises: int, falls: int, words: str) -> None:
    reason = judged(lost=lost, gained=0, rises=rises, falls=falls)
    assert reason is not None
    assert words in reason


def test_without_tags_nothing_is_known() -> None:
    both = {key: metrics(1, 1) for key in MULTI}
    verdict = judge_graph(both, both, single=SINGLE, multi=MULTI, margin=0.02)
    assert not verdict.has_won
    assert "hops:single" in str(verdict.reason)
