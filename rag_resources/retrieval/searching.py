"""The statements of one retrieval, run on the connection that the caller passes in.

Each retriever decides which lists it fetches (`retrieval.retrievers`). The SQL is in `store.search`
and the fusion in `core.fusion`. What happens when a statement fails is in `retrieval.finding`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from rag_resources.core.fusion import fuse, narrow, on_scale
from rag_resources.core.fusion_config import Feature
from rag_resources.core.learned_fusion import Features, candidate_features
from rag_resources.core.recency import weigh_recency
from rag_resources.core.retrievers import DOCUMENTS_OF, Documents, RankedList, RetrieverName
from rag_resources.core.text import Span
from rag_resources.core.types import ModelInfo, Ranking, ScoredChunk, Vectors
from rag_resources.database.connection import LimitedConnection
from rag_resources.retrieval.limits import share
from rag_resources.retrieval.retrievers import RETRIEVERS
from rag_resources.retrieval.retrievers.protocol import Question
from rag_resources.store.candidate_scores import look_up_scores, look_up_words, match_windows
from rag_resources.store.models import require_model
from rag_resources.store.passages import Passage, fetch_passages, fetch_result_vectors
from rag_resources.store.ranked_lists import ListRequest
from rag_resources.store.search import SearchScope, plan_search, search

# Share of the time left for the vectors of diversity; the results can do without them.
_SHARE_VECTORS = 0.5


@dataclass(frozen=True, slots=True)
class LookedUp:
    """What was looked up of all candidates of some lists; see `fuse`."""

    rankings: Sequence[Ranking] = ()
    scores: Sequence[Mapping[UUID, float]] | None = None
    words: Mapping[UUID, Features] | None = None

    def features(self) -> dict[tuple[UUID, UUID], dict[Feature, float]]:
        """Return what a learned fusion knows, by chunk id and note id."""
        used = narrow(self.rankings)
        notes = {item.chunk_id: item.note_id for ranking in used for item in ranking.candidates}
        known = candidate_features(used, self.scores or [], self.words or {})
        return {(chunk_id, notes[chunk_id]): own for chunk_id, own in known.items()}


@dataclass(frozen=True, slots=True)
class Found:
    """The candidates found for a question.

    Attributes:
        chunks: Fused, best first; as many as re-ranking, diversity and the results need.
        passages: Of those chunks, by chunk id; a chunk deleted meanwhile has none.
        matched: The sentences that matched best, as a span of the chunk, by chunk id.
        vectors: Of those chunks; None if nothing needs them or they cannot be fetched.
        cosine_range: That of the model of those vectors, as in `ModelInfo`.
        worked: The retrievers that answered.
        failures: Why the others failed.
        looked_up: What the fusion combined.
    """

    chunks: tuple[ScoredChunk, ...] = ()
    passages: Mapping[UUID, Passage] = field(default_factory=dict)
    matched: Mapping[UUID, Span] = field(default_factory=dict)
    vectors: Mapping[UUID, Vectors] | None = None
    cosine_range: tuple[float, float] = ModelInfo.cosine_range
    worked: tuple[RetrieverName, ...] = ()
    failures: Mapping[RetrieverName, Exception] = field(default_factory=dict)
    looked_up: LookedUp = LookedUp()


class Search:
    """The statements of one question."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self._requested: dict[tuple[RankedList, int], ListRequest] = {}
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
        """Fetch the lists of some retrievers.

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
        self._requested |= {(item.name, item.question): item for item in lists}
        pool = max(self.request.config.top_k.retrieval, self.request.top_k)
        with self.stages.run("search"):
            return search(connection, lists, scope, pool=pool)

    def fetch(
        self,
        connection: LimitedConnection,
        rankings: Sequence[Ranking],
        worked: Sequence[RetrieverName],
    ) -> Found:
        """Fuse the lists and fetch the passages of the best chunks."""
        config = self.request.config
        looked_up = LookedUp()
        if config.fusion.looks_up_scores:
            with self.stages.run("scores"):
                looked_up = self._look_up(connection, rankings)
        with self.stages.run("fuse"):
            fused = fuse(
                rankings,
                config.fusion,
                config.retrievers,
                scores=looked_up.scores,
                words=looked_up.words,
                tie_break=config.tie_break,
            )
            fused = weigh_recency(fused, config.recency, tie_break=config.tie_break)
            reordered = config.reranks or config.diversity_weight > 0
            considered = config.top_k.reranking if reordered else 0
            best = tuple(fused[: max(considered, self.request.count_needed(fused))])
        pairs = [(chunk.chunk_id, chunk.note_id) for chunk in best]
        with self.stages.run("fetch"):
            passages = fetch_passages(connection, pairs)
            matched = self._matched(connection, best) if RetrieverName.WINDOWS in worked else {}
        # A chunk may be gone if the lists come from an earlier snapshot.
        kept = tuple(chunk for chunk in best if chunk.chunk_id in passages)
        found = Found(kept, passages, matched, worked=tuple(worked), looked_up=looked_up)
        return (
            self._with_vectors(connection, found, pairs) if config.diversity_weight > 0 else found
        )

    def _look_up(self, connection: LimitedConnection, rankings: Sequence[Ranking]) -> LookedUp:
        """Look up what every candidate scores in every list, on its scale, and its words."""
        found: dict[Documents, dict[UUID, None]] = {"chunks": {}, "notes": {}}
        for ranking in rankings:
            found[DOCUMENTS_OF[ranking.name]].update(
                dict.fromkeys(candidate.chunk_id for candidate in ranking.candidates)
            )
        candidates = {kind: list(ids) for kind, ids in found.items()}
        lists = [self._requested[ranking.name, ranking.question] for ranking in rankings]
        scores = [
            {key: on_scale(score, *_scale(item)) for key, score in own.items()}
            for item, own in zip(lists, look_up_scores(connection, lists, candidates), strict=True)
        ]
        words = self._words(connection, candidates) if self.request.config.fusion.model else None
        return LookedUp(rankings, scores, words)

    def _words(
        self, connection: LimitedConnection, candidates: Mapping[Documents, Sequence[UUID]]
    ) -> Mapping[UUID, Features]:
        """Compare the words of the candidates; a learned fusion can do without, if that fails."""
        try:
            with connection.transaction():
                return look_up_words(connection, self.request.query, candidates)
        except Exception as error:
            if connection.closed:
                raise
            self.stages.degrade("words", error, component="fulltext")
            return {}

    def _matched(
        self, connection: LimitedConnection, chunks: Sequence[ScoredChunk]
    ) -> Mapping[UUID, Span]:
        """Find the sentences of chunks that match the question best, if windows were searched."""
        request = self._requested.get((RankedList.WINDOWS, 0))  # None for whole notes.
        if request is None or request.embedded is None or not chunks:
            return {}
        return match_windows(connection, request.embedded, [chunk.chunk_id for chunk in chunks])

    def _with_vectors(
        self, connection: LimitedConnection, found: Found, pairs: Sequence[tuple[UUID, UUID]]
    ) -> Found:
        """Add the vectors of results; must come last, as a failure ends the transaction."""
        config = self.request.config
        whole = config.model if config.unit == "notes" else self._question.note_model
        until = share(self.request.deadline, _SHARE_VECTORS)
        try:
            with self.stages.run("diversity"), connection.within(until):
                info = require_model(connection, config.model)
                vectors = fetch_result_vectors(connection, config.model, pairs, note_model=whole)
                return replace(found, vectors=vectors, cosine_range=info.cosine_range)
        except Exception as error:
            if connection.closed:
                raise
            self.stages.degrade("diversity", error, component="vectors")
            return found

    def _scope(self, *, searched: Sequence[RetrieverName]) -> SearchScope:
        config = self.request.config
        by_chunks = config.unit == "chunks"
        return SearchScope(
            tenant=self.request.tenant,
            filters=self.request.filters,
            # Words alone search chunks whose vectors are still to be made.
            chunk_model=config.model if RetrieverName.SEMANTIC in searched and by_chunks else "",
            window_model=config.model if RetrieverName.WINDOWS in searched and by_chunks else "",
            unchunked_only=by_chunks,
        )


def _scale(item: ListRequest) -> tuple[float, float]:
    """The range that a list's scores are mapped from: the model's, or that of BM25 by its bound."""
    return item.embedded.info.cosine_range if item.embedded else (0.0, 1.0)
