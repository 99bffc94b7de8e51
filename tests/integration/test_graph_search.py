"""Questions that follow the causal graph: what they find, what they say of it, and its failure."""

from typing import Any

import pytest

from rag_resources.core.configuration import (
    ChunkingConfig,
    RetrievalConfig,
    parse_retrieval,
    with_overrides,
)
from rag_resources.core.errors import InvalidConfigurationError
from rag_resources.core.evidence import SearchSettings, searched_parts
from rag_resources.core.filters import RetrievalFilters
from rag_resources.core.types import RetrievalResponse, RetrievalResult
from rag_resources.database.pool import Database
from rag_resources.retrieval.cache import (
    KeptAnswer,
    answer_from_bytes,
    answer_to_bytes,
    build_caches,
)
from rag_resources.store.contents import count_contents, read_contents
from rag_resources.store.index_state import IndexVersion
from tests.corpus import Draft
from tests.graph_corpus import GraphCorpus, event_id, graph_config

LONG = ChunkingConfig(max_tokens=512, overlap_tokens=0, min_tokens=0)
FLOOD = "El martes llovió muchísimo, así que reventó la tubería vieja."
CLOSED = "El gimnasio municipal sigue cerrado porque se hundió todo el techo."
OTHER = "La tarta de manzana de mi prima lleva canela."
ROOF = "Nadie avisó a tiempo. La conserjería se inundó, y por eso mandaron a Honorat a casa."
HONORAT = "Ayer en Correos vi a Honorat contento."
DRAFTS = [Draft(FLOOD), Draft(CLOSED), Draft(OTHER), Draft(ROOF), Draft(HONORAT)]
WHY = "¿Por qué sigue cerrado el gimnasio?"


@pytest.fixture
def corpus(database: Database) -> GraphCorpus:
    made = GraphCorpus(database)
    ids = made.fill(DRAFTS, LONG)
    made.read()
    made.relate(
        [
            (
                event_id(ids[0], "reventó la tubería vieja"),
                event_id(ids[1], "se hundió todo el techo"),
            )
        ]
    )
    return made


def by_text(response: RetrievalResponse) -> dict[str, RetrievalResult]:
    return {result.content: result for result in response.results}


@pytest.mark.parametrize("method", ["scaled", "weighted", "rrf"])
def test_a_cause_in_another_note_is_found_with_the_way_to_it(
    corpus: GraphCorpus, method: str
) -> None:
    config = with_overrides(graph_config(min_relevance=0.5), {"fusion": {"method": method}})
    assert FLOOD not in by_text(corpus.ask(WHY, config.without_graph))
    response = corpus.ask(WHY, config)
    assert (response.degraded, response.messages) == ((), ())
    flood = by_text(response)[FLOOD]
    assert flood.retrieval_method == "graph"
    rows = corpus.fetch("SELECT id, name FROM entities WHERE kind = 'event'")
    names = {row.id: row.name for row in rows}
    assert [names[entity] for entity in flood.causal_path] == [
        "El gimnasio municipal sigue cerrado",
        "se hundió todo el techo",
        "reventó la tubería vieja",
    ]
    told = flood.to_json()["metadata"]["causalPath"]
    assert told == [str(entity) for entity in flood.causal_path]
    assert by_text(response)[CLOSED].causal_path == flood.causal_path[:1]
    found = [result.score for result in response.results]
    assert found == sorted(found, reverse=True)


def test_filters_tenants_and_deletion_hold_on_every_path(corpus: GraphCorpus) -> None:
    (row,) = corpus.fetch("SELECT note_id FROM chunks WHERE content = %s", FLOOD)
    config = graph_config(min_relevance=0.5)
    without = RetrievalFilters(excluded_note_ids=(row.note_id,))
    assert FLOOD not in by_text(corpus.ask(WHY, config, filters=without))
    assert corpus.ask(WHY, config, tenant="luis").results == ()
    corpus.run(lambda c: c.execute("DELETE FROM notes WHERE id = %s", (row.note_id,)))
    assert FLOOD not in by_text(corpus.ask(WHY, config))


def test_the_graph_fails_silently(corpus: GraphCorpus) -> None:
    config = graph_config()
    whole = corpus.ask(WHY, config.without_graph)
    corpus.run(lambda c: c.execute("ALTER TABLE relationships RENAME TO away"))
    response = corpus.ask(WHY, config)
    assert response.degraded == ("graph",)
    assert response.messages == ()
    assert [r.chunk_id for r in response.results] == [r.chunk_id for r in whole.results]


def test_property_35_the_graph_alone_still_finds_what_the_question_names(
    corpus: GraphCorpus,
) -> None:
    for change in (
        "TABLE vectors_openai_hash_chunk RENAME TO away",
        "FUNCTION lexeme_dimension RENAME TO away",  # Only the full text calls it.
    ):
        corpus.run(lambda c, change=change: c.execute(f"ALTER {change}"))
    response = corpus.ask("¿Por qué mandaron a casa a Honorat?", graph_config())
    assert by_text(response)[ROOF].retrieval_method == "graph"
    assert {"fulltext", "semantic"} <= set(response.degraded)
    assert response.error is None


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        ({"graph": {"enabled": True, "max_depth": 0}}, "graph.max_depth"),
        ({"graph": {"min_relevance": 2}}, "graph.min_relevance"),
        ({"graph": {"depth": 2}}, "graph.depth"),
        ({"retrievers": {"graph": {"weight": 0.5}}}, "graph.enabled"),
    ],
)
def test_a_bad_graph_is_refused_by_its_path(raw: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidConfigurationError) as refused:
        parse_retrieval(raw, origin="prueba")
    assert any(path in problem for problem in refused.value.problems)


def test_evidence_knows_what_the_graph_holds(corpus: GraphCorpus) -> None:
    config, settings = graph_config(), SearchSettings("ana")
    parts = set(searched_parts(config)) - set(searched_parts(config.without_graph))
    assert parts == {"mentions", "statements"}

    def read(of: RetrievalConfig) -> Any:
        with corpus.database.transaction() as connection:
            count_contents(connection)
            return read_contents(connection, of, settings).contents

    with_graph, without = read(config), read(config.without_graph)
    corpus.run(lambda c: c.execute("DELETE FROM relationships WHERE marker = 'porque'"))
    assert read(config) != with_graph
    assert read(config.without_graph) == without


def test_answers_with_a_path_are_cached_whole_and_not_after_a_change(
    corpus: GraphCorpus,
) -> None:
    pipeline = corpus.pipeline(caches=build_caches(None))
    config = graph_config(min_relevance=0.5)
    first = pipeline.retrieve(WHY, config)
    again = pipeline.retrieve(WHY, config)
    assert again.cached
    assert again.results == first.results
    kept = KeptAnswer(first, IndexVersion(1, "", None))
    assert answer_from_bytes(answer_to_bytes(kept)) == kept
    corpus.run(lambda c: c.execute("DELETE FROM relationships WHERE marker = 'dibujada'"))
    assert FLOOD not in by_text(pipeline.retrieve(WHY, config))
