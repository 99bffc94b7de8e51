"""Properties 1, 2 and 3 for fused lists, against exact rational arithmetic."""

import math
from dataclasses import replace
from fractions import Fraction
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from rag_resources.core.fusion import (
    SIDE_CANDIDATES,
    convex_combination,
    fuse,
    reciprocal_rank_fusion,
)
from rag_resources.core.fusion_config import (
    DEFAULT_RETRIEVERS,
    FusionConfig,
    RetrieverConfig,
    Retrievers,
)
from rag_resources.core.retrievers import DOCUMENTS_OF, RETRIEVER_OF, RankedList, RetrieverName
from rag_resources.core.types import Candidate, Ranking, ScoredChunk
from tests.strategies import (
    fusion_configs,
    retrieved_lists,
    weighed_retrievers,
    weighted_rankings,
)

Weighted = tuple[list[Ranking], list[float]]
Asked = tuple[list[Ranking], FusionConfig]
WITHOUT_GRAPH = [name for name, of in RETRIEVER_OF.items() if of is not RetrieverName.GRAPH]
ROUNDING = Fraction(1, 2**50)
UNDERFLOW = Fraction(1, 10**300)


@st.composite
def questioned_lists(draw: st.DrawFn) -> tuple[list[Ranking], FusionConfig]:
    """The lists of a question and of up to two inside it, and how they are fused."""
    config = draw(fusion_configs())
    questions = draw(st.lists(retrieved_lists(of=RankedList), min_size=1, max_size=3))
    return [
        replace(ranking, question=number)
        for number, lists in enumerate(questions)
        for ranking in lists
    ], config


def exact_scores(
    rankings: list[Ranking], weights: list[float], constant: int
) -> dict[UUID, Fraction]:
    """Sum weight / (constant + rank) without rounding."""
    scores: dict[UUID, Fraction] = {}
    for ranking, weight in zip(rankings, weights, strict=True):
        for position, candidate in enumerate(ranking.candidates):
            term = Fraction(weight) / (constant + position + 1)
            scores[candidate.chunk_id] = scores.get(candidate.chunk_id, Fraction(0)) + term
    return scores


def order_of(chunks: list[ScoredChunk]) -> list[tuple[UUID, float]]:
    return [(chunk.chunk_id, chunk.score) for chunk in chunks]


@given(
    questioned_lists(),
    weighed_retrievers(),
    weighted_rankings(),
    st.integers(1, 100),
)
def test_property_01_every_fused_score_is_finite_and_between_0_and_1(
    asked: Asked,
    weights: Retrievers,
    weighted: Weighted,
    constant: int,
) -> None:
    lists, config = asked
    rankings, listed = weighted
    for chunk in (
        *fuse(lists, config, weights),
        *reciprocal_rank_fusion(rankings, weights=listed, rank_constant=constant),
        *convex_combination(rankings, weights=listed),
    ):
        assert math.isfinite(chunk.score)
        assert 0 <= chunk.score <= 1


@given(weighted_rankings(), st.one_of(st.just(60), st.integers(1, 200)), st.randoms())
def test_property_02_a_fused_score_is_the_sum_of_weighted_reciprocal_ranks(
    weighted: Weighted, constant: int, random: object
) -> None:
    """For any number and order of lists; sums above 1, from weights above 1, are capped."""
    rankings, weights = weighted
    fused = reciprocal_rank_fusion(rankings, weights=weights, rank_constant=constant)
    expected = exact_scores(rankings, weights, constant)
    assert {chunk.chunk_id for chunk in fused} == expected.keys()
    for chunk in fused:
        exact = min(Fraction(1), expected[chunk.chunk_id])
        assert abs(Fraction(chunk.score) - exact) <= exact * ROUNDING + UNDERFLOW
    assert order_of(fused) == sorted(order_of(fused), key=lambda pair: (-pair[1], pair[0]))

    pairs = list(zip(rankings, weights, strict=True))
    random.shuffle(pairs)  # type: ignore[attr-defined]
    shuffled = reciprocal_rank_fusion(
        [ranking for ranking, _ in pairs],
        weights=[weight for _, weight in pairs],
        rank_constant=constant,
    )
    assert order_of(shuffled) == order_of(fused)


@given(questioned_lists(), weighed_retrievers())
def test_property_03_scores_never_increase_and_nothing_that_counts_is_lost(
    asked: Asked, weights: Retrievers
) -> None:
    lists, config = asked
    fused = fuse(lists, config, weights)
    scores = [chunk.score for chunk in fused]
    assert scores == sorted(scores, reverse=True)
    assert fuse(lists, config, weights, most=3) == fused[:3]
    counted = [
        (ranking.name, candidate.chunk_id)
        for ranking in lists
        for candidate in ranking.candidates[: SIDE_CANDIDATES if ranking.question else None]
    ]
    assert len(fused) == len({chunk_id for _, chunk_id in counted})
    for chunk in fused:
        holders = [retriever for retriever, chunk_id in counted if chunk_id == chunk.chunk_id]
        assert chunk.lists == tuple(dict.fromkeys(holders))


@given(questioned_lists(), weighed_retrievers(), st.randoms())
def test_property_02_the_order_of_the_lists_changes_nothing(
    asked: Asked, weights: Retrievers, random: object
) -> None:
    lists, config = asked
    fused = fuse(lists, config, weights)
    random.shuffle(lists)  # type: ignore[attr-defined]
    assert order_of(fuse(lists, config, weights)) == order_of(fused)
    assert order_of(fused) == sorted(order_of(fused), key=lambda pair: (-pair[1], pair[0]))


LOOKING_UP = st.just(FusionConfig(method="scaled"))


@st.composite
def looked_up(draw: st.DrawFn) -> tuple[list[dict[UUID, float]], list[list[Ranking]]]:
    """What documents score in every list, and two ways in which lists may have found them all."""
    kinds = draw(st.lists(st.sampled_from(["chunks", "notes"]), min_size=1, max_size=8))
    documents = {UUID(int=number + 1): kind for number, kind in enumerate(kinds)}
    scores = [
        {
            key: draw(st.floats(0, 1))
            for key, kind in documents.items()
            if DOCUMENTS_OF[name] == kind
        }
        for name in WITHOUT_GRAPH
    ]
    ways = []
    for _ in range(2):
        held: list[set[UUID]] = [
            draw(st.sets(st.sampled_from(sorted(s)))) if s else set() for s in scores
        ]
        for key, kind in documents.items():
            if not any(key in keys for keys in held):
                able = [i for i, name in enumerate(WITHOUT_GRAPH) if DOCUMENTS_OF[name] == kind]
                held[draw(st.sampled_from(able))].add(key)
        ways.append(
            [
                Ranking(
                    name,
                    tuple(
                        Candidate(key, key, known[key])
                        for key in sorted(keys, key=lambda key: (-known[key], key))
                    ),
                )
                for name, known, keys in zip(WITHOUT_GRAPH, scores, held, strict=True)
            ]
        )
    return scores, ways


@st.composite
def partly_chunked(draw: st.DrawFn) -> tuple[list[Ranking], list[Ranking]]:
    """Lists of chunks, and the same documents with some of them as notes not chunked yet."""
    keys = [UUID(int=number) for number in range(1, 9)]
    late = draw(st.sets(st.sampled_from(keys[1:])))
    every, divided = [], []
    for chunks, notes in (
        (RankedList.SEMANTIC, RankedList.NOTES_SEMANTIC),
        (RankedList.FULLTEXT, RankedList.NOTES_FULLTEXT),
    ):
        # The first is a chunk in every list, or whole notes would be a list of their own.
        known = {keys[0]: draw(st.floats(0, 1))}
        known |= draw(st.dictionaries(st.sampled_from(keys[1:]), st.floats(0, 1)))
        order = sorted(known, key=lambda key: (-known[key], key))
        found = [Candidate(key, key, known[key]) for key in order]
        every.append(Ranking(chunks, tuple(found)))
        divided.append(Ranking(chunks, tuple(c for c in found if c.chunk_id not in late)))
        divided.append(Ranking(notes, tuple(c for c in found if c.chunk_id in late)))
    return every, divided


@given(partly_chunked(), st.sampled_from(["rrf", "weighted"]), st.integers(1, 8))
def test_property_61_by_lists_a_whole_note_counts_as_a_chunk_would(
    found: tuple[list[Ranking], list[Ranking]], method: str, pool: int
) -> None:
    every, divided = ([replace(r, candidates=r.candidates[:pool]) for r in own] for own in found)
    config = FusionConfig.model_validate({"method": method})
    scales = [(0.75, 0.95)] * len(divided)
    fused = fuse(divided, config, DEFAULT_RETRIEVERS, ranges=scales, pool=pool)
    assert order_of(fused) == order_of(fuse(every, config, DEFAULT_RETRIEVERS))


retriever_weights = st.fixed_dictionaries(
    {name: st.builds(RetrieverConfig, weight=st.floats(0.01, 1)) for name in RetrieverName}
)


@given(looked_up(), LOOKING_UP, retriever_weights)
def test_property_61_scores_looked_up_do_not_depend_on_which_list_found_a_document(
    found: tuple[list[dict[UUID, float]], list[list[Ranking]]],
    config: FusionConfig,
    weights: dict[RetrieverName, RetrieverConfig],
) -> None:
    scores, (one, other) = found
    fused = fuse(one, config, weights, scores=scores)
    assert order_of(fused) == order_of(fuse(other, config, weights, scores=scores))
    assert all(0 <= chunk.score <= 1 for chunk in fused)


@given(
    st.fixed_dictionaries({RETRIEVER_OF[name]: st.floats(0, 1) for name in WITHOUT_GRAPH}),
    LOOKING_UP,
    retriever_weights,
)
def test_property_61_a_chunk_and_a_note_of_the_same_scores_are_equal(
    scores: dict[RetrieverName, float],
    config: FusionConfig,
    weights: dict[RetrieverName, RetrieverConfig],
) -> None:
    """Whatever lists of its kind there are: a retriever counts for either as much."""
    chunk, note = UUID(int=1), UUID(int=2)
    of = {name: RETRIEVER_OF[name] for name in WITHOUT_GRAPH}
    known = [
        {(chunk if DOCUMENTS_OF[name] == "chunks" else note): scores[of[name]]}
        for name in WITHOUT_GRAPH
    ]
    lists = [
        Ranking(name, tuple(Candidate(key, key, score) for key, score in held.items()))
        for name, held in zip(WITHOUT_GRAPH, known, strict=True)
    ]
    by_id = dict(order_of(fuse(lists, config, weights, scores=known)))
    assert math.isclose(by_id[chunk], by_id[note], abs_tol=1e-12)
