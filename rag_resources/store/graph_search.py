"""Searches the causal graph: chunks that it links to what a question has found.

Building the graph is in `store.graph`, fusing its list with the others in `store.search`.
"""

from collections.abc import Sequence
from uuid import UUID

from psycopg import sql

from rag_resources.core.filters import RetrievalFilters
from rag_resources.core.graph_config import GraphConfig
from rag_resources.core.mentions import question_names
from rag_resources.core.query import Intent, searched_words
from rag_resources.core.retrievers import RankedList
from rag_resources.database.connection import LimitedConnection
from rag_resources.database.queries import statement
from rag_resources.store.search import SearchedList, search_graph

HUB_CAP = 200
"""An entity with more links than this occurs almost everywhere, and is not followed further."""

LEVEL_CAP = 1000
"""Of more events that are equally far away, only the first by id are reached."""

_LEAST_SHARE = 0.15
"""Share of the idf of a question's words that an event must have for a path to begin there."""


def graph_candidates(
    connection: LimitedConnection,
    query: str,
    config: GraphConfig,
    *,
    seeds: Sequence[UUID],
    intent: Intent,
    tenant: str,
    filters: RetrievalFilters,
    pool: int,
) -> SearchedList | None:
    """Return the list of the graph for a question; None if it has none for such a question.

    Args:
        connection: Any.
        query: The question.
        config: How deep to search.
        seeds: Chunks that other retrievers found, best first.
        intent: Only questions about causes follow causal statements.
        tenant: Whose notes to search.
        filters: Conditions that the notes must meet.
        pool: Most candidates, >= 1.

    Properties: 21, 22, 23, 24.
    """
    if intent is not Intent.CAUSAL:
        return None
    literals = {
        "list": 0,
        "pool": pool,
        "depth": config.deepest,
        "max_depth": config.max_depth,
        "hub_cap": HUB_CAP,
        "least_share": _LEAST_SHARE,
        "level_cap": LEVEL_CAP,
    }
    words = sql.Placeholder("query")
    composed = statement(
        "search_graph_causes",
        query=words,
        seeds=sql.Placeholder("seeds"),
        names=sql.Placeholder("names"),
        neighbours=statement("event_neighbours", hub_cap=sql.Literal(HUB_CAP)),
        chunks=statement("event_chunks", hub_cap=sql.Literal(HUB_CAP), pool=sql.Literal(pool)),
        corpus=statement("corpus_statistics"),
        lexemes=statement("question_lexemes", query=words),
        **{key: sql.Literal(value) for key, value in literals.items()},
    )
    values = {
        "query": searched_words(query),
        "seeds": list(seeds),
        "names": list(question_names(query)),
    }
    given = search_graph(connection, composed, values, tenant=tenant, filters=filters)
    return SearchedList(RankedList.GRAPH_CAUSES, given=given)
