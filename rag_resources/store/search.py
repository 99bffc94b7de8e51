"""Ranked lists of one question from PostgreSQL. Fusing them is `core.fusion`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pgvector import HalfVector
from psycopg import sql

from rag_resources.core.types import Candidate, ModelInfo, Ranking, Retriever, Vectors
from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries, statement

CANDIDATE_BUDGET = 1000
"""Documents the rarest lexemes may select for BM25; 300 gave full quality on 2,000 passages."""

_QUERY_NAMES: Mapping[Retriever, str] = {
    Retriever.SEMANTIC: "search_chunk_vectors",
    Retriever.CONTEXTUAL: "search_chunk_vectors",
    Retriever.FULLTEXT: "search_fulltext_chunks",
    Retriever.NOTES_SEMANTIC: "search_semantic_notes",
    Retriever.NOTES_FULLTEXT: "search_fulltext_notes",
}


@dataclass(frozen=True, slots=True)
class EmbeddedQuery:
    """A question's vector under a model, `(dimension,)` float32, L2-normalised."""

    info: ModelInfo
    vector: Vectors
    threshold: float


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """What to search.

    Attributes:
        retrievers: The lists wanted, none twice.
        query: The question's text.
        tenant: Whose notes.
        pool: Candidates per list, >= 1.
        chunk_query: Needed by the vector lists of chunks.
        note_query: Needed by the vector list of whole notes.
        unchunked_only: Whether the lists of notes leave out what is searched by its chunks.
    """

    retrievers: Sequence[Retriever]
    query: str
    tenant: str
    pool: int
    chunk_query: EmbeddedQuery | None = None
    note_query: EmbeddedQuery | None = None
    unchunked_only: bool = True


def search(connection: Connection, request: SearchRequest) -> list[Ranking]:
    """Fetch the lists of one question in one round trip.

    Returns:
        One ranking per retriever, in the order asked for; each best first, ties by chunk id.
    """
    if not request.retrievers:
        return []
    identifiers = _identifiers(request)
    parts = [
        sql.SQL("({})").format(statement(_QUERY_NAMES[retriever], **identifiers[retriever]))
        for retriever in request.retrievers
    ]
    rows = connection.execute(sql.SQL("\nUNION ALL\n").join(parts), _parameters(request)).fetchall()
    found: dict[str, list[Candidate]] = {retriever: [] for retriever in request.retrievers}
    for row in rows:
        found[row.retriever].append(Candidate(row.chunk_id, row.note_id, float(row.score)))
    return [
        Ranking(
            retriever,
            tuple(sorted(found[retriever], key=lambda item: (-item.score, item.chunk_id))),
        )
        for retriever in request.retrievers
    ]


def any_unchunked(connection: Connection, model: str) -> bool:
    """Whether some note is not yet searched by its chunks."""
    found: bool = queries().any_unchunked(connection, model=model)
    return found


def _identifiers(request: SearchRequest) -> dict[Retriever, dict[str, sql.Composable]]:
    chunks, notes = request.chunk_query, request.note_query
    by_chunk: dict[str, sql.Composable] = {}
    by_note: dict[str, sql.Composable] = {}
    if chunks:
        by_chunk = {
            "chunk_embeddings": sql.Identifier(f"chunk_embeddings_{chunks.info.name}"),
            "dimension": sql.Literal(chunks.info.dimension),
        }
    if notes:
        by_note = {
            "note_embeddings": sql.Identifier(f"note_embeddings_{notes.info.name}"),
            "note_dimension": sql.Literal(notes.info.dimension),
        }
    return {
        Retriever.SEMANTIC: by_chunk | _vector_column(Retriever.SEMANTIC, "embedding"),
        Retriever.CONTEXTUAL: by_chunk
        | _vector_column(Retriever.CONTEXTUAL, "contextual_embedding"),
        Retriever.FULLTEXT: {},
        Retriever.NOTES_SEMANTIC: by_note,
        Retriever.NOTES_FULLTEXT: {},
    }


def _vector_column(retriever: Retriever, column: str) -> dict[str, sql.Composable]:
    return {"list_name": sql.Literal(retriever.value), "embedding": sql.Identifier(column)}


def _parameters(request: SearchRequest) -> dict[str, Any]:
    chunks, notes = request.chunk_query, request.note_query
    return {
        "query": request.query,
        "tenant": request.tenant,
        "pool": request.pool,
        "budget": CANDIDATE_BUDGET,
        "rescored": max(100, 2 * request.pool),
        "unchunked_only": request.unchunked_only,
        "model": chunks.info.name if chunks else "",
        "vector": HalfVector(chunks.vector) if chunks else None,
        "threshold": chunks.threshold if chunks else 0.0,
        "note_vector": HalfVector(notes.vector) if notes else None,
        "note_threshold": notes.threshold if notes else 0.0,
    }
