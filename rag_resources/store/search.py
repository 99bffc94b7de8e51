"""Ranked lists of a question from PostgreSQL, and what to know before asking for them.

Fusing the lists is `core.fusion`; what is shown of the results is `store.passages`.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from pgvector import HalfVector
from psycopg import sql
from psycopg.types.json import Jsonb

from rag_resources.core.filters import RetrievalFilters
from rag_resources.core.types import Candidate, ModelInfo, Ranking, Retriever, Vectors
from rag_resources.database.pool import Connection
from rag_resources.database.queries import statement

CANDIDATE_BUDGET = 1000
"""Documents the rarest lexemes may select for BM25; 300 gave full quality on 2,000 passages."""

SELECTIVE_NOTES = 1000
"""Visible notes up to which all of them are searched exactly, instead of an index and a filter.

Of 50,000 notes with two chunks each, nearest chunks: 1 % of the notes 7 ms exactly (recall 1.00),
51 ms by HNSW and a filter (0.88); 2 %, this limit, two thirds of its time; 5 %, five times it.
"""

_UNLIMITED = 2**62

_WORD_QUERIES: Mapping[Retriever, str] = {
    Retriever.FULLTEXT: "search_chunk_words",
    Retriever.NOTES_FULLTEXT: "search_note_words",
}


@dataclass(frozen=True, slots=True)
class EmbeddedQuery:
    """A question's vector under a model, `(dimension,)` float32, L2-normalised."""

    info: ModelInfo
    vector: Vectors
    threshold: float


@dataclass(frozen=True, slots=True)
class ListRequest:
    """One ranked list to fetch.

    Attributes:
        text: Of a list by words.
        embedded: Of a list by vectors, and only of such.
        question: Which question it searches: 0 is the question itself.
    """

    retriever: Retriever
    text: str = ""
    embedded: EmbeddedQuery | None = None
    question: int = 0


@dataclass(frozen=True, slots=True)
class SearchScope:
    """Which notes are searched, and how they are reached.

    Attributes:
        selective: Few notes are visible: find those first and search all of them, exactly.
        chunk_model: Notes whose vectors of this model are pending are searched whole; empty: none.
        unchunked_only: Whether the lists of notes leave out what is searched by its chunks.
        any_unchunked: Whether there may be notes that are not.
        any_hidden: Whether there may be notes that are not visible.
    """

    tenant: str
    filters: RetrievalFilters = field(default_factory=RetrievalFilters)
    selective: bool = False
    chunk_model: str = ""
    unchunked_only: bool = True
    any_unchunked: bool = True
    any_hidden: bool = True

    def under(self, plan: "SearchPlan") -> "SearchScope":
        """Return it with what a plan found out, for a search of the same snapshot."""
        return replace(
            self,
            selective=plan.matching is not None and plan.matching <= SELECTIVE_NOTES,
            any_unchunked=plan.any_unchunked,
            any_hidden=plan.matching is not None or plan.any_expired,
        )


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """What decides how to search.

    Attributes:
        any_unchunked: Whether some note is not yet searched by its chunks.
        any_expired: Whether some note of the tenant has expired.
        models: Those asked for that are known, by name.
        matching: How many notes are visible, `SELECTIVE_NOTES + 1` standing for all that are more;
            None without filters in a database of one tenant, where it is all but the expired ones.
    """

    any_unchunked: bool
    any_expired: bool
    models: Mapping[str, ModelInfo]
    matching: int | None


def search(
    connection: Connection, lists: Sequence[ListRequest], scope: SearchScope, *, pool: int
) -> list[Ranking]:
    """Fetch ranked lists in one round trip.

    Args:
        connection: Of our pool, which sets how an HNSW index is searched.
        lists: The lists wanted.
        scope: Which notes.
        pool: Candidates per list, >= 1.

    Returns:
        One ranking per list, in that order; each best first, ties by chunk id.
    """
    if not lists:
        return []
    query, parameters = compose_search(lists, scope, pool=pool)
    found: list[list[Candidate]] = [[] for _ in lists]
    for row in _execute(connection, query, parameters, scope):
        found[row.list].append(
            Candidate(row.chunk_id, row.note_id, float(row.score), row.created_at)
        )
    return [
        Ranking(
            item.retriever,
            tuple(sorted(candidates, key=lambda c: (-c.score, c.chunk_id))),
            model=item.embedded.info.name if item.embedded else "",
            question=item.question,
        )
        for item, candidates in zip(lists, found, strict=True)
    ]


def compose_search(
    lists: Sequence[ListRequest], scope: SearchScope, *, pool: int
) -> tuple[sql.Composed, dict[str, Any]]:
    """Return the statement that fetches the lists, at least one, and its parameters."""
    own = _OwnParameters()
    limits = _limits(scope, pool)
    parts = [
        sql.SQL("({})").format(_list_statement(item, number, scope, limits, own))
        for number, item in enumerate(lists)
    ]
    query = statement(
        "search_lists",
        materialized=_materialized(scope),
        any_unchunked=sql.Literal(scope.any_unchunked),
        visible_notes=_visible_notes(scope.filters),
        lists=sql.SQL("\nUNION ALL\n").join(parts),
    )
    return query, _scope_parameters(scope) | own.values


def plan_search(connection: Connection, scope: SearchScope, *, models: Sequence[str]) -> SearchPlan:
    """Learn, in one round trip, what decides how to search."""
    query = statement(
        "plan_search",
        visible_notes=_visible_notes(scope.filters),
        filtered=sql.Literal(not scope.filters.is_empty),
    )
    parameters = {"models": list(models), "counted": SELECTIVE_NOTES + 1}
    rows = _execute(connection, query, _scope_parameters(scope) | parameters, scope)
    known = {
        row.name: ModelInfo(
            row.name, row.dimension, row.provider, row.digest, row.similarity_threshold, 0
        )
        for row in rows
        if row.name is not None
    }
    first = rows[0]
    return SearchPlan(first.any_unchunked, first.any_expired, known, first.matching)


def _execute(
    connection: Connection, query: sql.Composed, parameters: Mapping[str, Any], scope: SearchScope
) -> list[Any]:
    # With filters it is planned for their values each time: the plan that suits no value in
    # particular expects few notes of any filter, and takes half of them one by one. Without, a
    # plan is as good for every question, and planning is a fifth of the whole.
    prepare = None if scope.filters.is_empty else False
    return connection.execute(query, parameters, prepare=prepare).fetchall()


class _OwnParameters:
    """Parameters that belong to a list; lists with the same value share one."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self._names: dict[Hashable, str] = {}

    def bind(self, name: str, value: object, key: Hashable) -> sql.Placeholder:
        """Return the placeholder of a value; equal keys are equal values."""
        numbered = self._names.setdefault((name, key), f"{name}_{len(self._names)}")
        self.values.setdefault(numbered, value)
        return sql.Placeholder(numbered)


class _VectorSource(NamedTuple):
    """Where the vectors of a list are, and by which column they belong to what."""

    family: str
    key: str
    column: str


_VECTOR_SOURCES: Mapping[Retriever, _VectorSource] = {
    Retriever.SEMANTIC: _VectorSource("chunk_embeddings", "chunk_id", "embedding"),
    Retriever.CONTEXTUAL: _VectorSource("chunk_embeddings", "chunk_id", "contextual_embedding"),
    Retriever.NOTES_SEMANTIC: _VectorSource("note_embeddings", "note_id", "embedding"),
}


def _materialized(scope: SearchScope) -> sql.SQL:
    return sql.SQL("MATERIALIZED" if scope.selective else "NOT MATERIALIZED")


def _limits(scope: SearchScope, pool: int) -> dict[str, sql.Literal]:
    """How many candidates each step of a list takes."""
    limits = {
        "pool": pool,
        # Words rare in the corpus may be none of those in the visible notes: no budget for few.
        "budget": _UNLIMITED if scope.selective else CANDIDATE_BUDGET,
        # Lexemes that come together more often than by chance select more than expected.
        "ranked": None if scope.selective else 2 * CANDIDATE_BUDGET,
        "rescored": max(50, 2 * pool),
    }
    return {name: sql.Literal(limit) for name, limit in limits.items()}


def _list_statement(
    item: ListRequest,
    number: int,
    scope: SearchScope,
    limits: Mapping[str, sql.Literal],
    own: _OwnParameters,
) -> sql.Composed:
    whole = "unchunked_notes" if scope.unchunked_only else "visible_notes"
    by_notes = item.retriever in (Retriever.NOTES_SEMANTIC, Retriever.NOTES_FULLTEXT)
    searched = sql.Identifier(whole if by_notes else "searched_chunks")
    partial = scope.any_hidden or scope.any_unchunked
    if item.embedded is None:
        return statement(
            _WORD_QUERIES[item.retriever],
            list=sql.Literal(number),
            searched=searched,
            matched=sql.Identifier("searched_chunks" if partial else "chunks"),
            query=own.bind("query", item.text, item.text),
            **limits,
        )
    source, embedded = _VECTOR_SOURCES[item.retriever], item.embedded
    return statement(
        "search_vectors",
        list=sql.Literal(number),
        searched=searched,
        materialized=_materialized(scope),
        pool=limits["pool"],
        model=sql.Literal(embedded.info.name),
        embeddings=sql.Identifier(f"{source.family}_{embedded.info.name}"),
        key=sql.Identifier(source.key),
        column=sql.Identifier(source.column),
        dimension=sql.Literal(embedded.info.dimension),
        vector=own.bind("vector", HalfVector(embedded.vector), embedded.vector.tobytes()),
        threshold=own.bind("threshold", embedded.threshold, embedded.threshold),
    )


def _visible_notes(filters: RetrievalFilters) -> sql.Composed:
    return statement(
        "visible_notes",
        any_source=sql.Literal(filters.source is None),
        any_tags=sql.Literal(not filters.tags),
        any_note=sql.Literal(not filters.note_ids),
        any_start=sql.Literal(filters.created_from is None),
        any_end=sql.Literal(filters.created_until is None),
        any_metadata=sql.Literal(not filters.metadata),
    )


def _scope_parameters(scope: SearchScope) -> dict[str, Any]:
    filters = scope.filters
    return {
        "tenant": scope.tenant,
        "model": scope.chunk_model,
        "source": filters.source,
        "tags": list(filters.tags),
        "note_ids": list(filters.note_ids),
        "created_from": filters.created_from,
        "created_until": filters.created_until,
        "metadata": Jsonb(filters.metadata),
    }
