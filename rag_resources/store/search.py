"""Reads the ranked lists of a question from PostgreSQL, and plans that search.

The statement of each list is in `store.ranked_lists`, looking up single scores in
`store.candidate_scores`, fusion in `core.fusion`, the texts of results in `store.passages`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from psycopg import sql
from psycopg.types.json import Jsonb

from rag_resources.core.filters import RetrievalFilters, narrowed
from rag_resources.core.fusion import SIDE_CANDIDATES
from rag_resources.core.types import Candidate, ModelInfo, Ranking, by_score
from rag_resources.database.pool import Connection
from rag_resources.database.queries import statement
from rag_resources.store.ranked_lists import (
    CHUNK_VECTORS,
    CHUNK_WINDOWS,
    ListRequest,
    OwnParameters,
    Reach,
    list_statement,
)

CANDIDATE_BUDGET = 1000
"""Most documents that the rarest lexemes may select for BM25.

300 gave full quality on 2,000 passages.
"""

SELECTIVE_NOTES = 1000
"""Up to this many visible notes are all searched exactly, instead of by an index and a filter.

Measured on the nearest chunks of 50,000 notes with two chunks each. With 1 % of the notes visible,
exact search takes 7 ms (recall 1.00); HNSW with a filter takes 51 ms (recall 0.88). With 2 %, this
limit, exact search takes two thirds of the time of HNSW; with 5 %, five times its time.
"""

EXACT_VECTORS = 10_000
"""If a tenant shares the database and has at most this many vectors, all of them are compared.

An index over the vectors of all tenants finds too few of one's own: of 100,000 chunks, for tenants
with 3,000 and 7,000 of them, .84 and .86 of the nearest 20, and .93 of them among the nearest 50.
"""

_WINDOWS_IN_CHUNK = 10
"""How many windows a chunk has, roughly: as many as it has sentences."""

WINDOWS_PER_CHUNK = 4
"""Windows fetched for each wanted chunk, because some of the best windows share a chunk."""

WINDOWS_ALONE = 3
"""The same if only windows find chunks; then all chunks of these windows are candidates.

Of the best ten that an exhaustive search finds among 100,000 passages, 150 windows find .841, 200
find .858, and the three lists of 50 chunks .844. A question by 150 takes a fifth less time.
"""

_UNLIMITED = 2**62


@dataclass(frozen=True, slots=True)
class SearchScope:
    """Which notes are searched, and how they are found.

    Attributes:
        selective: Few notes are visible, so find them first and search all of them exactly.
        chunk_model: Notes with pending vectors of this model are searched as a whole; empty: no
            model.
        window_model: The same for pending windows of this model.
        unchunked_only: Whether the whole-note lists exclude notes that are searchable by chunk.
        any_unchunked: Whether there may be notes that are not searchable by chunk.
        any_hidden: Whether there may be notes that are not visible.
        is_shared: Whether there are other tenants, or filters, so that no single plan of PostgreSQL
            suits all searches.
        exact: The families of vectors that are searched exhaustively, if not `selective`.
    """

    tenant: str
    filters: RetrievalFilters = field(default_factory=RetrievalFilters)
    selective: bool = False
    chunk_model: str = ""
    window_model: str = ""
    unchunked_only: bool = True
    any_unchunked: bool = True
    any_hidden: bool = True
    is_shared: bool = False
    exact: frozenset[str] = frozenset()

    def under(self, plan: "SearchPlan") -> "SearchScope":
        """Return this scope with the findings of a plan, for a search of the same snapshot."""
        return replace(
            self,
            selective=plan.matching is not None and plan.matching <= SELECTIVE_NOTES,
            any_unchunked=plan.any_unchunked,
            any_hidden=plan.matching is not None or plan.any_expired,
            is_shared=plan.matching is not None,
            exact=plan.exact,
        )

    @property
    def prepare(self) -> bool | None:
        """Whether psycopg prepares its statements: False plans them for their values each time.

        A generic plan expects few notes for any filter, and the average number of notes for any
        tenant: with 40,000 chunks of 300 tenants the largest waited ten times as long. For a
        single tenant without filters one plan suits every question, and planning would take a fifth
        of the total time.
        """
        return False if self.is_shared or not self.filters.is_empty else None


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """The facts about the database that decide how to search.

    Attributes:
        any_unchunked: Whether some note is not searchable by chunk yet.
        any_expired: Whether some note of the tenant has expired.
        models: The requested models that are registered, by name.
        matching: How many notes are visible, at most `SELECTIVE_NOTES + 1`. None if there are no
            filters and one tenant; then all notes are visible that have not expired.
        chunk_count: How many chunks the tenant has, at most `EXACT_VECTORS + 1`; None as for
            `matching`.
        windowed: The models among them that have windows.
    """

    any_unchunked: bool
    any_expired: bool
    models: Mapping[str, ModelInfo]
    matching: int | None
    chunk_count: int | None = None
    windowed: frozenset[str] = frozenset()

    @property
    def exact(self) -> frozenset[str]:
        """The families of vectors to search exhaustively, because the tenant has few of them."""
        if self.chunk_count is None:
            return frozenset()
        counts = {
            CHUNK_VECTORS: self.chunk_count,
            CHUNK_WINDOWS: self.chunk_count * _WINDOWS_IN_CHUNK,
        }
        return frozenset(family for family, count in counts.items() if count <= EXACT_VECTORS)

    def decides_as(self, other: "SearchPlan") -> bool:
        """Whether both plans lead to the same search."""
        return self.decisions == other.decisions

    @property
    def decisions(self) -> tuple[object, ...]:
        """The decisions that follow from it; the number of visible notes only decides "few"."""
        selective = None if self.matching is None else self.matching <= SELECTIVE_NOTES
        state = (self.any_unchunked, self.any_expired, self.models, self.windowed)
        return *state, selective, self.exact


def search(
    connection: Connection, lists: Sequence[ListRequest], scope: SearchScope, *, pool: int
) -> list[Ranking]:
    """Fetch ranked lists in one round trip.

    Args:
        connection: From the product's pool, whose session settings control the HNSW search.
        lists: The lists to fetch.
        scope: Which notes to search.
        pool: Candidates per list, >= 1.

    Returns:
        One ranking per list, in the order of the lists; each best first, ties by chunk id.
    """
    if not lists:
        return []
    query, parameters = compose_search(lists, scope, pool=pool)
    found: list[list[Candidate]] = [[] for _ in lists]
    for row in _execute(connection, query, parameters, scope):
        # Only lists of the graph have paths; they are fetched separately.
        path = tuple(getattr(row, "path", ()))
        found[row.list].append(Candidate(row.chunk_id, row.note_id, float(row.score), path))
    return rankings_of(lists, found)


def rankings_of(
    lists: Sequence[ListRequest], found: Sequence[Sequence[Candidate]]
) -> list[Ranking]:
    """Return a ranking for each list from its candidates, which may come in any order."""
    return [
        Ranking(
            item.name,
            by_score(candidates),
            question=item.question,
        )
        for item, candidates in zip(lists, found, strict=True)
    ]


def compose_search(
    lists: Sequence[ListRequest], scope: SearchScope, *, pool: int
) -> tuple[sql.Composed, dict[str, Any]]:
    """Return the statement that fetches the lists (at least one), and its parameters."""
    own = OwnParameters()
    query = compose_search_with(own, lists, scope, pool=pool)
    return query, scope_parameters(scope) | own.values


def compose_search_with(
    own: OwnParameters,
    lists: Sequence[ListRequest],
    scope: SearchScope,
    *,
    pool: int,
) -> sql.Composed:
    """Return the statement that fetches the lists (at least one).

    Args:
        own: Collects its parameters.
        lists: The lists.
        scope: Which notes to search.
        pool: Candidates per list, >= 1.
    """
    reach = Reach(
        notes="unchunked_notes" if scope.unchunked_only else "visible_notes",
        partial=scope.any_hidden or scope.any_unchunked,
        materialized=_materialized(scope),
        limits=_limits(scope, pool, lists),
        exact=() if scope.selective else scope.exact,
        alone=not scope.is_shared,
    )
    few = sql.Literal(min(pool, SIDE_CANDIDATES))
    beside = reach._replace(limits={**reach.limits, "pool": few, "folded": few})
    statements = (
        list_statement(item, number, beside if item.question else reach, own)
        for number, item in enumerate(lists)
        if item.finds
    )
    parts = [sql.SQL("({})").format(each) for each in statements]
    return statement(
        "search_lists",
        materialized=_materialized(scope),
        visible_notes=_visible_notes(scope.filters),
        searched_chunks=statement("every_chunk")
        if reach.alone and not reach.partial
        else statement("visible_chunks", any_unchunked=sql.Literal(scope.any_unchunked)),
        lists=sql.SQL("\nUNION ALL\n").join(parts),
    )


def plan_search(connection: Connection, scope: SearchScope, *, models: Sequence[str]) -> SearchPlan:
    """Read the plan of a search, in one round trip."""
    parameters = scope_parameters(scope) | {"models": list(models)}
    rows = _execute(connection, compose_plan(scope), parameters, scope)
    return plan_of([row._asdict() for row in rows])


def is_visible(connection: Connection, note_id: UUID, scope: SearchScope) -> bool:
    """Whether a search of this scope may find a note."""
    filters = narrowed(scope.filters, RetrievalFilters(note_ids=(note_id,)))
    if filters is None:
        return False
    parameters = scope_parameters(replace(scope, filters=filters))
    return connection.execute(_visible_notes(filters), parameters).fetchone() is not None


def compose_plan(scope: SearchScope) -> sql.Composed:
    """Return the statement that reads the plan of a search."""
    return statement(
        "plan_search",
        visible_notes=_visible_notes(scope.filters),
        filtered=sql.Literal(not scope.filters.is_empty),
        counted=sql.Literal(SELECTIVE_NOTES + 1),
        few=sql.Literal(EXACT_VECTORS + 1),
    )


def plan_of(rows: Sequence[Mapping[str, Any]]) -> SearchPlan:
    """Return the plan from the rows of that statement, at least one row."""
    known = {
        row["name"]: ModelInfo(
            row["name"],
            row["dimension"],
            row["provider"],
            row["digest"],
            row["similarity_threshold"],
            0,
            (row["cosine_low"], row["cosine_high"]),
        )
        for row in rows
        if row["name"] is not None
    }
    first = rows[0]
    windowed = frozenset(row["name"] for row in rows if row["has_windows"])
    return SearchPlan(
        any_unchunked=first["any_unchunked"],
        any_expired=first["any_expired"],
        models=known,
        matching=first["matching"],
        chunk_count=first["chunk_count"],
        windowed=windowed,
    )


def _execute(
    connection: Connection, query: sql.Composed, parameters: Mapping[str, Any], scope: SearchScope
) -> list[Any]:
    return connection.execute(query, parameters, prepare=scope.prepare).fetchall()


def _materialized(scope: SearchScope) -> sql.SQL:
    return sql.SQL("MATERIALIZED" if scope.selective else "NOT MATERIALIZED")


def _limits(scope: SearchScope, pool: int, lists: Sequence[ListRequest]) -> dict[str, sql.Literal]:
    """How many candidates each step of a list takes."""
    alone = not all(item.finds for item in lists)
    windows = (WINDOWS_ALONE if alone else WINDOWS_PER_CHUNK) * pool
    limits = {
        "pool": pool,
        # If few notes are visible, the words that are rare in the corpus may not occur in them, so
        # there is no budget.
        "budget": _UNLIMITED if scope.selective else CANDIDATE_BUDGET,
        # Lexemes that co-occur more often than by chance select more documents than expected.
        "ranked": None if scope.selective else 2 * CANDIDATE_BUDGET,
        "rescored": max(50, 2 * pool),
        "windows": windows,
        "folded": windows if alone else pool,
    }
    return {name: sql.Literal(limit) for name, limit in limits.items()}


def _visible_notes(filters: RetrievalFilters) -> sql.Composed:
    return statement(
        "visible_notes",
        any_source=sql.Literal(filters.source is None),
        any_tags=sql.Literal(not filters.tags),
        any_note=sql.Literal(not filters.note_ids),
        none_excluded=sql.Literal(not filters.excluded_note_ids),
        any_start=sql.Literal(filters.created_from is None),
        any_end=sql.Literal(filters.created_until is None),
        any_metadata=sql.Literal(not filters.metadata),
    )


def scope_parameters(scope: SearchScope) -> dict[str, Any]:
    """Return the parameters that say which notes are searched."""
    filters = scope.filters
    return {
        "tenant": scope.tenant,
        "model": scope.chunk_model,
        "window_model": scope.window_model,
        "source": filters.source,
        "tags": list(filters.tags),
        "note_ids": list(filters.note_ids),
        "excluded_note_ids": list(filters.excluded_note_ids),
        "created_from": filters.created_from,
        "created_until": filters.created_until,
        "metadata": Jsonb(filters.metadata),
    }
