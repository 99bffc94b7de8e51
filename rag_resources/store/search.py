"""Ranked lists of a question from PostgreSQL, and what to know before asking for them.

The statement of each list is `store.ranked_lists`, fusing the lists `core.fusion`, what is shown of
the results `store.passages`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from psycopg import sql
from psycopg.types.json import Jsonb

from rag_resources.core.filters import RetrievalFilters
from rag_resources.core.types import Candidate, ModelInfo, Ranking
from rag_resources.database.pool import Connection
from rag_resources.database.queries import statement
from rag_resources.store.ranked_lists import ListRequest, OwnParameters, Reach, list_statement

CANDIDATE_BUDGET = 1000
"""Documents the rarest lexemes may select for BM25; 300 gave full quality on 2,000 passages."""

SELECTIVE_NOTES = 1000
"""Visible notes up to which all of them are searched exactly, instead of an index and a filter.

Of 50,000 notes with two chunks each, nearest chunks: 1 % of the notes 7 ms exactly (recall 1.00),
51 ms by HNSW and a filter (0.88); 2 %, this limit, two thirds of its time; 5 %, five times it.
"""

_UNLIMITED = 2**62


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
            item.name,
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
    own = OwnParameters()
    reach = Reach(
        notes="unchunked_notes" if scope.unchunked_only else "visible_notes",
        partial=scope.any_hidden or scope.any_unchunked,
        materialized=_materialized(scope),
        limits=_limits(scope, pool),
    )
    parts = [
        sql.SQL("({})").format(list_statement(item, number, reach, own))
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
