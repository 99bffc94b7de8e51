"""The statements of one retrieval, run on the connection that the caller passes in.

Each retriever decides which lists it fetches (`retrieval.retrievers`). The SQL is in `store.search`
and the fusion in `core.fusion`. What happens when a statement fails is in `retrieval.finding`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from uuid import UUID

from rag_resources.core.fusion import fuse
from rag_resources.core.retrievers import RetrieverName
from rag_resources.core.types import Ranking, ScoredChunk, Vectors
from rag_resources.database.connection import LimitedConnection
from rag_resources.retrieval.limits import share
from rag_resources.retrieval.retrievers import RETRIEVERS
from rag_resources.retrieval.retrievers.protocol import Question
from rag_resources.store.passages import Passage, fetch_passages, fetch_result_vectors
from rag_resources.store.search import SearchScope, plan_search, search

MAX_POOL = 500
"""Most candidates per list; no more are fetched to find further distinct notes."""

# Share of the time left for the vectors of diversity; the results can do without them.
_SHARE_VECTORS = 0.5


@dataclass(frozen=True, slots=True)
class Found:
    """The candidates found for a question.

    Attributes:
        chunks: Fused, best first; as many as re-ranking, diversity and the results need.
        passages: Of those chunks, by chunk id; a chunk deleted meanwhile has none.
        vectors: Of those chunks; None if nothing needs them or they cannot be fetched.
        worked: The retrievers that answered.
        failures: Why the others failed.
    """

    chunks: tuple[ScoredChunk, ...] = ()
    passages: Mapping[UUID, Passage] = field(default_factory=dict)
    vectors: Mapping[UUID, Vectors] | None = None
    worked: tuple[RetrieverName, ...] = ()
    failures: Mapping[RetrieverName, Exception] = field(default_factory=dict)


class Search:
    """The statements of one question."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self.request = question.request
        self.stages = question.stages

    def dependency(self, name: RetrieverName) -> str:
        """Return the name of the retriever's dependency, for its circuit breaker."""
        return RETRIEVERS[name].dependency(self.request.config)

    def embed(self, name: RetrieverName, *, insist: bool) -> None:
        """Embed the question with every model that the retriever requires.

        Args:
            name: Of the retriever.
            insist: Whether to call a model although its circuit breaker is open.

        Raises:
            Exception: What `QuestionVectors.of` raises.
        """
        for model in RETRIEVERS[name].models(self.request.config):
            self._question.vectors.of(model, insist=insist)

    def rankings(
        self,
        connection: LimitedConnection,
        names: Sequence[RetrieverName],
        *,
        beside: Sequence[RetrieverName] = (),
    ) -> list[Ranking]:
        """Fetch the lists of some retrievers, longer ones if too few distinct notes are found.

        Args:
            connection: In a snapshot.
            names: Of the retrievers.
            beside: Retrievers whose lists the caller already has.

        Raises:
            ProviderError: A model is missing, or its vectors have another dimension.
            DatabaseError: A search fails or is too late.
            psycopg.Error: A search fails.
            Exception: What `QuestionVectors.of` raises.
        """
        scope = self._scope(searched=(*names, *beside))
        with self.stages.run("plan"):
            plan = plan_search(
                connection,
                scope,
                models=sorted({self.request.config.model, self._question.note_model}),
            )
            scope = scope.under(plan)
        lists = [item for name in names for item in RETRIEVERS[name].lists(self._question, plan)]
        pool = max(self.request.config.top_k.retrieval, self.request.top_k)
        while True:
            with self.stages.run("search"):
                rankings = search(connection, lists, scope, pool=pool)
            if self._enough(rankings, pool):
                return rankings
            pool = min(2 * pool, MAX_POOL)

    def fetch(
        self,
        connection: LimitedConnection,
        rankings: Sequence[Ranking],
        worked: Sequence[RetrieverName],
    ) -> Found:
        """Fuse the lists and fetch the passages of the best chunks."""
        config = self.request.config
        with self.stages.run("fuse"):
            fused = fuse(rankings, config.fusion, config.retrievers, tie_break=config.tie_break)
            reordered = config.reranks or config.diversity_weight > 0
            considered = config.top_k.reranking if reordered else 0
            best = tuple(fused[: max(considered, self.request.count_needed(fused))])
        pairs = [(chunk.chunk_id, chunk.note_id) for chunk in best]
        with self.stages.run("fetch"):
            passages = fetch_passages(connection, pairs)
        vectors = self._result_vectors(connection, pairs) if config.diversity_weight > 0 else None
        # A chunk may be gone if the lists come from an earlier snapshot.
        kept = tuple(chunk for chunk in best if chunk.chunk_id in passages)
        return Found(kept, passages, vectors, tuple(worked))

    def _result_vectors(
        self, connection: LimitedConnection, pairs: Sequence[tuple[UUID, UUID]]
    ) -> Mapping[UUID, Vectors] | None:
        """Fetch the vectors of results; must come last, as a failure ends the transaction."""
        config = self.request.config
        whole = config.model if config.unit == "notes" else self._question.note_model
        until = share(self.request.deadline, _SHARE_VECTORS)
        try:
            with self.stages.run("diversity"), connection.within(until):
                return fetch_result_vectors(connection, config.model, pairs, note_model=whole)
        except Exception as error:
            if connection.closed:
                raise
            self.stages.degrade("diversity", error, component="vectors")
            return None

    def _scope(self, *, searched: Sequence[RetrieverName]) -> SearchScope:
        config = self.request.config
        by_chunks = config.unit == "chunks"
        # Full-text search also finds chunks that have no vectors yet.
        models = [model for name in searched for model in RETRIEVERS[name].models(config)]
        return SearchScope(
            tenant=self.request.tenant,
            filters=self.request.filters,
            chunk_model=models[0] if models and by_chunks else "",
            unchunked_only=by_chunks,
        )

    def _enough(self, rankings: Sequence[Ranking], pool: int) -> bool:
        """Whether enough distinct notes were found, or no more exist."""
        found = {item.note_id for item in chain.from_iterable(r.candidates for r in rankings)}
        full = any(len(ranking.candidates) >= pool for ranking in rankings)
        return len(found) >= self.request.distinct_notes or not full or pool >= MAX_POOL
