"""Reads the input of a fusion for every candidate: its score by every retriever.

`store.ranked_lists` finds the candidates; `core.fusion` combines the scores.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeVar
from uuid import UUID

from pgvector import HalfVector
from psycopg import sql

from rag_resources.core.fusion import on_scale
from rag_resources.core.query import searched_words
from rag_resources.core.retrievers import DOCUMENTS_OF, Documents, RankedList
from rag_resources.core.types import ScoredSpan, Windows
from rag_resources.database.pool import Connection
from rag_resources.database.queries import statement
from rag_resources.store.ranked_lists import (
    EmbeddedQuery,
    ListRequest,
    OwnParameters,
    lexemes_of,
)

Kind = TypeVar("Kind", bound=Hashable)

# The statement, table and column that score the candidates of a list.
_VECTORS: Mapping[RankedList, tuple[str, str, str]] = {
    RankedList.SEMANTIC: ("score_vectors", "chunk_embeddings", "embedding"),
    RankedList.CONTEXTUAL: ("score_vectors", "chunk_embeddings", "contextual_embedding"),
    RankedList.WINDOWS: ("score_windows", "chunk_windows", "embedding"),
    RankedList.NOTES_SEMANTIC: ("score_vectors", "note_embeddings", "embedding"),
    RankedList.NOTES_WINDOWS: ("score_vectors", "note_embeddings", "embedding"),
}
_HELD = frozenset(
    {
        RankedList.SEMANTIC,
        RankedList.CONTEXTUAL,
        RankedList.NOTES_SEMANTIC,
        RankedList.FULLTEXT,
    }
)


def holds_scores(name: RankedList, scale: tuple[float, float]) -> bool:
    """Whether a list holds exactly the scores that a look-up would return.

    A list has 0 for a negative cosine, so its model's range must not begin below 0. In a list of
    windows, the index may have missed a chunk's nearest window. Whole notes are found by full text
    with another score than the look-up computes.
    """
    return name in _HELD and scale[0] >= 0


_DOCUMENTS: Mapping[Documents, str] = {"chunks": "chunk_documents", "notes": "note_documents"}
_KEYS: Mapping[Documents, str] = {"chunks": "chunk_id", "notes": "note_id"}


def look_up_scores(
    connection: Connection,
    lists: Sequence[ListRequest],
    candidates: Mapping[Documents, Sequence[UUID]],
    *,
    tenant: str,
) -> list[dict[UUID, float]]:
    """Score every candidate by every list, in one round trip.

    Args:
        connection: In the snapshot in which the candidates were found.
        lists: The lists that found them.
        candidates: Ids of chunks and of whole notes.
        tenant: Their tenant.

    Returns:
        For each list, the scores of the documents of its kind: exact cosines in [-1, 1], or BM25
        divided by its bound, in [0, 1]. A document without a vector, or without any of the words,
        has no score; lists of the graph score only the candidates that they hold.
    """
    found: list[dict[UUID, float]] = [{} for _ in lists]
    own = OwnParameters()
    searched = {number: item for number, item in enumerate(lists) if item.links is None}
    parts = [
        sql.SQL("({})").format(compose_scores(group, own.bind("ids", list(ids), kind), own))
        for (kind, _), group in grouped(searched, lambda number: DOCUMENTS_OF[lists[number].name])
        if (ids := candidates[kind])
    ]
    if parts:
        query = sql.SQL("\nUNION ALL\n").join(parts)
        for row in connection.execute(query, {**own.values, "tenant": tenant}).fetchall():
            found[row.list][row.id] = float(row.score)
    return found


def grouped(
    lists: Mapping[int, ListRequest], by: Callable[[int], Kind]
) -> Iterable[tuple[tuple[Kind, Hashable], dict[int, ListRequest]]]:
    """Divide lists by what `by` says of their numbers, and into those that one statement scores.

    Vectors of one table that are compared with the same vector are read together.
    """
    groups: dict[tuple[Kind, Hashable], dict[int, ListRequest]] = {}
    for number, item in lists.items():
        read: Hashable = number
        if item.embedded is not None and _VECTORS[item.name][0] == "score_vectors":
            _, family, _ = _VECTORS[item.name]
            read = (family, item.embedded.info.name, item.embedded.vector.tobytes())
        groups.setdefault((by(number), read), {})[number] = item
    return groups.items()


def compose_scores(
    group: Mapping[int, ListRequest], wanted: sql.Composable, own: OwnParameters
) -> sql.Composed:
    """Return the statement that reads the scores of some documents in the lists of a group.

    Args:
        group: Of `grouped`, by position; the rows carry it.
        wanted: The ids of the documents, an array.
        own: Collects its parameters.
    """
    number, item = next(iter(group.items()))
    documents = DOCUMENTS_OF[item.name]
    if item.embedded is None:
        question = own.bind("query", searched_words(item.text), item.text)
        return statement(
            "score_words",
            list=sql.Literal(number),
            documents=statement(_DOCUMENTS[documents], ids=wanted),
            **lexemes_of(question),
        )
    query, family, _ = _VECTORS[item.name]
    return statement(
        query,
        list=sql.Literal(number),
        ids=wanted,
        key=sql.Identifier(_KEYS[documents]),
        compared=sql.SQL(", ").join(
            sql.SQL("({}, {})").format(
                sql.Literal(each), sql.Identifier("e", _VECTORS[other.name][2])
            )
            for each, other in group.items()
        ),
        **_vector(item.embedded, family, own),
    )


def match_windows(
    connection: Connection, embedded: EmbeddedQuery, chunk_ids: Sequence[UUID]
) -> dict[UUID, Windows]:
    """Return the windows of chunks with their similarity to a question, the nearest first.

    Args:
        connection: Any.
        embedded: The question, embedded by a model that has windows.
        chunk_ids: Chunks without windows are left out of the result.
    """
    own = OwnParameters()
    query = compose_windows(embedded, own, sql.Placeholder("ids"))
    rows = connection.execute(query, {**own.values, "ids": list(chunk_ids)}).fetchall()
    return {row.chunk_id: windows_of(row, embedded.info.cosine_range) for row in rows}


def compose_windows(
    embedded: EmbeddedQuery, own: OwnParameters, ids: sql.Composable
) -> sql.Composed:
    """Return the query of the windows of chunks; `ids` is a `uuid[]`."""
    return statement("match_windows", ids=ids, **_vector(embedded, "chunk_windows", own))


def windows_of(row: Any, scale: tuple[float, float]) -> Windows:
    """Return the windows in a row of the query, with their cosines on a scale."""
    return tuple(
        ScoredSpan(start, end, on_scale(cosine, *scale))
        for start, end, cosine in zip(row.starts, row.ends, row.cosines, strict=True)
    )


def _vector(embedded: EmbeddedQuery, family: str, own: OwnParameters) -> dict[str, sql.Composable]:
    info, vector = embedded.info, embedded.vector
    return {
        "model": sql.Literal(info.name),
        "embeddings": sql.Identifier(f"{family}_{info.name}"),
        "dimension": sql.Literal(info.dimension),
        "vector": own.bind("vector", HalfVector(vector), vector.tobytes()),
    }
