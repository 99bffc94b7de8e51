"""A whole search in one statement: plan, lists, scores and the texts of the probable results.

It is composed of the statements that `store.search` and `store.candidate_scores` run one by one. A
statement is composed once for each kind of question; after that only its parameters change. The
final scores are computed by `core.fusion`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from psycopg import sql
from psycopg.rows import tuple_row

from rag_resources.core.fusion import on_scale
from rag_resources.core.retrievers import DOCUMENTS_OF, Documents, RankedList
from rag_resources.core.types import Candidate, Ranking, Windows
from rag_resources.database.connection import LimitedConnection, LimitedRawCursor
from rag_resources.database.queries import numbered, statement
from rag_resources.store.candidate_scores import (
    compose_scores,
    compose_windows,
    grouped,
    holds_scores,
    windows_of,
)
from rag_resources.store.index_state import IndexVersion, index_version_of
from rag_resources.store.passages import Passage, passages_of
from rag_resources.store.ranked_lists import ListRequest, OwnParameters, own_key, own_value
from rag_resources.store.search import (
    SearchPlan,
    SearchScope,
    compose_plan,
    compose_search_with,
    plan_of,
    rankings_of,
    scope_parameters,
)

_MOST_COMPOSED = 256
_CANDIDATES: Mapping[Documents, str] = {"chunks": "candidate_chunks", "notes": "candidate_notes"}


@dataclass(frozen=True, slots=True)
class Merging:
    """An approximation of the fusion; it only decides whose texts the statement returns.

    Attributes:
        weights: One for each list.
        scales: The range of each list's scores if they are looked up for every candidate; None:
            only the scores in a list count.
        rank_constant: RRF's constant, if ranks count instead of scores; None: scores count, min-max
            normalised inside each list.
        shown: How many texts to return, >= 1.
        kept: How many candidates to return, >= 1; None: all.
    """

    weights: tuple[float, ...]
    scales: tuple[tuple[float, float], ...] | None
    rank_constant: int | None
    shown: int
    kept: int | None = None

    @property
    def parts(self) -> str:
        """The query of the contribution of each score to the sum."""
        if self.scales is not None:
            return "parts_on_scales"
        return "parts_of_lists" if self.rank_constant is None else "parts_of_ranks"


@dataclass(frozen=True, slots=True)
class AllAtOnce:
    """The result of one statement.

    Attributes:
        plan: The present plan, which the search should have used.
        version: Version of the searched index; None if that was not requested.
        rankings: One per list, as `search` returns them, of the candidates that were kept.
        scores: Every candidate's score in each list, on the scale of that list; None if that was
            not requested.
        passages: Those of the probable results, by chunk id.
        windows: Their windows, if windows were searched, by chunk id.
    """

    plan: SearchPlan
    version: IndexVersion | None
    rankings: list[Ranking]
    scores: list[dict[UUID, float]] | None
    passages: Mapping[UUID, Passage]
    windows: Mapping[UUID, Windows]


def search_at_once(
    connection: LimitedConnection,
    lists: Sequence[ListRequest],
    scope: SearchScope,
    *,
    pool: int,
    models: Sequence[str],
    merging: Merging,
    versioned: bool = False,
) -> AllAtOnce:
    """Plan, search, look scores up and read texts in one round trip.

    It takes a second round trip if some passages belong to documents.

    Args:
        connection: From the product's pool.
        lists: The lists to fetch, at least one.
        scope: Under an earlier plan; without filters.
        pool: Candidates per list, >= 1.
        models: As for `plan_search`.
        merging: Which candidates and texts are needed.
        versioned: Whether to return the version of the index too.
    """
    query, names, sources = _composed(lists, scope, pool, merging, versioned=versioned)
    parameters: dict[str, Any] = {
        name: own_value(lists[number], kind) for name, (kind, number) in sources.items()
    }
    parameters |= scope_parameters(scope)
    parameters["models"] = list(models)
    cursor = LimitedRawCursor(connection, row_factory=tuple_row)
    values = [parameters[name] for name in names]
    cursor.execute(query, values, prepare=scope.prepare, binary=True)
    return _read(connection, cursor.fetchall(), lists, merging.scales)


def _kinds(lists: Sequence[ListRequest]) -> tuple[tuple[object, ...], ...]:
    """Return the kind of each list: its table and what it shares with others, without values."""
    seen: dict[object, int] = {}
    kinds: list[tuple[object, ...]] = []
    for item in lists:
        shared = [
            seen.setdefault((name, key), len(seen))
            for name in ("query", "vector", "threshold")
            if (key := own_key(item, name)) is not None
        ]
        model = (item.embedded.info.name, item.embedded.info.dimension) if item.embedded else ()
        kinds.append((item.name, item.finds, item.question > 0, *model, *shared))
    return tuple(kinds)


_Composition = tuple[bytes, tuple[str, ...], dict[str, tuple[str, int]]]
_composed_before: dict[object, _Composition] = {}


def _composed(
    lists: Sequence[ListRequest],
    scope: SearchScope,
    pool: int,
    merging: Merging,
    *,
    versioned: bool,
) -> _Composition:
    """Return a statement, and for each of its parameters the list and the value that fill it."""
    key = (
        *(_kinds(lists), pool, merging),
        *(scope.selective, scope.unchunked_only, scope.any_unchunked, scope.any_hidden),
        *(scope.is_shared, scope.exact, versioned),
    )
    made = _composed_before.get(key)
    if made is None:
        if len(_composed_before) >= _MOST_COMPOSED:
            _composed_before.clear()
        made = _compose(lists, scope, pool, merging, versioned=versioned)
        _composed_before[key] = made
    return made


def _compose(
    lists: Sequence[ListRequest],
    scope: SearchScope,
    pool: int,
    merging: Merging,
    *,
    versioned: bool,
) -> _Composition:
    own = OwnParameters()
    searches = compose_search_with(own, lists, scope, pool=pool)
    looked_up = merging.scales is not None
    windows = next((item for item in lists if item.name == RankedList.WINDOWS), None)
    query = statement(
        "search_at_once",
        searches=searches,
        plan=compose_plan(scope),
        version=statement("read_index_version" if versioned else "no_index_version"),
        known=_found_scores(range(len(lists)))
        if merging.scales is None
        else _all_scores(lists, merging.scales, own),
        score_parts=statement(merging.parts, **_constants(merging)),
        looked_up=sql.Literal(looked_up),
        shown=sql.Literal(merging.shown),
        kept=sql.Literal(merging.kept),
        windows=compose_windows(
            windows.embedded, own, sql.SQL("({})::uuid[]").format(statement("best_candidates"))
        )
        if windows and windows.embedded
        else statement("no_windows"),
    )
    return *numbered(query), own.sources(lists)


def _constants(merging: Merging) -> dict[str, sql.Literal]:
    """Return the configuration's values as literals; parameters would be converted every time."""
    constants = {
        "weights": sql.Literal(list(merging.weights)),
        "rank_constant": sql.Literal(merging.rank_constant),
    }
    if merging.scales is not None:
        constants["lows"] = sql.Literal([low for low, _ in merging.scales])
        constants["highs"] = sql.Literal([high for _, high in merging.scales])
    return constants


def _found_scores(numbers: Iterable[int]) -> sql.Composed:
    return statement("found_scores", numbers=_array(numbers))


def _array(numbers: Iterable[int]) -> sql.Composed:
    return sql.SQL("{}::int[]").format(sql.Literal(list(numbers)))


def _all_scores(
    lists: Sequence[ListRequest], scales: Sequence[tuple[float, float]], own: OwnParameters
) -> sql.Composed:
    """Return the query of what each candidate scores in each list; a list's own it has already.

    In the list of a sub-question only its own candidates count.
    """
    held = [
        number
        for number, (item, scale) in enumerate(zip(lists, scales, strict=True))
        if holds_scores(item.name, scale)
    ]
    # A list that is not searched holds none.
    full = {number for number in held if lists[number].finds}
    scored = {
        number: item for number, item in enumerate(lists) if not (item.question and number in held)
    }

    def wanted_by(number: int) -> tuple[str, tuple[int, ...]]:
        if lists[number].question:
            return "candidates_of_list", (number,)
        return _CANDIDATES[DOCUMENTS_OF[lists[number].name]], (number,) if number in full else ()

    parts = [_found_scores(full)]
    for ((candidates, numbers), _), group in grouped(scored, wanted_by):
        wanted = statement(candidates, numbers=_array(numbers))
        parts.append(compose_scores(group, sql.SQL("({})::uuid[]").format(wanted), own))
    return sql.SQL("\nUNION ALL\n").join(sql.SQL("({})").format(part) for part in parts)


class _Row(NamedTuple):
    """The columns of the query, in order."""

    facts: list[dict[str, Any]] | None
    version: dict[str, Any] | None
    id: UUID | None
    note_id: UUID
    lists: list[int]
    scores: list[float]
    known_lists: list[int] | None
    known_scores: list[float] | None
    is_shown: bool
    title: str
    external_id: str
    note_content: str | None
    created_at: datetime | None
    chunk_index: int | None
    start_char: int | None
    end_char: int | None
    content: str | None
    document_id: UUID | None
    heading_path: list[str] | None
    starts: list[int] | None
    ends: list[int] | None
    cosines: list[float] | None


def _read(
    connection: LimitedConnection,
    rows: Sequence[tuple[Any, ...]],
    lists: Sequence[ListRequest],
    scales: Sequence[tuple[float, float]] | None,
) -> AllAtOnce:
    held: list[list[Candidate]] = [[] for _ in lists]
    known: list[dict[UUID, float]] = [{} for _ in lists]
    shown, windows = [], {}
    searched = next((own.embedded for own in lists if own.name == RankedList.WINDOWS), None)
    # For speed, only the few shown ones of a hundred rows become named tuples.
    for values in rows:
        chunk_id, note_id, numbers, scores, known_numbers, known_scores = values[2:8]
        if chunk_id is None:
            continue
        for number, score in zip(numbers, scores, strict=True):
            held[number].append(Candidate(chunk_id, note_id, score))
        if scales is not None and known_numbers:
            for number, score in zip(known_numbers, known_scores, strict=True):
                known[number][chunk_id] = on_scale(score, *scales[number])
        row = _Row._make(values) if values[8] else None
        if row:
            shown.append(row)
            if searched and row.starts:
                windows[chunk_id] = windows_of(row, searched.info.cosine_range)
    first = _Row._make(rows[0])
    return AllAtOnce(
        plan_of(first.facts or []),
        index_version_of(first.version) if first.version else None,
        rankings_of(lists, held),
        None if scales is None else known,
        passages_of(connection, shown),
        windows,
    )
