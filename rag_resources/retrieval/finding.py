"""Finds the candidates of a question: by all retrievers in one statement, or without a failed one.

The statement is in `store.search`. What else a retrieval does is in `retrieval.pipeline`.
"""

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

import psycopg

from rag_resources.core.configuration import RetrievalConfig
from rag_resources.core.deadline import Deadline
from rag_resources.core.errors import (
    DatabaseTimeoutError,
    DatabaseUnavailableError,
    DependencyOpenError,
    InvalidEmbeddingError,
    ModelMissingError,
)
from rag_resources.core.query import Intent
from rag_resources.core.retrievers import KINDS, RETRIEVER_OF, RankedList, RetrieverName, VectorKind
from rag_resources.core.types import ScoredChunk, Windows
from rag_resources.database.connection import LimitedConnection
from rag_resources.database.readers import Reads
from rag_resources.languages.messages import _
from rag_resources.resilience.breakers import Breakers, CircuitBreaker
from rag_resources.resilience.deadlines import FAIR_MS, blames, share
from rag_resources.resilience.retry import retried
from rag_resources.retrieval.embedding import QuestionVectors
from rag_resources.retrieval.request import SEEDS, Request
from rag_resources.retrieval.stages import Stages
from rag_resources.store.graph_search import graph_candidates
from rag_resources.store.index_state import IndexVersion
from rag_resources.store.passages import Passage
from rag_resources.store.search import (
    EmbeddedQuery,
    SearchedList,
    SearchFacts,
    SearchOutcome,
    SearchRequest,
    read_facts,
    search,
)

# Shares of the time left: for all retrievers together before each is tried alone, and for each one
# tried alone, so that some time always remains for the others.
_SHARE_TOGETHER = 0.4
_SHARE_ALONE = 0.45
# Share of the time left for the graph; the results of the others are already there.
_SHARE_GRAPH = 0.5
_FACTS_S = 10.0
"""How long what is known of a tenant is used; if a search fails under it, it is read again."""
# SQLSTATE classes that mean the connection is lost or about to be: 08 connection exception, 57
# operator intervention (PostgreSQL documentation, appendix A).
_CONNECTION_CLASSES = ("08", "57")


@dataclass(frozen=True, slots=True)
class Question:
    """One question, ready for the search; `intent` is the kind of answer that it asks for."""

    request: Request
    vectors: QuestionVectors
    stages: Stages
    intent: Intent = Intent.ABSTRACT


@dataclass(frozen=True, slots=True)
class Found:
    """The candidates found for a question.

    Attributes:
        chunks: Fused, best first; as many as re-ranking, diversity and the results need.
        passages: Their passages, by chunk id.
        windows: The windows of the chunks, by chunk id.
        version: Version of the searched index; None if the answer is not cached.
        worked: The retrievers that answered.
        failures: Why the others failed.
    """

    chunks: tuple[ScoredChunk, ...] = ()
    passages: Mapping[UUID, Passage] = field(default_factory=dict)
    windows: Mapping[UUID, Windows] = field(default_factory=dict)
    version: IndexVersion | None = None
    worked: tuple[RetrieverName, ...] = ()
    failures: Mapping[RetrieverName, Exception] = field(default_factory=dict)


def models_of(name: RetrieverName, config: RetrievalConfig) -> tuple[str, ...]:
    """Return the models that must embed the question for a retriever."""
    return (config.model,) if KINDS[name].searches_by == "vectors" else ()


def dependency_of(name: RetrieverName, config: RetrievalConfig) -> str:
    """Return the name of a retriever's dependency, for its circuit breaker."""
    return ":".join((name, config.unit, *models_of(name, config)))


class Finder:
    """Finds candidates in one database.

    Args:
        database: Open.
        breakers: Skip a retriever that has failed too often, and all of them while the database is
            down.
    """

    def __init__(self, database: Reads, breakers: Breakers) -> None:
        self._database = database
        self._breakers = breakers
        self._known: dict[str, tuple[float, SearchFacts]] = {}

    def find(self, question: Question, names: Sequence[RetrieverName]) -> Found:
        """Search with the given retrievers; each one that fails is replaced by its stand-ins.

        Raises:
            DatabaseUnavailableError: The database does not answer, even after retries.
            DependencyOpenError: The database has failed too often recently.
        """
        deadline = question.request.deadline
        # Opening a connection takes time, too.
        fair = deadline.remaining_ms >= FAIR_MS
        direct = [name for name in names if name is not RetrieverName.GRAPH]
        with self._breakers["database"].guard(lambda error: fair and _is_lost(error)):
            found = retried(lambda: self._find(question, direct), deadline=deadline)
            return self._with_graph(question, found) if direct != list(names) else found

    def _find(self, question: Question, names: Sequence[RetrieverName]) -> Found:
        """Search with all retrievers together; if that fails, find out which one fails."""
        breakers = [self._breaker(question, name) for name in names]
        if all(breaker.is_closed for breaker in breakers):
            until = share(question.request.deadline, _SHARE_TOGETHER)
            try:
                outcome = self._search(question, names, until, versioned=question.request.cached)
            except Exception as error:
                if _is_lost(error):
                    raise
            else:
                for breaker in breakers:
                    breaker.succeeded()
                return _found(outcome, names)
        return self._apart(question, names)

    def _apart(self, question: Question, names: Sequence[RetrieverName]) -> Found:
        """Try each retriever alone, then the stand-ins of those that fail; search with the rest.

        What is found so has no version, and so is not cached.
        """
        worked: dict[RetrieverName, SearchOutcome] = {}
        failures: dict[RetrieverName, Exception] = {}
        waiting = list(names)
        while waiting:
            self._try(question, waiting, worked, failures)
            waiting = _stand_ins(worked, failures)
        if not worked:
            # An open breaker skips a dependency while others can serve; nothing else can serve now.
            refused = [own for own, why in failures.items() if isinstance(why, DependencyOpenError)]
            self._try(question, refused, worked, failures, insist=True)
        if not worked:
            return Found(failures=failures)
        able = tuple(worked)
        if len(able) == 1:
            return _found(worked[able[0]], able, failures)
        try:
            outcome = self._search(question, able, question.request.deadline)
        except Exception as error:
            if _is_lost(error):
                raise
            question.stages.degrade("fuse", error, component="database")
            outcome = next(own for own in worked.values() if own.chunks or own is worked[able[-1]])
        return _found(outcome, able, failures)

    def _try(
        self,
        question: Question,
        names: Sequence[RetrieverName],
        worked: dict[RetrieverName, SearchOutcome],
        failures: dict[RetrieverName, Exception],
        *,
        insist: bool = False,
    ) -> None:
        for name in names:
            try:
                # Embed first: a failing model is not a failing search, and needs no connection.
                for model in models_of(name, question.request.config):
                    question.vectors.of(model, insist=insist)
                until = share(question.request.deadline, _SHARE_ALONE)
                with self._breaker(question, name).guard(blames(until), insist=insist):
                    worked[name] = self._search(question, [name], until)
                failures.pop(name, None)
            except Exception as error:
                if _is_lost(error):
                    raise
                failures[name] = error

    def _with_graph(self, question: Question, found: Found) -> Found:
        """Search again with what the graph links to the best; if that fails, return the best."""
        name = RetrieverName.GRAPH
        request = question.request
        until = share(request.deadline, _SHARE_GRAPH)
        try:
            with (
                self._breaker(question, name).guard(blames(until)),
                question.stages.run(name.value),
                self._database.snapshot(until) as connection,
            ):
                given = graph_candidates(
                    connection,
                    request.query,
                    request.config.graph,
                    seeds=tuple(chunk.chunk_id for chunk in found.chunks[:SEEDS]),
                    intent=question.intent,
                    tenant=request.tenant,
                    filters=request.filters,
                    pool=request.pool,
                )
                if given is None:
                    return found
                worked = (*found.worked, name)
                if not given.given:
                    return replace(found, worked=worked)
                outcome = self._run(connection, question, found.worked, given)
        except Exception as error:  # noqa: BLE001 -- what the others found is there, whatever it is
            return replace(found, failures={**found.failures, name: error})
        return replace(_found(outcome, worked, found.failures), version=found.version)

    def _search(
        self,
        question: Question,
        names: Sequence[RetrieverName],
        until: Deadline,
        *,
        versioned: bool = False,
    ) -> SearchOutcome:
        """Run the statement; if old facts fail or were wrong, once more under new ones."""
        tenant, filters = question.request.tenant, question.request.filters
        fresh = self._facts_of(tenant) is None
        lend = self._database.autocommit if filters.is_empty else self._database.snapshot
        while True:
            try:
                with lend(until) as connection, question.stages.run("search"):
                    outcome = self._run(connection, question, names, versioned=versioned)
                facts = self._facts_of(tenant)
                if fresh or (facts and outcome.models_state == facts.models_state):
                    return outcome
            except Exception as error:
                if fresh or isinstance(error, DatabaseTimeoutError) or _is_lost(error):
                    raise
            self._known.pop(tenant, None)
            fresh = True

    def _run(
        self,
        connection: LimitedConnection,
        question: Question,
        names: Sequence[RetrieverName],
        given: SearchedList | None = None,
        *,
        versioned: bool = False,
    ) -> SearchOutcome:
        request = question.request
        config = request.config
        facts = self._facts_of(request.tenant)
        if facts is None:
            facts = read_facts(connection, request.tenant)
            self._known[request.tenant] = (time.monotonic(), facts)
        lists = [item for name in names for item in _lists(question, name, facts)]
        searched = SearchRequest(
            tenant=request.tenant,
            filters=request.filters,
            texts=question.vectors.asked.queries if RetrieverName.FULLTEXT in names else (),
            lists=_weighted([*lists, given] if given else lists, config),
            by_notes=bool(lists) and all(item.name is RankedList.NOTES for item in lists),
            fusion=config.fusion,
            pool=request.pool,
            shown=request.shown,
            versioned=versioned,
        )
        return search(connection, searched, facts)

    def _facts_of(self, tenant: str) -> SearchFacts | None:
        read_at, facts = self._known.get(tenant, (0.0, None))
        return facts if time.monotonic() - read_at < _FACTS_S else None

    def _breaker(self, question: Question, name: RetrieverName) -> CircuitBreaker:
        return self._breakers[dependency_of(name, question.request.config)]


def _lists(question: Question, name: RetrieverName, facts: SearchFacts) -> Iterator[SearchedList]:
    """Yield the lists of a retriever, one for each text of the question.

    Raises:
        ModelMissingError: Nothing is indexed with the configuration's model.
        InvalidEmbeddingError: Its vectors are of another dimension now.
        Exception: What `QuestionVectors.of` raises.
    """
    config = question.request.config
    if name is RetrieverName.FULLTEXT:
        for number in range(len(question.vectors.asked.queries)):
            yield SearchedList(RankedList.FULLTEXT, question=number)
        return
    model = config.model
    info = facts.models.get(model)
    if info is None:
        raise ModelMissingError(
            _(
                "Nothing is indexed with the model “{model}”, or it was retired. Materialize the "
                "asset embeddings/{model} (if it does not exist, first add the model to "
                "EMBEDDING_MODELS and restart) or choose another configuration."
            ).format(model=model),
            model=model,
        )
    if name is RetrieverName.WINDOWS and VectorKind.WINDOW not in facts.kinds[model]:
        raise ModelMissingError(
            _(
                "The model “{model}” does not have windows yet: “rag run” makes them, or "
                "materialize embeddings/{model} in the UI."
            ).format(model=model),
            model=model,
        )
    vectors = question.vectors.of(model)
    if vectors.shape[1] != info.dimension:
        message = _(
            "The model “{model}” gives vectors of {found} components, and the stored ones have "
            "{expected}."
        ).format(model=model, expected=info.dimension, found=vectors.shape[1])
        raise InvalidEmbeddingError(message, model=model)
    threshold = config.similarity_threshold
    for ranked in _by_vectors(name, config):
        for number, vector in enumerate(vectors):
            embedded = EmbeddedQuery(
                info, vector, info.similarity_threshold if threshold is None else threshold
            )
            yield SearchedList(ranked, question=number, embedded=embedded)


def _by_vectors(name: RetrieverName, config: RetrievalConfig) -> tuple[RankedList, ...]:
    if config.unit == "notes":
        return (RankedList.NOTES,)
    if name is RetrieverName.WINDOWS:
        return (RankedList.WINDOWS,)
    both = (RankedList.SEMANTIC, RankedList.CONTEXTUAL)
    return both if config.contextual else both[:1]


def _weighted(lists: Sequence[SearchedList], config: RetrievalConfig) -> tuple[SearchedList, ...]:
    """Return the lists with their weights, and whether each brings candidates.

    The lists of a retriever share its weight equally, so neither a second vector of a chunk nor a
    sub-question makes it count twice. One that should only score brings candidates all the same if
    no other list of vectors does.
    """
    sizes = Counter(RETRIEVER_OF[item.name] for item in lists)
    silent = {item.name for item in lists if RETRIEVER_OF[item.name] in config.only_scoring}
    if not any(item.embedded and item.name not in silent for item in lists):
        silent = set()

    def weight(item: SearchedList) -> float:
        name = RETRIEVER_OF[item.name]
        own = config.weighted.get(name)
        return (own.weight if own else 0.5) / sizes[name]

    weights = [weight(item) for item in lists]
    if not any(weights):
        weights = [1 / len(lists)] * len(lists)
    return tuple(
        replace(item, weight=own, finds=item.name not in silent)
        for item, own in zip(lists, weights, strict=True)
    )


def _found(
    outcome: SearchOutcome,
    worked: Sequence[RetrieverName],
    failures: Mapping[RetrieverName, Exception] | None = None,
) -> Found:
    return Found(
        outcome.chunks,
        outcome.passages,
        outcome.windows,
        outcome.version,
        tuple(worked),
        failures or {},
    )


def _stand_ins(
    worked: Mapping[RetrieverName, SearchOutcome], failures: Mapping[RetrieverName, Exception]
) -> list[RetrieverName]:
    """Return the stand-ins of the retrievers that failed.

    A failed retriever adds none once one of its stand-ins has answered.
    """
    tried = worked.keys() | failures.keys()
    wanted = {
        stand_in: None
        for name in failures
        if not worked.keys() & set(KINDS[name].stand_ins)
        for stand_in in KINDS[name].stand_ins
        if stand_in not in tried
    }
    return list(wanted)


def _is_lost(error: Exception) -> bool:
    """Whether the connection was lost and its queries need retrying.

    It was not if the server answered with an error about this one statement: a lock, too little
    memory, an unreadable file.
    """
    if not isinstance(error, DatabaseUnavailableError):
        return False
    cause = error.__cause__
    state = cause.sqlstate if isinstance(cause, psycopg.Error) else None
    return state is None or state.startswith(_CONNECTION_CLASSES)
