"""The statement of each ranked list, which `store.search` combines with others.

A new list has its query in `sql/queries/search.sql` and its entry in `_STATEMENTS`.
"""

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple
from uuid import UUID

from pgvector import HalfVector
from psycopg import sql

from rag_resources.core.query import searched_words
from rag_resources.core.retrievers import DOCUMENTS_OF, RankedList
from rag_resources.core.types import ModelInfo, Vectors
from rag_resources.database.queries import statement


@dataclass(frozen=True, slots=True)
class EmbeddedQuery:
    """A question's vector under a model, `(dimension,)` float32, L2-normalised."""

    info: ModelInfo
    vector: Vectors
    threshold: float


HUB_CAP = 200
"""An entity with more links than this occurs almost everywhere, and is not followed further."""

LEVEL_CAP = 1000
"""Of more events that are equally far away, only the first by id are reached."""

_LEAST_SHARE = 0.15
"""Share of the idf of a question's words that an event must have for a path to begin there."""


@dataclass(frozen=True, slots=True)
class Links:
    """The starting points of a search in the graph, and its depth.

    Attributes:
        seeds: Chunks that other retrievers found, best first.
        names: Keys of entities that the question may name.
        depth: Most relations of a path, >= 0.
        max_depth: The scale of relevance, >= 1.
    """

    seeds: tuple[UUID, ...]
    names: tuple[str, ...]
    depth: int
    max_depth: int


@dataclass(frozen=True, slots=True)
class ListRequest:
    """One ranked list to fetch.

    Attributes:
        text: The words to search for, in a full-text list.
        embedded: The vector to search with; only in a list by vectors.
        question: Number of the question it searches for; 0 is the question itself, others are
            its sub-questions.
        links: The starting points, in a list of the graph.
        finds: Whether it finds candidates; otherwise it only scores those of other lists.
    """

    name: RankedList
    text: str = ""
    embedded: EmbeddedQuery | None = None
    question: int = 0
    links: Links | None = None
    finds: bool = True


class Reach(NamedTuple):
    """Which rows the lists of one statement search.

    Attributes:
        notes: Which notes the whole-note lists search: a relation of the query `search_lists`.
        partial: Whether some chunks are excluded.
        materialized: How the notes are found (see `sql/queries/search.sql`).
        limits: How many candidates each step of a list takes.
        exact: The families of vectors that are searched exhaustively.
        alone: Whether there are no other tenants.
    """

    notes: Literal["unchunked_notes", "visible_notes"]
    partial: bool
    materialized: sql.SQL
    limits: Mapping[str, sql.Literal]
    exact: Collection[str]
    alone: bool


class OwnParameters:
    """Parameters of single lists; lists with the same value share one parameter."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self._names: dict[tuple[str, Hashable], str] = {}

    def bind(self, name: str, value: object, key: Hashable) -> sql.Placeholder:
        """Return the placeholder for a value; equal keys must mean equal values."""
        numbered = self._names.setdefault((name, key), f"{name}_{len(self._names)}")
        self.values.setdefault(numbered, value)
        return sql.Placeholder(numbered)

    def sources(self, lists: Sequence[ListRequest]) -> dict[str, tuple[str, int]]:
        """Return the name of each parameter, and the first list that gives its value."""
        found = {}
        for (name, key), numbered in self._names.items():
            same = (number for number, item in enumerate(lists) if own_key(item, name) == key)
            found[numbered] = (name, next(same))
        return found


def own_key(item: ListRequest, name: str) -> Hashable:
    """Return the identity of a list's parameter; lists with an equal one share it."""
    if item.embedded is None:
        return item.text if name == "query" else None
    return {"vector": item.embedded.vector.tobytes(), "threshold": item.embedded.threshold}.get(
        name
    )


def own_value(item: ListRequest, name: str) -> object:
    """Return the value of a parameter of a list."""
    if item.embedded is None:
        return searched_words(item.text)
    return HalfVector(item.embedded.vector) if name == "vector" else item.embedded.threshold


ListStatement = Callable[[ListRequest, int, Reach, OwnParameters], sql.Composed]


def list_statement(
    item: ListRequest, number: int, reach: Reach, own: OwnParameters
) -> sql.Composed:
    """Return the statement of one list; its rows carry the list's number.

    Args:
        item: The list.
        number: Its position in the combined statement.
        reach: The rows that it searches.
        own: Collects its parameters.
    """
    return _STATEMENTS[item.name](item, number, reach, own)


def _searched(name: RankedList, reach: Reach) -> sql.Identifier:
    return sql.Identifier(reach.notes if DOCUMENTS_OF[name] == "notes" else "searched_chunks")


def _by_words(query: str) -> ListStatement:
    def compose(item: ListRequest, number: int, reach: Reach, own: OwnParameters) -> sql.Composed:
        question = own.bind("query", searched_words(item.text), item.text)
        return statement(
            query,
            list=sql.Literal(number),
            searched=_searched(item.name, reach),
            matched=sql.Identifier("searched_chunks" if reach.partial else "chunks"),
            query=question,
            **lexemes_of(question),
            **reach.limits,
        )

    return compose


def lexemes_of(query: sql.Composable) -> dict[str, sql.Composed]:
    """Return the parts that every full-text statement begins with."""
    return {
        "corpus": statement("corpus_statistics"),
        "lexemes": statement("question_lexemes", query=query),
    }


CHUNK_VECTORS, CHUNK_WINDOWS = "chunk_embeddings", "chunk_windows"
"""Name prefixes of the tables with the vectors of chunks, one table per model."""


_EXACTLY = {
    "search_vectors": "search_vectors_exactly",
    "search_windows": "search_windows_exactly",
}


def _among(query: str, family: str, reach: Reach) -> str:
    """Return the name of a statement's variant for the rows that it searches."""
    if family in reach.exact:
        return _EXACTLY[query]
    if query == "search_windows" and reach.alone and not reach.partial:
        return "search_windows_of_all"
    return query


def _by_vectors(
    family: str, *, key: str, column: str, query: str = "search_vectors"
) -> ListStatement:
    """Return the statement of a list by nearest vectors.

    Args:
        family: Name prefix of the vector tables, one table per model.
        key: Column with the id of the chunk or note.
        column: Column with the vectors.
        query: Name of the statement.
    """

    def compose(item: ListRequest, number: int, reach: Reach, own: OwnParameters) -> sql.Composed:
        if item.embedded is None:
            raise ValueError(f"the list {item.name} is searched by a vector")
        info, vector, threshold = item.embedded.info, item.embedded.vector, item.embedded.threshold
        return statement(
            _among(query, family, reach),
            list=sql.Literal(number),
            searched=_searched(item.name, reach),
            materialized=reach.materialized,
            alone=sql.Literal(reach.alone),
            pool=reach.limits["pool"],
            windows=reach.limits["windows"],
            folded=reach.limits["folded"],
            model=sql.Literal(info.name),
            embeddings=sql.Identifier(f"{family}_{info.name}"),
            key=sql.Identifier(key),
            column=sql.Identifier(column),
            dimension=sql.Literal(info.dimension),
            vector=own.bind("vector", HalfVector(vector), vector.tobytes()),
            threshold=own.bind("threshold", threshold, threshold),
        )

    return compose


def _by_causes(item: ListRequest, number: int, reach: Reach, own: OwnParameters) -> sql.Composed:
    if item.links is None:
        raise ValueError(f"the list {item.name} is searched by links")
    links, hub_cap, pool = item.links, sql.Literal(HUB_CAP), reach.limits["pool"]
    question = own.bind("query", searched_words(item.text), item.text)
    return statement(
        "search_graph_causes",
        list=sql.Literal(number),
        pool=pool,
        seeds=own.bind("seeds", list(links.seeds), links.seeds),
        names=own.bind("names", list(links.names), links.names),
        depth=sql.Literal(links.depth),
        max_depth=sql.Literal(links.max_depth),
        hub_cap=hub_cap,
        least_share=sql.Literal(_LEAST_SHARE),
        level_cap=sql.Literal(LEVEL_CAP),
        neighbours=statement("event_neighbours", hub_cap=hub_cap),
        chunks=statement("event_chunks", hub_cap=hub_cap, pool=pool),
        **lexemes_of(question),
    )


_STATEMENTS: Mapping[RankedList, ListStatement] = {
    RankedList.SEMANTIC: _by_vectors(CHUNK_VECTORS, key="chunk_id", column="embedding"),
    RankedList.CONTEXTUAL: _by_vectors(
        CHUNK_VECTORS, key="chunk_id", column="contextual_embedding"
    ),
    RankedList.NOTES_SEMANTIC: _by_vectors("note_embeddings", key="note_id", column="embedding"),
    RankedList.WINDOWS: _by_vectors(
        CHUNK_WINDOWS, key="chunk_id", column="embedding", query="search_windows"
    ),
    RankedList.NOTES_WINDOWS: _by_vectors("note_embeddings", key="note_id", column="embedding"),
    RankedList.FULLTEXT: _by_words("search_chunk_words"),
    RankedList.GRAPH_CAUSES: _by_causes,
    RankedList.NOTES_FULLTEXT: _by_words("search_note_words"),
}
