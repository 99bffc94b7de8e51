"""The statements of one retrieval, on whatever connection they are given.

Which lists are fetched is each retriever's (`retrieval.retrievers`), the SQL is `store.search`, how
the lists become one is `core.fusion`. What to do when a statement fails is `retrieval.finding`.
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
"""Candidates per list beyond which no more distinct notes are looked for."""

# Of the time that is left, for the vectors that diversity wants: the results can do without.
_SHARE_VECTORS = 0.5


@dataclass(frozen=True, slots=True)
class Found:
    """What a question finds.

    Attributes:
        chunks: Fused, best first: as many as re-ranking, diversity and the results want.
        passages: Of those chunks, by chunk id; a chunk gone meanwhile has none.
        vectors: Of those chunks; None if nobody wants them, or they are not to be had.
        worked: The retrievers that answered.
        failures: Why others did not.
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
        """Name what a retriever depends on, for its circuit breaker."""
        return RETRIEVERS[name].dependency(self.request.config)

    def embed(self, name: RetrieverName, *, insist: bool) -> None:
        """Make the vectors of the question that a retriever cannot do without.

        Args:
            name: Of the retriever.
            insist: Whether to call a model that its breaker keeps out.

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
        """Fetch the lists of some retrievers; more of each while distinct notes are missing.

        Args:
            connection: In a snapshot.
            names: Of the retrievers.
            beside: Retrievers whose lists the caller has already.

        Raises:
            ProviderError: A model is missing or its vectors are of another dimension.
            DatabaseError: A search cannot be done, or not in time.
            psycopg.Error: A search cannot be done.
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
        """Fuse the lists and fetch what the best of them say."""
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
        # A chunk may be gone if the lists were fetched in another snapshot.
        kept = tuple(chunk for chunk in best if chunk.chunk_id in passages)
        return Found(kept, passages, vectors, tuple(worked))

    def _result_vectors(
        self, connection: LimitedConnection, pairs: Sequence[tuple[UUID, UUID]]
    ) -> Mapping[UUID, Vectors] | None:
        """The last statement of a snapshot: one that fails ends its transaction."""
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
        # Words alone search chunks whose vectors are still to be made.
        models = [model for name in searched for model in RETRIEVERS[name].models(config)]
        return SearchScope(
            tenant=self.request.tenant,
            filters=self.request.filters,
            chunk_model=models[0] if models and by_chunks else "",
            unchunked_only=by_chunks,
        )

    def _enough(self, rankings: Sequence[Ranking], pool: int) -> bool:
        """Whether there are distinct notes enough, or no more to be had."""
        found = {item.note_id for item in chain.from_iterable(r.candidates for r in rankings)}
        full = any(len(ranking.candidates) >= pool for ranking in rankings)
        return len(found) >= self.request.distinct_notes or not full or pool >= MAX_POOL
