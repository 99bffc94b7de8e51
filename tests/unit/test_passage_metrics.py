"""Metrics per passage by hand and against `ir-measures`."""

import math
import random
from uuid import UUID

import ir_measures
import pytest
from ir_measures import RR, P, R, Success, nDCG

from rag_resources.core.evaluation import QueryOutcome, summarize
from rag_resources.core.golden import GoldenEntry
from rag_resources.core.golden_places import GoldenPlace, LocatedPlace
from rag_resources.core.metrics import mean_metrics, per_query_metrics
from rag_resources.core.passage_metrics import NoteRange, judge_passages, target_ranges

A, B, C = (UUID(int=number) for number in (1, 2, 3))


def passage(note: UUID, start: int, end: int) -> NoteRange:
    return NoteRange(note, start, end)


def place(note: UUID, start: int, end: int, *, lost: bool = False) -> LocatedPlace:
    stated = GoldenPlace(note, start, end, "x" * (end - start))
    return LocatedPlace(stated, start, end, similarity=None if lost else 1.0)


def outcome(
    number: int, places: list[LocatedPlace], *found: NoteRange, error: str | None = None
) -> QueryOutcome:
    entry = GoldenEntry(f"¿{number}?", (A, B), "r", "factual", 1, golden_id=UUID(int=100 + number))
    return QueryOutcome(
        entry,
        tuple(each.note_id for each in found),
        1.0,
        {},
        error=error,
        retrieved_passages=found,
        places=tuple(places),
    )


@pytest.mark.parametrize(
    ("start", "end", "overlaps"),
    [
        (0, 10, False),
        (0, 11, True),
        (10, 20, True),
        (12, 13, True),
        (19, 30, True),
        (20, 30, False),
    ],
)
def test_ranges_overlap_where_they_share_a_character(start: int, end: int, overlaps: bool) -> None:
    assert passage(A, start, end).overlaps(passage(A, 10, 20)) is overlaps
    assert passage(A, 10, 20).overlaps(passage(A, start, end)) is overlaps
    assert not passage(B, start, end).overlaps(passage(A, 10, 20))


def test_the_metrics_of_one_question_by_hand() -> None:
    """Three places: two in note a, one in b. Passages 2 and 5 find one each, 3 repeats 2's."""
    targets = target_ranges([A, B], [place(A, 10, 20), place(A, 500, 520), place(B, 0, 5)])
    judged = judge_passages(
        [
            passage(A, 100, 200),
            passage(A, 0, 12),
            passage(A, 11, 60),
            passage(C, 0, 5),
            passage(B, 4, 90),
        ],
        targets,
    )
    assert judged.first_relevant_rank == 2
    ideal = 1 + 1 / math.log2(3) + 1 / math.log2(4)
    assert per_query_metrics({"q": judged})["q"] == pytest.approx(
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
            "ndcg_at_10": (1 / math.log2(3) + 1 / math.log2(6)) / ideal,
        }
    )


def test_places_that_one_passage_finds_together_are_one() -> None:
    targets = [passage(A, 0, 5), passage(A, 6, 9), passage(B, 0, 3)]
    values = per_query_metrics({"q": judge_passages([passage(A, 0, 40)], targets)})["q"]
    assert (values["hit_rate_at_1"], values["recall_at_10"]) == (1, 1 / 2)
    both = judge_passages([passage(A, 0, 40), passage(B, 0, 40)], targets)
    values = per_query_metrics({"q": both})["q"]
    assert (values["recall_at_3"], values["ndcg_at_10"], values["precision_at_3"]) == (1, 1, 2 / 3)


def test_the_tenth_passage_counts_and_the_eleventh_does_not() -> None:
    others = [passage(C, number, number + 1) for number in range(10)]
    found = passage(A, 0, 5)
    assert judge_passages([*others[:9], found], [found]).first_relevant_rank == 10
    missed = judge_passages([*others, found], [found])
    assert missed.first_relevant_rank is None
    assert set(per_query_metrics({"q": missed})["q"].values()) == {0.0}


def test_a_note_without_a_place_counts_as_a_whole_beside_places() -> None:
    targets = target_ranges([A, B], [place(A, 10, 20)])
    assert judge_passages([passage(A, 30, 40), passage(B, 900, 950)], targets).relevant == {
        "passage-2",
        "missed-0",
    }


def test_a_lost_place_is_not_looked_for_nor_its_note_in_its_stead() -> None:
    assert target_ranges([A, B], [place(A, 10, 20, lost=True)]) == ()
    targets = target_ranges([A, B], [place(A, 10, 20, lost=True), place(B, 0, 5)])
    assert targets == (NoteRange(B, 0, 5),)


def test_questions_without_places_are_left_out_and_failed_ones_are_misses() -> None:
    summary = summarize(
        [
            outcome(1, [place(A, 0, 5)], passage(B, 0, 9), passage(A, 4, 9)),
            outcome(2, [place(A, 0, 5)], error="no"),
            outcome(3, [], passage(A, 0, 9)),
            outcome(4, [place(A, 0, 5, lost=True)], passage(A, 0, 9)),
        ]
    )
    passages = summary.passages
    assert passages.queries == 2
    assert passages.first_ranks == {str(UUID(int=101)): 1, str(UUID(int=102)): None}
    assert passages.metrics["hit_rate_at_1"] == 0.5
    # Per note all four questions count, as they did before there were places.
    assert summary.total_queries == 4
    assert summary.metrics["hit_rate_at_1"] == 0.75


def test_an_evaluation_without_places_has_no_numbers_per_passage() -> None:
    summary = summarize([outcome(1, [], passage(A, 0, 5))])
    assert summary.passages.queries == 0
    assert summary.passages.per_query == {}
    assert set(summary.passages.metrics.values()) == {0.0}


@pytest.mark.parametrize("seed", range(5))
def test_ir_measures_agrees(seed: int) -> None:
    """Judged anew from the definition: places and passages as documents, one place a passage."""
    chance = random.Random(seed)
    qrels, run, judged = [], [], {}
    for number in range(20):
        key = f"q{number}"
        # Places far enough apart that no passage of at most 50 characters holds two.
        targets = [
            passage(note, 100 * slot, 100 * slot + chance.randint(1, 40))
            for note, slot in chance.sample([(n, s) for n in (A, B) for s in range(4)], 3)
        ]
        found = [
            passage(chance.choice([A, B, C]), start := chance.randint(0, 400), start + 50)
            for _ in range(chance.randint(0, 14))
        ]
        judged[key] = judge_passages(found, targets)
        seen: set[int] = set()
        for rank, each in enumerate(found[:10]):
            hit = next((i for i, t in enumerate(targets) if each.overlaps(t)), None)
            name = f"other-{rank}" if hit is None or hit in seen else f"place-{hit}"
            seen |= {hit} if hit is not None else set()
            run.append(ir_measures.ScoredDoc(key, name, 10.0 - rank))
        qrels += [ir_measures.Qrel(key, f"place-{i}", 1) for i in range(len(targets))]
    measures = {
        "hit_rate_at_5": Success @ 5,
        "hit_rate_at_10": Success @ 10,
        "precision_at_3": P @ 3,
        "recall_at_10": R @ 10,
        "mrr": RR @ 10,
        "ndcg_at_10": nDCG @ 10,
    }
    ours = mean_metrics(per_query_metrics(judged))
    expected = ir_measures.calc_aggregate(list(measures.values()), qrels, run)
    assert ours["hit_rate_at_10"] > 0
    for name, measure in measures.items():
        assert ours[name] == pytest.approx(expected[measure], rel=1e-12)
