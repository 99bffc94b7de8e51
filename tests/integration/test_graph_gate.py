"""Only a graph that has won against its own configuration without it can be promoted."""

import pytest

from rag_resources.core.configuration import ChunkingConfig, NamedConfiguration
from rag_resources.core.errors import RagError
from rag_resources.core.evidence import SearchSettings
from rag_resources.core.gate import GateConfig
from rag_resources.core.golden import GoldenEntry
from rag_resources.database.pool import Database
from rag_resources.evaluation.runner import evaluate
from rag_resources.serving.promotion import promote_best
from rag_resources.store.golden import write_golden
from tests.corpus import Draft
from tests.graph_corpus import GraphCorpus, event_id, graph_config

SETTINGS = SearchSettings("ana")
GATE = GateConfig(hit_rate_at_10=0.01, margin=0.6)
LONG = ChunkingConfig(max_tokens=512, overlap_tokens=0, min_tokens=0)
PLACES = ("gimnasio", "teatro", "mercado", "museo", "polideportivo", "ambulatorio")
WITH_GRAPH = NamedConfiguration(
    name="con_grafo", description="x", retrieval=graph_config(min_relevance=0.5)
)
PLAIN = NamedConfiguration(
    name="sin_grafo", description="x", retrieval=WITH_GRAPH.retrieval.without_graph
)


@pytest.fixture
def tenant() -> str:
    return "ana"


@pytest.fixture
def corpus(database: Database) -> GraphCorpus:
    """Closed places, and for each a note that says what came before."""
    made = GraphCorpus(database)
    closed = [Draft(f"El {p} sigue cerrado porque se hundió el techo del {p}.") for p in PLACES]
    before = [Draft(f"Llovió tanto, así que reventó la tubería {n}.") for n in range(len(PLACES))]
    ids = made.fill([*closed, *before], LONG)
    made.read()
    causes = ids[len(PLACES) :]
    rows = [
        (
            event_id(cause, f"reventó la tubería {n}"),
            event_id(ids[n], f"se hundió el techo del {place}"),
        )
        for n, (place, cause) in enumerate(zip(PLACES, causes, strict=True))
    ]
    made.relate(rows)
    with database.transaction() as connection:
        several = [
            GoldenEntry(
                f"¿Por qué sigue cerrado el {p}?", (one, other), "x", "causal", 3, ("hops:multi",)
            )
            for p, one, other in zip(PLACES, ids, causes, strict=False)
        ]
        single = [
            GoldenEntry(f"¿Cómo sigue el {p}?", (one,), "x", "factual", 1, ("hops:single",))
            for p, one in zip(PLACES, ids, strict=False)
        ]
        write_golden(connection, [*several, *single], replace=True)
    return made


def measure(corpus: GraphCorpus, item: NamedConfiguration) -> None:
    evaluate(corpus.database, corpus.pipeline(), item.name, item.retrieval, settings=SETTINGS)


def promote(corpus: GraphCorpus) -> str:
    named = {WITH_GRAPH.name: WITH_GRAPH}
    outcome = promote_best(
        corpus.database, named, gate=GATE, settings=SETTINGS, name=WITH_GRAPH.name
    )
    return outcome.evaluation.configuration


def test_it_needs_the_same_configuration_without_a_graph_and_then_wins(
    corpus: GraphCorpus,
) -> None:
    measure(corpus, WITH_GRAPH)
    with pytest.raises(RagError, match="no hay con qué comparar el grafo"):
        promote(corpus)
    measure(corpus, PLAIN)
    assert promote(corpus) == "con_grafo"


def test_a_graph_that_leads_nowhere_is_refused(
    corpus: GraphCorpus,
) -> None:
    corpus.run(lambda c: c.execute("DELETE FROM relationships WHERE marker = 'dibujada'"))
    for item in (PLAIN, WITH_GRAPH):
        measure(corpus, item)
    with pytest.raises(RagError, match="el grafo no gana en las 6 preguntas"):
        promote(corpus)
