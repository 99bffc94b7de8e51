"""Properties 1 to 4 of the fusion in `sql/queries/search.sql`, with lists given as values."""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import sql

from rag_resources.database.pool import Database
from rag_resources.database.queries import statement
from rag_resources.store.search import FUSIONS

Scores = dict[UUID, float]
Fused = list[tuple[UUID, float]]
METHODS = sorted(FUSIONS)
FUSE = """
    WITH scores AS (
        SELECT * FROM unnest(%(numbers)s::integer[], %(chunk_ids)s::uuid[], %(given)s::float8[])
            AS g (list, id, score)
    )
    SELECT p.id, least(1, sum(p.part ORDER BY p.part)) AS score FROM ({fusion}) AS p
    GROUP BY p.id ORDER BY score DESC, p.id"""
ROUNDING = Fraction(1, 2**48)

one_database = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
# Weights that round to 0 are composed as 0 (`store.search`); PostgreSQL refuses an underflow.
shares = st.one_of(
    st.floats(0, 1).map(lambda share: round(share, 12)), st.sampled_from([0.0, 0.25, 0.5, 1.0])
)
documents = [UUID(int=number) for number in range(1, 9)]
lists_of_scores = st.lists(
    st.dictionaries(st.sampled_from(documents), shares), min_size=1, max_size=6
)


@st.composite
def weighted_lists(draw: st.DrawFn) -> tuple[list[Scores], list[float]]:
    """At least one list, each with a weight in [0, 1], not all 0."""
    lists = draw(lists_of_scores)
    weights = draw(st.lists(shares, min_size=len(lists), max_size=len(lists)).filter(any))
    return lists, weights


@pytest.fixture
def fuse(database: Database) -> Callable[..., Fused]:
    """The last step of the search, over the scores of lists."""

    def fused(
        method: str, lists: Sequence[Scores], weights: Sequence[float], *, constant: int = 60
    ) -> Fused:
        total = 1.0 if method == "rrf" else sum(weights)
        parts = statement(
            FUSIONS[method],
            weights=sql.Literal([weight / total for weight in weights]),
            lows=sql.Literal([0.0] * len(lists)),
            highs=sql.Literal([1.0] * len(lists)),
            rank_constant=sql.Literal(constant),
        )
        rows = [(n, key, own) for n, known in enumerate(lists) for key, own in known.items()]
        query = sql.SQL(FUSE).format(fusion=parts)
        with database.transaction() as connection:
            values = {
                "numbers": [row[0] for row in rows],
                "chunk_ids": [row[1] for row in rows],
                "given": [row[2] for row in rows],
            }
            return [tuple(row) for row in connection.execute(query, values, prepare=False)]

    return fused


@one_database
@given(st.sampled_from(METHODS), weighted_lists(), st.integers(1, 100))
def test_property_01_every_fused_score_is_finite_and_between_0_and_1(
    fuse: Callable[..., Fused],
    method: str,
    given_lists: tuple[list[Scores], list[float]],
    constant: int,
) -> None:
    lists, weights = given_lists
    for _, score in fuse(method, lists, weights, constant=constant):
        assert math.isfinite(score)
        assert 0 <= score <= 1


@one_database
@given(weighted_lists(), st.one_of(st.just(60), st.integers(1, 200)), st.randoms())
def test_property_02_a_fused_score_is_the_sum_of_weighted_reciprocal_ranks(
    fuse: Callable[..., Fused],
    given_lists: tuple[list[Scores], list[float]],
    constant: int,
    random: object,
) -> None:
    """For any number and order of lists; sums above 1, from weights above 1, are capped."""
    lists, weights = given_lists
    expected: dict[UUID, Fraction] = {}
    for known, weight in zip(lists, weights, strict=True):
        for rank, key in enumerate(sorted(known, key=lambda key: (-known[key], key)), start=1):
            term = Fraction(weight) / (constant + rank)
            expected[key] = expected.get(key, Fraction(0)) + term
    fused = fuse("rrf", lists, weights, constant=constant)
    assert {key for key, _ in fused} == expected.keys()
    for key, score in fused:
        exact = min(Fraction(1), expected[key])
        assert abs(Fraction(score) - exact) <= exact * ROUNDING + Fraction(1, 10**300)
    pairs = list(zip(lists, weights, strict=True))
    random.shuffle(pairs)  # type: ignore[attr-defined]
    shuffled = fuse("rrf", [own for own, _ in pairs], [w for _, w in pairs], constant=constant)
    assert shuffled == fused


@one_database
@given(st.sampled_from(METHODS), weighted_lists())
def test_property_03_scores_never_increase_and_ties_go_by_id(
    fuse: Callable[..., Fused], method: str, given_lists: tuple[list[Scores], list[float]]
) -> None:
    fused = fuse(method, *given_lists)
    assert fused == sorted(fused, key=lambda item: (-item[1], item[0]))


@one_database
@given(st.sampled_from(METHODS), weighted_lists())
def test_property_04_whatever_a_list_holds_is_fused(
    fuse: Callable[..., Fused], method: str, given_lists: tuple[list[Scores], list[float]]
) -> None:
    lists, weights = given_lists
    assert {key for key, _ in fuse(method, lists, weights)} == {key for own in lists for key in own}


@one_database
@given(weighted_lists())
def test_property_01_combinations_are_convex(
    fuse: Callable[..., Fused], given_lists: tuple[list[Scores], list[float]]
) -> None:
    """By fixed scales the weighted mean of the scores; by min-max the best of all lists has 1."""
    lists, weights = given_lists
    for key, score in fuse("scaled", lists, weights):
        terms = [w * own.get(key, 0.0) for w, own in zip(weights, lists, strict=True)]
        assert score == pytest.approx(math.fsum(terms) / math.fsum(weights), abs=1e-9)
    for key, score in fuse("weighted", lists, weights):
        if all(own and own.get(key) == max(own.values()) for own in lists):
            assert score == pytest.approx(1)
