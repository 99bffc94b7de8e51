"""The statements of one retrieval, on whatever connection they are given.

What to do when they fail is `retrieval.finding`; the SQL is `store.search`; how the lists become
one is `core.fusion`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import chain
from uuid import UUID

from rag_resources.core.configuration import Strategy
from rag_resources.core.errors import InvalidEmbeddingError, ModelMissingError
from rag_resources.core.fusion import fuse
from rag_resources.core.messages import Message
from rag_resources.core.types import ModelInfo, Ranking, Retriever, ScoredChunk, Vectors
from rag_resources.database.connection import LimitedConnection
from rag_resources.retrieval.embedding import QuestionVectors
from rag_resources.retrieval.limits import share
from rag_resources.retrieval.request import Request
from rag_resources.retrieval.stages import Stages
from rag_resources.store.passages import Passage, fetch_passages, fetch_result_vectors
from rag_resources.store.search import (
    EmbeddedQuery,
    ListRequest,
    SearchPlan,
    SearchScope,
    plan_search,
    search,
)

MAX_POOL = 500
"""Candidates per list beyond which no more distinct notes are looked for."""

# Of the time that is left, for the vectors that diversity wants: the results can do without.
_SHARE_VECTORS = 0.5


class Half(StrEnum):
    """The two searches, each of which can stand in for the other."""

    SEMANTIC = "semantic"
    FULLTEXT = "fulltext"

    def belongs_to(self, strategy: Strategy) -> bool:
        """Whether a strategy asks for it."""
        return strategy.uses_vectors if self is Half.SEMANTIC else strategy.uses_words


@dataclass(frozen=True, slots=True)
class Found:
    """What a question finds.

    Attributes:
        chunks: Fused, best first: as many as re-ranking, diversity and the results want.
        passages: Of those chunks, by chunk id; a chunk gone meanwhile has none.
        vectors: Of those chunks; None if nobody wants them, or they are not to be had.
        worked: The searches that answered.
        failures: Why others did not.
    """

    chunks: tuple[ScoredChunk, ...] = ()
    passages: Mapping[UUID, Passage] = field(default_factory=dict)
    vectors: Mapping[UUID, Vectors] | None = None
    worked: tuple[Half, ...] = ()
    failures: Mapping[Half, Exception] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Search:
    """One question, ready to be searched.

    Attributes:
        note_model: Model of the whole-note vectors, which find notes not yet chunked.
    """

    request: Request
    vectors: QuestionVectors
    stages: Stages
    note_model: str

    def dependency(self, half: Half) -> str:
        """Name what a half depends on, for its circuit breaker: other models may work."""
        config = self.request.config
        tables = f"{half}:{config.unit}"
        return f"{tables}:{config.model}" if half is Half.SEMANTIC else tables

    def rankings(
        self, connection: LimitedConnection, halves: Sequence[Half], *, beside: Sequence[Half] = ()
    ) -> list[Ranking]:
        """Fetch the lists of some halves; more of each while distinct notes are missing.

        Args:
            connection: In a snapshot.
            halves: Which lists to fetch.
            beside: Halves whose lists the caller has already.

        Raises:
            ProviderError: A model is missing or its vectors are of another dimension.
            DatabaseError: A search cannot be done, or not in time.
            psycopg.Error: A search cannot be done.
            Exception: What `QuestionVectors.of` raises.
        """
        scope = self._scope(searched=(*halves, *beside))
        with self.stages.run("plan"):
            plan = plan_search(
                connection, scope, models=sorted({self.request.config.model, self.note_model})
            )
            scope = scope.under(plan)
        lists = [item for half in halves for item in self._lists(half, plan)]
        pool = max(self.request.config.top_k.retrieval, self.request.top_k)
        while True:
            with self.stages.run("search"):
                rankings = search(connection, lists, scope, pool=pool)
            if self._enough(rankings, pool):
                return rankings
            pool = min(2 * pool, MAX_POOL)

    def fetch(
        self, connection: LimitedConnection, rankings: Sequence[Ranking], worked: Sequence[Half]
    ) -> Found:
        """Fuse the lists and fetch what the best of them say."""
        config = self.request.config
        with self.stages.run("fuse"):
            fused = fuse(rankings, config.fusion, tie_break=config.tie_break)
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
        whole = config.model if config.unit == "notes" else self.note_model
        until = share(self.request.deadline, _SHARE_VECTORS)
        try:
            with self.stages.run("diversity"), connection.within(until):
                return fetch_result_vectors(connection, config.model, pairs, note_model=whole)
        except Exception as error:
            if connection.closed:
                raise
            self.stages.degrade("diversity", error, component="vectors")
            return None

    def _scope(self, *, searched: Sequence[Half]) -> SearchScope:
        by_chunks = self.request.config.unit == "chunks"
        # Words alone search chunks whose vectors are still to be made.
        model = self.request.config.model if Half.SEMANTIC in searched else ""
        return SearchScope(
            tenant=self.request.tenant,
            filters=self.request.filters,
            chunk_model=model if by_chunks else "",
            unchunked_only=by_chunks,
        )

    def _lists(self, half: Half, plan: SearchPlan) -> Iterator[ListRequest]:
        by_chunks = self.request.config.unit == "chunks"
        notes = plan.any_unchunked or not by_chunks
        if half is Half.FULLTEXT:
            for retriever, wanted in (
                (Retriever.FULLTEXT, by_chunks),
                (Retriever.NOTES_FULLTEXT, notes),
            ):
                if wanted:
                    for number, text in enumerate(self.vectors.asked.queries):
                        yield ListRequest(retriever, text=text, question=number)
            return
        if by_chunks:
            yield from self._by_vectors(Retriever.SEMANTIC, self.request.config.model, plan)
            if self.request.config.contextual:
                yield from self._by_vectors(Retriever.CONTEXTUAL, self.request.config.model, plan)
            if notes:
                yield from self._beside_chunks(plan)
        else:
            yield from self._by_vectors(Retriever.NOTES_SEMANTIC, self.request.config.model, plan)

    def _beside_chunks(self, plan: SearchPlan) -> Sequence[ListRequest]:
        """The notes not yet chunked: without their model, words and chunks still find the rest."""
        if self.note_model not in plan.models:
            return ()
        try:
            return list(self._by_vectors(Retriever.NOTES_SEMANTIC, self.note_model, plan))
        except Exception as error:  # noqa: BLE001 -- whatever a model raises, the rest is found
            self.stages.degrade("embed", error, component=f"embedding:{self.note_model}")
            return ()

    def _by_vectors(
        self, retriever: Retriever, model: str, plan: SearchPlan
    ) -> Iterator[ListRequest]:
        info = plan.models.get(model)
        if info is None:
            raise ModelMissingError(Message.MODEL_NOT_INDEXED.format(model=model), model=model)
        vectors = self.vectors.of(model)
        if vectors.shape[1] != info.dimension:
            message = Message.EMBEDDING_DIMENSION.format(
                model=model, expected=info.dimension, found=vectors.shape[1]
            )
            raise InvalidEmbeddingError(message, model=model)
        for number, vector in enumerate(vectors):
            embedded = EmbeddedQuery(info, vector, self._threshold(info))
            yield ListRequest(retriever, embedded=embedded, question=number)

    def _threshold(self, info: ModelInfo) -> float:
        """The model's, unless the configuration names its own for its model."""
        config = self.request.config
        if info.name == config.model and config.similarity_threshold is not None:
            return config.similarity_threshold
        return info.similarity_threshold

    def _enough(self, rankings: Sequence[Ranking], pool: int) -> bool:
        """Whether there are distinct notes enough, or no more to be had."""
        found = {item.note_id for item in chain.from_iterable(r.candidates for r in rankings)}
        full = any(len(ranking.candidates) >= pool for ranking in rankings)
        return len(found) >= self.request.distinct_notes or not full or pool >= MAX_POOL
