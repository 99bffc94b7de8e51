"""Fusion with values computed by hand."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.fusion import (
    SIDE_CANDIDATES,
    convex_combination,
    fuse,
    min_max,
    on_scale,
    reciprocal_rank_fusion,
    scaled_combination,
)
from rag_resources.core.fusion_config import (
    DEFAULT_RETRIEVERS,
    FusionConfig,
    RetrieverConfig,
    Retrievers,
)
from rag_resources.core.retrievers import RankedList, RetrieverName
from rag_resources.core.types import Candidate, Ranking, ScoredChunk
from rag_resources.core.whole_notes import merge_whole_notes
from tests.strategies import uuid_number

A, B, C, D = (uuid_number(number) for number in (1, 2, 3, 4))
NOTE = uuid_number(100)


def ranking(name: RankedList, *scored: tuple[object, float]) -> Ranking:
    return Ranking(
        name,
        tuple(Candidate(chunk_id, NOTE, score) for chunk_id, score in scored),  # type: ignore[arg-type]
    )


def waiting(name: RankedList, *scored: tuple[UUID, float]) -> Ranking:
    """A list of whole notes."""
    return Ranking(name, tuple(Candidate(note_id, note_id, score) for note_id, score in scored))


SEMANTIC = ranking(RankedList.SEMANTIC, (A, 0.9), (B, 0.8), (C, 0.5))
CONTEXTUAL = ranking(RankedList.CONTEXTUAL, (B, 0.7), (A, 0.3))
FULLTEXT = ranking(RankedList.FULLTEXT, (B, 0.6), (D, 0.2))
EMPTY = ranking(RankedList.FULLTEXT)


def weights(semantic: float = 0.5, fulltext: float = 0.5) -> Retrievers:
    return {
        RetrieverName.SEMANTIC: RetrieverConfig(weight=semantic),
        RetrieverName.FULLTEXT: RetrieverConfig(weight=fulltext),
    }


def scores(chunks: list[ScoredChunk]) -> dict[object, float]:
    return {chunk.chunk_id: chunk.score for chunk in chunks}


def test_reciprocal_ranks_are_weighted_and_summed() -> None:
    fused = reciprocal_rank_fusion([SEMANTIC, FULLTEXT], weights=[0.5, 1.0])
    assert [chunk.chunk_id for chunk in fused] == [B, D, A, C]
    assert scores(fused) == pytest.approx(
        {B: 0.5 / 62 + 1 / 61, D: 1 / 62, A: 0.5 / 61, C: 0.5 / 63}, rel=1e-15
    )


def test_the_rank_constant_damps_the_first_ranks() -> None:
    fused = reciprocal_rank_fusion([SEMANTIC], weights=[1.0], rank_constant=1)
    assert [chunk.score for chunk in fused] == [1 / 2, 1 / 3, 1 / 4]


def test_a_fused_chunk_says_where_it_was_found() -> None:
    fused = reciprocal_rank_fusion([FULLTEXT, SEMANTIC], weights=[1, 1])
    assert fused[0] == ScoredChunk(
        chunk_id=B,
        note_id=NOTE,
        score=pytest.approx(1 / 61 + 1 / 62),  # type: ignore[arg-type]
        lists=(RankedList.FULLTEXT, RankedList.SEMANTIC),
        original_score=0.6,
    )


def test_a_retriever_with_two_lists_is_named_once() -> None:
    (first, *_) = reciprocal_rank_fusion([SEMANTIC, SEMANTIC], weights=[1, 1])
    assert first.lists == (RankedList.SEMANTIC,)


@pytest.mark.parametrize("swapped", [False, True])
def test_ties_break_by_chunk_id(swapped: bool) -> None:
    lists = [
        ranking(RankedList.SEMANTIC, (C, 0.9), (A, 0.1)),
        ranking(RankedList.FULLTEXT, (A, 0.9), (C, 0.1)),
    ]
    fused = reciprocal_rank_fusion(lists[::-1] if swapped else lists, weights=[1, 1])
    assert [chunk.chunk_id for chunk in fused] == [A, C]


def test_a_sum_over_one_is_one() -> None:
    fused = reciprocal_rank_fusion([SEMANTIC] * 3, weights=[1, 1, 1], rank_constant=1)
    assert fused[0].score == 1.0
    assert fused[1].score == 1.0
    assert fused[2].score == 0.75


def test_the_convex_combination_weighs_min_max_scores() -> None:
    """Semantic: A 1, B 0.75, C 0. Full text: B 1, D 0. Weights 1/4 and 3/4."""
    fused = convex_combination([SEMANTIC, FULLTEXT], weights=[0.25, 0.75])
    assert [chunk.chunk_id for chunk in fused] == [B, A, C, D]
    assert scores(fused) == pytest.approx({B: 0.25 * 0.75 + 0.75, A: 0.25, C: 0.0, D: 0.0})


def test_convex_weights_are_scaled_to_sum_to_one() -> None:
    fused = convex_combination([SEMANTIC, FULLTEXT], weights=[0.2, 0.2])
    assert scores(fused)[B] == pytest.approx((0.75 + 1) / 2)


def test_equal_scores_normalise_to_one() -> None:
    fused = convex_combination([ranking(RankedList.FULLTEXT, (B, 0.3), (A, 0.3))], weights=[1.0])
    assert [(chunk.chunk_id, chunk.score) for chunk in fused] == [(A, 1.0), (B, 1.0)]


def test_scores_are_stretched_from_0_to_1_and_equal_ones_are_all_1() -> None:
    assert min_max([0.5, 0.25, 0.75]) == [0.5, 0.0, 1.0]
    assert min_max([0.3, 0.3]) == [1.0, 1.0]
    assert min_max([]) == []


def test_scaled_scores_count_also_for_what_a_list_does_not_hold() -> None:
    """Weights .2 and .6 become 1/4 and 3/4. C has no words, D no place in the list by meaning."""
    meaning, words = {A: 0.9, B: 0.8, C: 0.5, D: 0.1}, {A: 0.4, B: 0.6, D: 0.2}
    given: dict[str, Any] = {"scores": [meaning, words], "weights": [0.2, 0.6]}
    fused = scaled_combination([SEMANTIC, FULLTEXT], **given)
    assert [chunk.chunk_id for chunk in fused] == [B, A, D, C]
    assert scores(fused) == pytest.approx({B: 0.65, A: 0.525, D: 0.175, C: 0.125})
    assert scaled_combination([SEMANTIC, FULLTEXT], most=2, **given) == fused[:2]


def test_scaled_scores_of_chunks_and_notes_share_a_scale() -> None:
    """The heavier kind sums to 1. A chunk has no score among notes, nor a note among chunks."""
    notes = ranking(RankedList.NOTES_FULLTEXT, (NOTE, 0.5))
    everything = {A: 0.9, B: 0.8, C: 0.5, NOTE: 0.5}
    fused = scaled_combination([SEMANTIC, notes], [everything] * 2, weights=[0.5, 0.2])
    assert scores(fused) == pytest.approx({A: 0.9, B: 0.8, C: 0.5, NOTE: 0.2})


def test_scaled_scores_for_another_text_count_only_for_its_own_candidates() -> None:
    side = replace(FULLTEXT, question=1)
    known = {A: 0.4, B: 0.6, D: 0.2}
    fused = scaled_combination([SEMANTIC, side], [{A: 0.9}, known], weights=[0.5, 0.5])
    assert scores(fused) == pytest.approx({A: 0.45, B: 0.3, D: 0.1, C: 0.0})
    unknown = scaled_combination([SEMANTIC, side], [{A: 0.9}, {}], weights=[0.5, 0.5])
    assert scores(unknown) == pytest.approx({A: 0.45, B: 0.0, C: 0.0, D: 0.0})


def test_another_order_of_ties_uses_the_same_scores() -> None:
    known = [{A: 0.1, B: 0.2, C: 0.9}, {D: 0.7}]
    lists, config = [SEMANTIC, FULLTEXT], FusionConfig(method="scaled")
    fused = fuse(lists, config, weights(), scores=known)
    assert [chunk.chunk_id for chunk in fused] == [C, D, B, A]
    assert fuse(lists, config, weights(), scores=known, most=2) == fused[:2]


@pytest.mark.parametrize(
    ("score", "mapped"), [(0.25, 0.0), (0.5, 0.5), (0.625, 0.75), (0.75, 1.0), (0, 0.0), (9, 1.0)]
)
def test_a_score_is_mapped_from_its_range_and_clipped(score: float, mapped: float) -> None:
    assert on_scale(score, 0.25, 0.75) == mapped


@pytest.mark.parametrize("fusion", [reciprocal_rank_fusion, convex_combination])
@pytest.mark.parametrize(
    "weights",
    [[1.0], [1.0, 1.0, 1.0], [0.0, 0.0], [-0.1, 1.0], [1.1, 0.5], [float("nan"), 1], []],
)
def test_weights_out_of_range_are_refused(fusion: object, weights: list[float]) -> None:
    with pytest.raises(InvalidParameterError, match="peso entre 0 y 1 por lista") as caught:
        fusion([SEMANTIC, FULLTEXT], weights=weights)  # type: ignore[operator]
    assert str(weights) in caught.value.message


@pytest.mark.parametrize("constant", [0, -60])
def test_the_rank_constant_is_at_least_one(constant: int) -> None:
    with pytest.raises(InvalidParameterError, match=f"al menos 1: {constant}"):
        reciprocal_rank_fusion([SEMANTIC], weights=[1.0], rank_constant=constant)


@pytest.mark.parametrize("method", ["rrf", "weighted"])
@pytest.mark.parametrize("lists", [[], [EMPTY], [EMPTY, ranking(RankedList.SEMANTIC)]])
def test_nothing_found_fuses_to_nothing(method: str, lists: list[Ranking]) -> None:
    assert fuse(lists, FusionConfig(method=method), DEFAULT_RETRIEVERS) == []


@pytest.mark.parametrize("method", ["rrf", "weighted"])
def test_a_single_list_keeps_its_own_scores(method: str) -> None:
    fused = fuse([EMPTY, SEMANTIC], FusionConfig(method=method), weights(semantic=0))
    assert [(chunk.chunk_id, chunk.score) for chunk in fused] == [(A, 0.9), (B, 0.8), (C, 0.5)]
    assert {chunk.lists for chunk in fused} == {(RankedList.SEMANTIC,)}


def test_lists_of_one_kind_share_its_weight() -> None:
    fused = fuse(
        [SEMANTIC, CONTEXTUAL, FULLTEXT],
        FusionConfig(method="rrf", rank_constant=10),
        weights(semantic=0.6, fulltext=0.4),
    )
    assert scores(fused) == pytest.approx(
        {
            A: 0.3 / 11 + 0.3 / 12,
            B: 0.3 / 12 + 0.3 / 11 + 0.4 / 11,
            C: 0.3 / 13,
            D: 0.4 / 12,
        }
    )


def test_notes_not_yet_chunked_have_the_whole_weight_of_their_kind() -> None:
    """Chunks and unchunked notes are different documents: their lists do not share a weight."""
    fused = fuse(
        [
            SEMANTIC,
            ranking(RankedList.NOTES_SEMANTIC, (D, 0.9)),
            ranking(RankedList.NOTES_FULLTEXT, (D, 0.1)),
        ],
        FusionConfig(method="rrf"),
        weights(semantic=0.6, fulltext=0.4),
    )
    assert scores(fused)[A] == pytest.approx(0.6 / 61)
    assert scores(fused)[D] == pytest.approx(0.6 / 61 + 0.4 / 61)


E5, USE = (0.75, 0.95), (-0.28, 0.76)


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        # By USE's range .50 is three quarters of the way, which is .90 in e5's.
        ("rrf", {A: 1 / 62, B: 1 / 63, C: 1 / 64, D: 1 / 61}),
        ("weighted", {A: 0.8, B: 0.4, C: 0.0, D: 1.0}),
    ],
)
def test_whole_notes_of_another_model_come_among_the_chunks(
    method: str, expected: dict[UUID, float]
) -> None:
    chunks = ranking(RankedList.SEMANTIC, (A, 0.89), (B, 0.87), (C, 0.85))
    notes = waiting(RankedList.NOTES_SEMANTIC, (D, 0.5))
    words = ranking(RankedList.FULLTEXT, (C, 0.1))
    fused = fuse(
        [chunks, notes, words],
        FusionConfig(method=method),
        weights(semantic=1, fulltext=0),
        ranges=[E5, USE, (0.0, 1.0)],
    )
    assert scores(fused) == pytest.approx(expected)
    (note,) = [chunk for chunk in fused if chunk.chunk_id == D]
    assert note.lists == (RankedList.NOTES_SEMANTIC,)


def test_an_unrelated_note_not_yet_chunked_does_not_lead() -> None:
    chunks = ranking(RankedList.SEMANTIC, (A, 0.89), (B, 0.87))
    notes = waiting(RankedList.NOTES_SEMANTIC, (D, 0.0))
    fused = fuse(
        [chunks, notes], FusionConfig(method="weighted"), weights(semantic=1), ranges=[E5, USE]
    )
    assert [chunk.chunk_id for chunk in fused] == [A, B, D]
    assert scores(fused)[D] == pytest.approx(0.75 + 0.2 * 0.28 / 1.04)


def test_a_merged_list_keeps_as_many_as_one_search_would() -> None:
    chunks = ranking(RankedList.SEMANTIC, (A, 0.9), (B, 0.8))
    notes = waiting(RankedList.NOTES_SEMANTIC, (C, 0.85), (D, 0.1))
    (merged,) = merge_whole_notes([chunks, notes], [(0, 1), (0, 1)], pool=2)
    assert [candidate.chunk_id for candidate in merged.candidates] == [A, C]


def test_without_chunks_whole_notes_stay_a_list_of_their_own() -> None:
    notes = waiting(RankedList.NOTES_SEMANTIC, (C, 0.85))
    lists = [ranking(RankedList.SEMANTIC), notes, FULLTEXT]
    assert merge_whole_notes(lists, [(0, 1)] * 3, pool=None) == lists


def test_a_kind_of_no_weight_adds_nothing_to_another() -> None:
    fused = fuse([SEMANTIC, FULLTEXT], FusionConfig(method="rrf"), weights(semantic=0, fulltext=1))
    assert scores(fused) == pytest.approx({B: 1 / 61, D: 1 / 62, A: 0, C: 0})


def test_lists_of_no_weight_count_alike_if_they_are_all_there_is() -> None:
    fused = fuse(
        [SEMANTIC, CONTEXTUAL], FusionConfig(method="rrf"), weights(semantic=0, fulltext=1)
    )
    assert scores(fused) == pytest.approx(
        {A: 0.5 / 61 + 0.5 / 62, B: 0.5 / 61 + 0.5 / 62, C: 0.5 / 63}
    )


def test_the_method_is_that_of_the_configuration() -> None:
    fused = fuse([SEMANTIC, FULLTEXT], FusionConfig(method="weighted"), DEFAULT_RETRIEVERS)
    assert scores(fused)[B] == pytest.approx((0.75 + 1) / 2)


def test_the_questions_inside_a_question_share_its_weight() -> None:
    fused = fuse(
        [SEMANTIC, replace(CONTEXTUAL, question=1), replace(FULLTEXT, question=1)],
        FusionConfig(method="rrf"),
        weights(semantic=0.6, fulltext=0.4),
    )
    assert scores(fused) == pytest.approx(
        {A: 0.3 / 61 + 0.3 / 62, B: 0.3 / 62 + 0.3 / 61 + 0.4 / 61, C: 0.3 / 63, D: 0.4 / 62}
    )


@pytest.mark.parametrize("method", ["rrf", "weighted"])
def test_only_the_first_candidates_of_a_sub_question_count(method: str) -> None:
    many = ranking(
        RankedList.SEMANTIC, *((uuid_number(number), 1 / number) for number in range(10, 20))
    )
    fused = fuse(
        [FULLTEXT, replace(many, question=1)], FusionConfig(method=method), DEFAULT_RETRIEVERS
    )
    assert len(fused) == len(FULLTEXT.candidates) + SIDE_CANDIDATES
    assert len(fuse([FULLTEXT, many], FusionConfig(method=method), DEFAULT_RETRIEVERS)) == 12
