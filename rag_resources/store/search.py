"""Composes and runs the one statement of a question, `sql/queries/search.sql`.

Which lists a question searches, and what happens when one fails, is decided in `retrieval.finding`;
the texts of results are read by `store.passages`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from pgvector import HalfVector
from psycopg import sql
from psycopg.rows import namedtuple_row
from psycopg.types.json import Jsonb

from rag_resources.core.filters import RetrievalFilters
from rag_resources.core.fusion_config import FusionConfig
from rag_resources.core.query import searched_words
from rag_resources.core.retrievers import RankedList, VectorKind
from rag_resources.core.types import (
    Candidate,
    ModelInfo,
    ScoredChunk,
    ScoredSpan,
    Vectors,
    Windows,
)
from rag_resources.database.connection import LimitedConnection, LimitedRawCursor
from rag_resources.database.pool import Connection
from rag_resources.database.queries import numbered, statement
from rag_resources.store.index_state import IndexVersion
from rag_resources.store.passages import Passage, passages_of
from rag_resources.store.vectors import vectors_table

CANDIDATE_BUDGET = 1000
"""Most chunks that the rarest lexemes of a question may select for BM25.

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

WINDOWS_PER_CHUNK = 3
"""Windows fetched for each wanted chunk, because some of the nearest windows share a chunk.

Of the best ten that an exhaustive search finds among 100,000 passages, 150 windows find .841, 200
find .858. A question by 150 takes a fifth less time.
"""

SIDE_CANDIDATES = 3
"""How many chunks a list of a sub-question or a hypothetical answer adds.

Measured on pairs of unrelated XQuAD-es questions asked as one. With three, RRF finds more passages
that answer either question: recall@5 +.03. With whole lists RRF gets much worse, MRR from .98 to
.55, since a passage in the middle of all lists then beats the best passage of a single question.
"""

FUSIONS = {"scaled": "fuse_scaled", "weighted": "fuse_weighted", "rrf": "fuse_rrf"}
"""The last step of the search, by the method of a configuration."""

_WINDOWS_IN_CHUNK = 10
_MOST_COMPOSED = 256
_UNLIMITED = 2**62


@dataclass(frozen=True, slots=True)
class EmbeddedQuery:
    """A question's vector under a model, `(dimension,)` float32, L2-normalised."""

    info: ModelInfo
    vector: Vectors
    threshold: float


@dataclass(frozen=True, slots=True)
class SearchedList:
    """One ranked list of a search.

    Attributes:
        weight: Its share of the fused score, in [0, 1].
        question: Number of the text it searches for; 0 is the question itself, others are its
            sub-questions and its hypothetical answer.
        embedded: The vector to search with; None for words.
        finds: Whether it brings candidates; otherwise it only scores those of other lists.
        given: The candidates of a list that was searched elsewhere, best first.
    """

    name: RankedList
    weight: float = 1.0
    question: int = 0
    embedded: EmbeddedQuery | None = None
    finds: bool = True
    given: tuple[Candidate, ...] = ()


@dataclass(frozen=True, slots=True)
class SearchFacts:
    """What decides how a tenant's notes are searched.

    Attributes:
        is_shared: Whether other tenants have notes in the database, so that no single plan of
            PostgreSQL suits all searches.
        chunk_count: If so, how many chunks the tenant has, up to one more than `EXACT_VECTORS`.
        models: The registered models, by name.
        kinds: The kinds of vectors that each of them makes.
        models_state: Differs if any model has changed.
    """

    is_shared: bool
    chunk_count: int
    models: Mapping[str, ModelInfo]
    kinds: Mapping[str, frozenset[str]]
    models_state: str | None


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """Everything that one statement searches.

    Attributes:
        texts: The question, then its sub-questions, for the lists by words.
        lists: At least one.
        by_notes: Whether whole notes are searched instead of chunks.
        fusion: How scores are fused; a single list keeps its own.
        pool: Candidates per list, >= 1.
        shown: How many of the best to return, >= 1.
        versioned: Whether to return the version of the index too.
    """

    tenant: str
    filters: RetrievalFilters
    texts: tuple[str, ...]
    lists: tuple[SearchedList, ...]
    by_notes: bool
    fusion: FusionConfig
    pool: int
    shown: int
    versioned: bool = False


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    """The best chunks of a search.

    Attributes:
        chunks: Best first.
        passages: Their texts, by chunk id.
        windows: Their windows, if windows were searched, by chunk id.
        models_state: Of the models when it searched, as in `SearchFacts`.
        version: Version of the searched index; None if that was not requested.
    """

    chunks: tuple[ScoredChunk, ...] = ()
    passages: Mapping[UUID, Passage] = field(default_factory=dict)
    windows: Mapping[UUID, Windows] = field(default_factory=dict)
    models_state: str | None = None
    version: IndexVersion | None = None


def read_facts(connection: Connection, tenant: str) -> SearchFacts:
    """Read the facts of a tenant, in one round trip."""
    query = statement(
        "search_facts",
        most=sql.Literal(EXACT_VECTORS + 1),
        models_state=statement("models_state"),
    )
    rows = connection.execute(query, {"tenant": tenant}).fetchall()
    models = {
        row.name: ModelInfo(
            row.name,
            row.dimension,
            row.provider,
            row.digest,
            row.similarity_threshold,
            0,
            (row.cosine_low, row.cosine_high),
        )
        for row in rows
        if row.name is not None
    }
    kinds = {row.name: frozenset(row.kinds) for row in rows if row.name is not None}
    first = rows[0]
    return SearchFacts(first.is_shared, first.chunk_count, models, kinds, first.models_state)


def any_visible(connection: Connection, *, tenant: str, filters: RetrievalFilters) -> bool:
    """Whether a search with these filters may find any note."""
    query, parameters = _visible_notes(filters), _filter_parameters(tenant, filters)
    return connection.execute(query, parameters, prepare=False).fetchone() is not None


def search(
    connection: LimitedConnection, request: SearchRequest, facts: SearchFacts
) -> SearchOutcome:
    """Search, fuse and read the texts of the best, in one round trip.

    With filters one more counts the visible notes; passages of documents take one more, too.

    Args:
        connection: From the product's pool, whose session settings control the HNSW search.
        request: What to search.
        facts: Of the tenant.
    """
    filters = request.filters
    parameters = search_parameters(request)
    selective = not filters.is_empty and _are_few(connection, request, parameters)
    query, names = _composed(request, facts, selective=selective)
    # A generic plan suits neither a filter, of which it expects few notes, nor a tenant, of whom it
    # expects as many as the average: with 40,000 chunks of 300 tenants the largest waited ten times
    # as long. Without both, planning would take a fifth of the time.
    prepare = False if facts.is_shared or not filters.is_empty else None
    cursor = LimitedRawCursor(connection, row_factory=namedtuple_row)
    cursor.execute(query, [parameters[name] for name in names], prepare=prepare, binary=True)
    return _read(connection, cursor.fetchall(), request)


def search_graph(
    connection: LimitedConnection,
    query: sql.Composed,
    parameters: Mapping[str, Any],
    *,
    tenant: str,
    filters: RetrievalFilters,
) -> tuple[Candidate, ...]:
    """Return the candidates of a list of the graph, best first.

    Args:
        connection: Any.
        query: One of the lists of `sql/queries/graph_search.sql`.
        parameters: Its own.
        tenant: Whose notes to search.
        filters: Conditions that the notes must meet.
    """
    whole = statement("graph_list", visible=_visible_notes(filters), linked=query)
    values = _filter_parameters(tenant, filters) | dict(parameters)
    rows = connection.execute(whole, values, prepare=False).fetchall()
    return tuple(
        Candidate(row.chunk_id, row.note_id, float(row.score), tuple(row.path)) for row in rows
    )


# --- Composing ----------------------------------------------------------------------------------

_Composition = tuple[bytes, tuple[str, ...]]
_composed_before: dict[object, _Composition] = {}


def _composed(request: SearchRequest, facts: SearchFacts, *, selective: bool) -> _Composition:
    """Return a statement and the names of its parameters; equal kinds of questions share one."""
    kinds = tuple(
        (
            *(item.name, item.weight, item.question, item.finds, bool(item.given)),
            item.embedded.info if item.embedded else None,
        )
        for item in request.lists
    )
    exact = _few_vectors(facts)
    key = (
        *(kinds, request.by_notes, request.fusion.method, request.fusion.rank_constant),
        *(request.pool, request.shown, request.versioned, selective, facts.is_shared, exact),
        _given_filters(request.filters),
    )
    made = _composed_before.get(key)
    if made is None:
        if len(_composed_before) >= _MOST_COMPOSED:
            _composed_before.clear()
        query = compose_search(request, facts, selective=selective)
        made = _composed_before[key] = numbered(query)
    return made


def compose_search(
    request: SearchRequest, facts: SearchFacts, *, selective: bool = False
) -> sql.Composed:
    """Return the statement of a search.

    Args:
        request: What to search.
        facts: Of the tenant.
        selective: Whether few notes are visible, so that they are found first and all searched.
    """
    return _Composer(request, facts, selective=selective).statement()


def search_parameters(request: SearchRequest) -> dict[str, Any]:
    """Return the values that the statement of a search takes, and others."""
    return _filter_parameters(request.tenant, request.filters) | _own_parameters(request)


def _few_vectors(facts: SearchFacts) -> tuple[bool, bool]:
    """Whether a tenant has so few vectors of chunks, and of windows, that all are compared."""
    windows = facts.chunk_count * _WINDOWS_IN_CHUNK
    return (
        facts.is_shared and facts.chunk_count <= EXACT_VECTORS,
        facts.is_shared and windows <= EXACT_VECTORS,
    )


class _Composer:
    def __init__(self, request: SearchRequest, facts: SearchFacts, *, selective: bool) -> None:
        self._request = request
        self._selective = selective
        self._shared = facts.is_shared
        self._few_chunks, self._few_windows = _few_vectors(facts)
        self._filtered = not request.filters.is_empty

    def statement(self) -> sql.Composed:
        request = self._request
        lists = list(enumerate(request.lists))
        fusion = request.fusion.method if len(lists) > 1 else "scaled"
        scores = [statement("found_scores")]
        if fusion == "scaled" and len(lists) > 1:
            scores += [
                self._scored(number, item)
                for number, item in lists
                if not item.question and not item.given
            ]
        return statement(
            "search",
            materialized=sql.SQL("MATERIALIZED" if self._selective else "NOT MATERIALIZED"),
            visible=_visible_notes(request.filters),
            questions=self._questions(),
            lists=_union(self._listed(number, item) for number, item in lists if item.finds),
            candidates=statement(
                "candidates_of_notes" if request.by_notes else "candidates_of_chunks"
            ),
            scores=_union(scores),
            fusion=statement(FUSIONS[fusion], **self._constants(fusion)),
            shown=sql.Literal(request.shown),
            models_state=statement("models_state"),
            read_version=statement(
                "read_index_version" if request.versioned else "no_index_version"
            ),
            windows=self._windows(),
        )

    def _questions(self) -> sql.Composed:
        if not any(item.name is RankedList.FULLTEXT for item in self._request.lists):
            return statement("no_words")
        budget = sql.Literal(_UNLIMITED if self._selective else CANDIDATE_BUDGET)
        return statement("question_words", budget=budget)

    def _constants(self, fusion: str) -> dict[str, sql.Literal]:
        """Return weights and scales as literals; parameters would be converted every time."""
        lists = self._request.lists
        if len(lists) == 1:
            return _literals(weights=[1.0], lows=[0.0], highs=[1.0])
        # RRF adds up whole weights, as in the paper; a combination is convex.
        total = 1.0 if fusion == "rrf" else sum(item.weight for item in lists)
        scales = [item.embedded.info.cosine_range if item.embedded else (0, 1) for item in lists]
        return _literals(
            # PostgreSQL refuses products that are too small for a float.
            weights=[round(item.weight / total, 12) for item in lists],
            lows=[float(low) for low, _ in scales],
            highs=[float(high) for _, high in scales],
            rank_constant=self._request.fusion.rank_constant,
        )

    def _listed(self, number: int, item: SearchedList) -> sql.Composed:
        if item.given:
            return statement(
                "list_given",
                list=sql.Literal(number),
                ids=sql.Placeholder(f"ids_{number}"),
                given_scores=sql.Placeholder(f"given_scores_{number}"),
            )
        pool = min(self._request.pool, SIDE_CANDIDATES) if item.question else self._request.pool
        if item.embedded is None:
            return statement(
                "list_words",
                list=sql.Literal(number),
                number=sql.Literal(item.question + 1),
                pool=sql.Literal(pool),
                # Only the words of all visible notes select more than the budget.
                most=sql.Literal(_UNLIMITED if self._selective else 2 * CANDIDATE_BUDGET),
                **self._within(sql.SQL("e.note_id")),
            )
        kind = _KINDS[item.name]
        is_windows = kind is VectorKind.WINDOW
        few = self._few_windows if is_windows else self._few_chunks
        owner = sql.SQL("e.note_id") if kind is VectorKind.NOTE else None
        return statement(
            "list_vectors",
            list=sql.Literal(number),
            exactly=sql.SQL("+ 0" if few or self._selective else ""),
            threshold=sql.Placeholder(f"threshold_{number}"),
            pool=sql.Literal(pool * WINDOWS_PER_CHUNK if is_windows else pool),
            **self._within(owner),
            **_vectors(item),
        )

    def _within(self, note_id: sql.SQL | None) -> dict[str, sql.Composable]:
        """Return what keeps a list to the visible notes.

        Without filters only the tenant matters here: what else is hidden is left out of the
        candidates.
        """
        condition = sql.SQL("e.tenant_id = %(tenant)s" if self._shared else "TRUE")
        if not self._filtered:
            return {"joined": _NOTHING, "condition": condition}
        joined = sql.SQL("INNER JOIN visible AS y ON y.id = {}")
        if note_id is None:
            of_chunk = sql.SQL("INNER JOIN chunks AS h ON h.id = e.chunk_id ")
            of_note = joined.format(sql.SQL("h.note_id"))
            return {"joined": of_chunk + of_note, "condition": condition}
        return {"joined": joined.format(note_id), "condition": condition}

    def _scored(self, number: int, item: SearchedList) -> sql.Composed:
        if item.embedded is None:
            return statement(
                "score_words", list=sql.Literal(number), number=sql.Literal(item.question + 1)
            )
        return statement("score_vectors", list=sql.Literal(number), **_vectors(item))

    def _windows(self) -> sql.Composed:
        searched = _searched_windows(self._request)
        return statement("windows", **_vectors(searched)) if searched else statement("no_windows")


_NOTHING = sql.SQL("")

_KINDS = {
    RankedList.SEMANTIC: VectorKind.CHUNK,
    RankedList.CONTEXTUAL: VectorKind.CONTEXTUAL,
    RankedList.WINDOWS: VectorKind.WINDOW,
    RankedList.NOTES: VectorKind.NOTE,
}
"""The vectors that a list searches."""


def _vectors(item: SearchedList) -> dict[str, sql.Composable]:
    if item.embedded is None:
        raise ValueError(f"the list {item.name} is searched by a vector")
    kind, info = _KINDS[item.name], item.embedded.info
    return {
        "vectors": vectors_table(info.name, kind),
        "key": sql.Identifier("note_id" if kind is VectorKind.NOTE else "chunk_id"),
        "dimension": sql.Literal(info.dimension),
        "vector": sql.Placeholder(_vector_name(item)),
    }


def _vector_name(item: SearchedList) -> str:
    """Lists that compare the same text under the same model share a parameter."""
    return f"vector_{item.question}"


def _union(parts: Iterable[sql.Composed]) -> sql.Composed:
    return sql.SQL("\nUNION ALL\n").join(sql.SQL("({})").format(part) for part in parts)


def _literals(**values: Any) -> dict[str, sql.Literal]:
    return {name: sql.Literal(value) for name, value in values.items()}


def _given_filters(filters: RetrievalFilters) -> tuple[bool, ...]:
    """Which filters are given, in the order of `visible_notes`."""
    return (
        filters.source is not None,
        bool(filters.tags),
        bool(filters.note_ids),
        bool(filters.excluded_note_ids),
        filters.date_source is not None,
        filters.created_from is not None,
        filters.created_until is not None,
        bool(filters.metadata),
    )


def _visible_notes(filters: RetrievalFilters) -> sql.Composed:
    names = (
        *("any_source", "any_tags", "any_note", "none_excluded"),
        *("any_date_source", "any_start", "any_end", "any_metadata"),
    )
    given = _given_filters(filters)
    return statement(
        "visible_notes",
        **{name: sql.Literal(not is_given) for name, is_given in zip(names, given, strict=True)},
    )


# --- Parameters and rows ------------------------------------------------------------------------


def _filter_parameters(tenant: str, filters: RetrievalFilters) -> dict[str, Any]:
    return {
        "tenant": tenant,
        "source": filters.source,
        "tags": list(filters.tags),
        "note_ids": list(filters.note_ids),
        "excluded_note_ids": list(filters.excluded_note_ids),
        "date_source": filters.date_source,
        "created_from": filters.created_from,
        "created_until": filters.created_until,
        "metadata": Jsonb(filters.metadata),
    }


def _own_parameters(request: SearchRequest) -> dict[str, Any]:
    """Return the values of what the lists search for."""
    values: dict[str, Any] = {"texts": [searched_words(text) for text in request.texts]}
    for number, item in enumerate(request.lists):
        if item.embedded:
            values[_vector_name(item)] = HalfVector(item.embedded.vector)
            values[f"threshold_{number}"] = item.embedded.threshold
        values[f"ids_{number}"] = [own.chunk_id for own in item.given]
        values[f"given_scores_{number}"] = [own.score for own in item.given]
    return values


def _are_few(
    connection: LimitedConnection, request: SearchRequest, parameters: Mapping[str, Any]
) -> bool:
    """Whether so few notes are visible that all of them are searched exactly."""
    counted = statement(
        "count_visible",
        visible=_visible_notes(request.filters),
        most=sql.Literal(SELECTIVE_NOTES + 1),
    )
    (row,) = connection.execute(counted, parameters, prepare=False).fetchall()
    return bool(row[0] <= SELECTIVE_NOTES)


def _read(
    connection: LimitedConnection, rows: Sequence[Any], request: SearchRequest
) -> SearchOutcome:
    found = [row for row in rows if row.id is not None]
    paths = {own.chunk_id: own.path for item in request.lists for own in item.given if own.path}
    first = rows[0]
    return SearchOutcome(
        tuple(
            ScoredChunk(
                chunk_id=row.id,
                note_id=row.note_id,
                score=max(0.0, row.score),
                lists=tuple(dict.fromkeys(request.lists[number].name for number in row.lists)),
                original_score=row.scores[0],
                path=paths.get(row.id, ()),
            )
            for row in found
        ),
        passages_of(connection, found),
        _windows_of(found, request),
        first.models_state,
        IndexVersion(first.number, first.lineage, first.next_expiry) if request.versioned else None,
    )


def _searched_windows(request: SearchRequest) -> SearchedList | None:
    """Return the list of the question itself by windows, if there is one."""
    return next(
        (own for own in request.lists if own.name is RankedList.WINDOWS and not own.question), None
    )


def _windows_of(rows: Iterable[Any], request: SearchRequest) -> dict[UUID, Windows]:
    """Return the windows of each chunk, with their cosines on the model's scale."""
    searched = _searched_windows(request)
    if searched is None or searched.embedded is None:
        return {}
    low, high = searched.embedded.info.cosine_range
    return {
        row.id: tuple(
            ScoredSpan(start, end, min(1.0, max(0.0, (cosine - low) / (high - low))))
            for start, end, cosine in zip(row.starts, row.ends, row.cosines, strict=True)
        )
        for row in rows
        if row.starts
    }
