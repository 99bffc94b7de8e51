"""Properties of following the causal graph, against a breadth-first search in memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from rag_resources.core.configuration import ChunkingConfig
from rag_resources.core.filters import RetrievalFilters
from rag_resources.core.graph_config import GraphConfig, relevance
from rag_resources.core.query import Intent
from rag_resources.core.types import Candidate
from rag_resources.database.pool import Database
from rag_resources.store.graph_search import graph_candidates
from tests.corpus import Draft
from tests.graph_corpus import GraphCorpus

EVENTS = 8
WORD = "inicio"
LONG = ChunkingConfig(max_tokens=64, overlap_tokens=0, min_tokens=0)
# Relations as in the table, and one that the table refuses, so that it is written without a check.
TYPES = ("CAUSES", "TRIGGERS", "LEADS_TO", "MENTIONS")

one_database = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
edges = st.lists(
    st.tuples(
        st.integers(0, EVENTS - 1), st.integers(0, EVENTS - 1), st.sampled_from(TYPES)
    ).filter(lambda edge: edge[0] != edge[1]),
    max_size=16,
)
depths = st.integers(1, 4)


@dataclass(frozen=True)
class Events:
    """Notes with one event each; the first one has the word that questions ask for.

    Attributes:
        chunks: Of the notes.
        ids: Of their events.
    """

    corpus: GraphCorpus
    chunks: Sequence[UUID]
    ids: Sequence[UUID]

    def relate(self, drawn: Sequence[tuple[int, int, str]]) -> None:
        """Replace the relations; each has its evidence in the note of its cause."""
        with self.corpus.database.transaction() as connection:
            connection.execute("DELETE FROM relationships WHERE marker = 'dibujada'")
            connection.cursor().executemany(
                "INSERT INTO relationships (tenant_id, id, source_id, target_id, type, confidence,"
                " chunk_id, note_id, marker, marker_start, marker_end, cause_start, cause_end,"
                " effect_start, effect_end, extractor, version)"
                " SELECT 'ana', gen_random_uuid(), %s, %s, %s, 1, c.id, c.note_id, 'dibujada',"
                " 0, 1, 0, 1, 0, 1, 'rules', '' FROM chunks AS c WHERE c.id = %s",
                [(self.ids[a], self.ids[b], kind, self.chunks[a]) for a, b, kind in drawn],
            )

    def follow(self, depth: int, max_depth: int, pool: int = 50) -> dict[UUID, Candidate]:
        """What is found from the first note, by chunk, the best first."""
        lowest = relevance(depth, max_depth)
        with self.corpus.database.transaction() as connection:
            found = graph_candidates(
                connection,
                WORD,
                GraphConfig(max_depth=max_depth, min_relevance=lowest),
                seeds=[self.chunks[0]],
                intent=Intent.CAUSAL,
                tenant="ana",
                filters=RetrievalFilters(),
                pool=pool,
            )
        assert found is not None
        by_chunk = {candidate.chunk_id: candidate for candidate in found.given}
        assert len(by_chunk) == len(found.given)
        return by_chunk


@pytest.fixture
def events(database: Database) -> Events:
    corpus = GraphCorpus(database)
    texts = [f"Hecho {WORD if not n else 'otro'} número {n}." for n in range(EVENTS)]
    notes = corpus.fill([Draft(text) for text in texts], LONG)
    rows = {row.note_id: row.id for row in corpus.fetch("SELECT id, note_id FROM chunks")}
    chunks = [rows[note] for note in notes]
    ids = [UUID(int=number + 1) for number in range(EVENTS)]
    with database.transaction() as connection:
        connection.execute("ALTER TABLE relationships DROP CONSTRAINT relationships_type_check")
        connection.cursor().executemany(
            "INSERT INTO entities (tenant_id, id, kind, key, name)"
            " VALUES ('ana', %s, 'event', %s, %s)",
            [(ids[n], text, text) for n, text in enumerate(texts)],
        )
        # So that the first event is in its note, whatever is drawn.
        connection.execute(
            "INSERT INTO relationships SELECT 'ana', gen_random_uuid(), %s, %s, 'CAUSES', 1, c.id,"
            " c.note_id, 'propia', 0, 1, 0, 1, 0, 1, 'rules', '' FROM chunks AS c WHERE c.id = %s",
            (ids[0], ids[0], chunks[0]),
        )
    return Events(corpus, chunks, ids)


def hops_to_events(drawn: Sequence[tuple[int, int, str]], depth: int) -> dict[int, int]:
    """The fewest causal relations from the first event to each, in either direction."""
    found = {0: 0}
    for hops in range(1, depth + 1):
        for one, other, kind in drawn:
            for near, far in ((one, other), (other, one)):
                if kind != "MENTIONS" and found.get(near) == hops - 1 and far not in found:
                    found[far] = hops
    return found


def hops_to_chunks(
    events: Events, drawn: Sequence[tuple[int, int, str]], depth: int
) -> dict[UUID, int]:
    """The fewest relations to an event of each chunk: that of every cause, and what it causes."""
    reached = hops_to_events(drawn, depth)
    found = {events.chunks[0]: 0}
    for one, other, _ in drawn:
        for end in (one, other):
            if end in reached:
                chunk = events.chunks[one]
                found[chunk] = min(found.get(chunk, depth), reached[end])
    return found


@one_database
@given(edges, depths)
def test_property_21_no_path_is_longer_than_the_depth(
    events: Events, drawn: list[tuple[int, int, str]], depth: int
) -> None:
    events.relate(drawn)
    for candidate in events.follow(depth, depth).values():
        assert 1 <= len(candidate.path) <= depth + 1
        assert len(set(candidate.path)) == len(candidate.path)


@one_database
@given(edges, depths)
def test_property_22_only_causal_relations_are_followed(
    events: Events, drawn: list[tuple[int, int, str]], depth: int
) -> None:
    events.relate(drawn)
    causal = {
        frozenset((events.ids[a], events.ids[b])) for a, b, kind in drawn if kind != "MENTIONS"
    }
    found = events.follow(depth, depth)
    assert found.keys() == hops_to_chunks(events, drawn, depth).keys()
    for candidate in found.values():
        steps = zip(candidate.path, candidate.path[1:], strict=False)
        assert all(frozenset(step) in causal for step in steps)


@one_database
@given(edges, depths)
def test_property_23_a_result_carries_its_path_from_start_to_end(
    events: Events, drawn: list[tuple[int, int, str]], depth: int
) -> None:
    events.relate(drawn)
    reached = hops_to_events(drawn, depth)
    for candidate in events.follow(depth, depth).values():
        assert candidate.path[0] == events.ids[0]
        assert reached[events.ids.index(candidate.path[-1])] == len(candidate.path) - 1


@one_database
@given(edges, depths, st.integers(0, 3))
def test_property_24_fewer_hops_are_strictly_more_relevant(
    events: Events, drawn: list[tuple[int, int, str]], max_depth: int, less: int
) -> None:
    """Every event has the score of its own shortest path, whatever cycles there are."""
    assume(less < max_depth)
    depth = max_depth - less
    events.relate(drawn)
    expected = hops_to_chunks(events, drawn, depth)
    found = events.follow(depth, max_depth)
    assert {chunk: candidate.score for chunk, candidate in found.items()} == {
        chunk: pytest.approx(1 - 0.5 * hops / max_depth) for chunk, hops in expected.items()
    }
    scores = [relevance(hops, max_depth) for hops in range(max_depth + 1)]
    assert scores == sorted(set(scores), reverse=True)
    assert (scores[0], scores[-1]) == (1, 0.5)


@given(st.integers(1, 6), st.floats(0, 1))
def test_property_24_what_is_not_relevant_enough_is_not_reached(depth: int, least: float) -> None:
    config = GraphConfig(enabled=True, max_depth=depth, min_relevance=least)
    kept = [hops for hops in range(1, depth + 1) if relevance(hops, depth) >= least]
    assert config.deepest == max(kept, default=0)
