"""The retrieval pipeline: the order of its stages, and how it continues when one fails.

What a stage computes is in `core`, its queries are in `store` and its models in `providers`. The
other modules of this package are the stages, and the messages for the user (`notices`).
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from uuid import UUID

import structlog

from rag_resources.core.configuration import RetrievalConfig, ScoreConfig
from rag_resources.core.deadline import Deadline
from rag_resources.core.diversity import maximal_marginal_relevance
from rag_resources.core.errors import (
    DatabaseUnavailableError,
    DeadlineExceededError,
    DependencyOpenError,
    InvalidParameterError,
    ModelMissingError,
    ProviderError,
)
from rag_resources.core.filters import RetrievalFilters
from rag_resources.core.model_names import EMBEDDED_MODELS
from rag_resources.core.query import Intent, TransformedQuery
from rag_resources.core.reranking import rerank
from rag_resources.core.retrievers import KINDS, RetrieverName
from rag_resources.core.sentences import sentences as cut_sentences
from rag_resources.core.text import Span
from rag_resources.core.types import RetrievalResponse, RetrievalResult, ScoredChunk
from rag_resources.database.readers import Reads
from rag_resources.languages.messages import _
from rag_resources.prompts import prompts_version
from rag_resources.providers.cached_embedder import CachedEmbedder
from rag_resources.providers.protocols import Embedder, LanguageModel, Reranker
from rag_resources.resilience.breakers import Breakers, CircuitBreaker
from rag_resources.resilience.deadlines import blames, call_within, deadline_scope, share
from rag_resources.retrieval.cache import Caches
from rag_resources.retrieval.embedding import Asked, QuestionVectors
from rag_resources.retrieval.expansion import expanded_windows, results
from rag_resources.retrieval.finding import Finder, Found, Question, dependency_of, models_of
from rag_resources.retrieval.notices import messages
from rag_resources.retrieval.request import Request, check_query, check_top_k, searchable
from rag_resources.retrieval.rerankers import build_reranker
from rag_resources.retrieval.response_cache import AnswerCache
from rag_resources.retrieval.second_model import KeepVectors, score_again
from rag_resources.retrieval.stages import Stages
from rag_resources.retrieval.transform import QueryTransformer
from rag_resources.store.index_state import IndexVersion
from rag_resources.store.models import require_model
from rag_resources.store.passages import fetch_result_vectors

DEADLINE_MS = 2_000.0
"""Default deadline of a whole retrieval."""
WARM_UP_MS = 30_000.0
"""Longest wait for a model to be loaded before the first retrieval."""

# Share of the time left that a language model may use; the question can be searched without it.
_SHARE_TRANSFORM = 0.3
# Share of the time left for the vectors of diversity; the results can do without them.
_SHARE_VECTORS = 0.5
# Time reserved for the stages after re-ranking.
_AFTER_RERANKING_MS = 50.0
# Breaker reset for dependencies that are cheap to try and may recover within a second: the database
# after a restart, and an in-process model once the processor is free again.
_SHORT_RESET_S = 2.0
_SHORTLY_BACK = {"database", *(f"embedding:{name}" for name in EMBEDDED_MODELS)}

_log = structlog.get_logger()


def _breaker(name: str) -> CircuitBreaker:
    if name in _SHORTLY_BACK:
        return CircuitBreaker(name, reset_s=_SHORT_RESET_S)
    return CircuitBreaker(name)


class RetrievalPipeline:
    """Answers questions over notes; thread-safe.

    Args:
        database: Open.
        embedder: Returns the embedder of a model, by name.
        tenant: Whose notes to search, unless a retrieval names another tenant.
        language_model: For hypothetical answers, refined intents and the re-ranker `llm`.
        reranker: Builds the re-ranker of a configuration; None uses those of `rerankers`.
        caches: None caches nothing.
        keep_vectors: Stores the vectors that a second model makes; None keeps none.
        breakers: One for each dependency of a retrieval; None creates new ones.
    """

    def __init__(
        self,
        database: Reads,
        *,
        embedder: Callable[[str], Embedder],
        tenant: str,
        language_model: LanguageModel | None = None,
        reranker: Callable[[RetrievalConfig, Embedder], Reranker] | None = None,
        caches: Caches | None = None,
        keep_vectors: KeepVectors | None = None,
        breakers: Breakers | None = None,
    ) -> None:
        self._tenant = tenant
        self._language_model = language_model
        self._embedder = embedder
        self._reranker = reranker or self._built_reranker
        self._breakers = breakers or Breakers(_breaker)
        self._cached_embedders: dict[str, Embedder] = {}
        self._warm: set[str] = set()
        self._tried: set[str] = set()
        models = {
            "language": f"{language_model.name} {prompts_version()}" if language_model else "",
        }
        self._database = database
        self._answers = AnswerCache(database, caches.answers, models) if caches else None
        self._transformer = QueryTransformer(language_model, now=lambda: datetime.now(UTC))
        self._finder = Finder(database, self._breakers)
        self._caches = caches
        self._keep_vectors = keep_vectors or (lambda _model, _texts, _vectors: None)

    def retrieve(
        self,
        query: str,
        config: RetrievalConfig,
        *,
        top_k: int | None = None,
        distinct_notes: int = 0,
        filters: RetrievalFilters | None = None,
        tenant: str | None = None,
        deadline_ms: float = DEADLINE_MS,
        cached: bool = True,
        language: str = "es",
    ) -> RetrievalResponse:
        """Find the passages that answer a question, as many as the working parts can find.

        Args:
            query: Not blank, at most `MAX_QUERY_CHARS` characters.
            config: How to search.
            top_k: How many results; None takes the configuration's.
            distinct_notes: For evaluations: return further results too, as many as it takes to
                cover this many distinct notes, within the depth that the configuration searches.
                The first `top_k` are those that a user gets.
            filters: Conditions the notes must meet.
            tenant: Whose notes to search; None uses the pipeline's.
            deadline_ms: What is not done by then is left out and named in `degraded`.
            cached: Whether caches may be used. Evaluations measure without them.
            language: Of the question, for the rules and prompts that read it.

        Returns:
            Results, best first by non-increasing score. With an `error` nothing could be searched.

        Raises:
            InvalidInputError: The question, the number of results or the model cannot be used.

        Properties: 3, 4, 5, 35, 36, 39, 43, 44.
        """
        top_k = config.top_k.final if top_k is None else top_k
        check_query(query)
        check_top_k(top_k)
        request = Request(
            query=searchable(query),
            config=config,
            tenant=self._tenant if tenant is None else tenant,
            filters=filters or RetrievalFilters(),
            top_k=top_k,
            distinct_notes=distinct_notes,
            deadline=Deadline.after(deadline_ms, time.monotonic),
            cached=cached and self._caches is not None,
            language=language,
        )
        stages = Stages(config_hash=lambda: config.config_hash, query=request.query)
        response = self._answer(request, stages)
        return replace(
            response,
            query=query,
            transformed=response.transformed and replace(response.transformed, original=query),
            latency_ms=stages.elapsed_ms,
            stages=stages.timings,
        )

    def has_model(self, name: str) -> bool:
        """Whether questions can be embedded with a model of this name."""
        try:
            self._embedder(name)
        except (InvalidParameterError, ModelMissingError):
            return False
        return True

    def warm_up(self, config: RetrievalConfig) -> None:
        """Load the models of a configuration, which may take longer than a retrieval.

        Each model is called once in the pipeline's life and waited for at most `WARM_UP_MS`. If one
        does not answer, only a log record says so here; the retrieval reports it.
        """
        for model in config.models:
            if model in self._warm:
                continue
            self._warm.add(model)
            try:
                with deadline_scope(Deadline.after(WARM_UP_MS, time.monotonic)):
                    self._embedder(model).embed_queries([""])
            except (ProviderError, DeadlineExceededError) as error:
                _log.warning("model_not_ready", model=model, error=error.message)
            finally:
                self._tried.add(model)

    def is_warm(self, config: RetrievalConfig) -> bool:
        """Whether the models of a configuration were loaded, or tried without success."""
        return self._tried.issuperset(config.models)

    def close_breakers(self) -> None:
        """Let the next retrieval try every dependency, however often it has failed."""
        self._breakers.close()

    def _answer(self, request: Request, stages: Stages) -> RetrievalResponse:
        with self._database.one_source():
            if self._answers is None or not request.cached:
                return self._searched(request, stages)[0]
            return self._answers.get_or_make(
                request, stages, lambda: self._searched(request, stages)
            )

    def _searched(
        self, request: Request, stages: Stages
    ) -> tuple[RetrievalResponse, IndexVersion | None]:
        transformed, found, error = self._candidates(request, stages)
        chunks: Sequence[ScoredChunk] = found.chunks
        if (second := request.config.score) and chunks:
            found = replace(found, chunks=self._scored(request, second, found, stages))
            chunks = found.chunks
        if request.config.reranks and chunks:
            chunks = self._reranked(request, found, stages)
        if request.config.diversity_weight and chunks:
            chunks = self._diverse(request, chunks, stages)
        kept = chunks[: request.count_needed(chunks)]
        response = RetrievalResponse(
            results=self._results(request, kept, found, stages),
            query=request.query,
            transformed=transformed,
            strategy=request.config.strategy.value,
            model=request.config.model,
            latency_ms=0.0,
            stages={},
            degraded=stages.degraded,
            messages=messages(request.config.searched, found.worked, error, stages.failures),
            error=error,
            causes=tuple(stages.failures.values()) if error else (),
        )
        return response, found.version

    def _candidates(
        self, request: Request, stages: Stages
    ) -> tuple[TransformedQuery, Found, str | None]:
        """Transform the question and find candidates; a text says why there are none."""
        embedder = self._embedders(request)
        for model in request.config.models:
            embedder(model)  # An unknown name is a caller's error, not a failure.
        transformed = self._transform(request, stages)
        vectors = QuestionVectors(
            Asked((request.query, *transformed.sub_queries), transformed.hypothetical_answer),
            embedder,
            self._breakers,
            request.deadline,
        )
        return (transformed, *self._find(request, vectors, stages, transformed.intent))

    def _transform(self, request: Request, stages: Stages) -> TransformedQuery:
        config = request.config.transformation
        with stages.run("transform"):
            transformed = self._transformer.by_rules(request.query, config, request.language)
        if not self._transformer.wants_language_model(transformed, config):
            return transformed
        deadline = share(request.deadline, _SHARE_TRANSFORM)
        component = "language_model"
        with (
            stages.optional("transform", component=component),
            self._breakers[component].guard(blames(deadline)),
        ):
            return call_within(
                deadline,
                lambda: self._transformer.refined(
                    transformed, config, deadline=deadline, language=request.language
                ),
            )
        return transformed

    def _diverse(
        self, request: Request, chunks: Sequence[ScoredChunk], stages: Stages
    ) -> Sequence[ScoredChunk]:
        config = request.config
        with (
            stages.optional("diversity", component="vectors"),
            self._database.snapshot(share(request.deadline, _SHARE_VECTORS)) as connection,
        ):
            info = require_model(connection, config.model)
            pairs = [(chunk.chunk_id, chunk.note_id) for chunk in chunks]
            return maximal_marginal_relevance(
                chunks,
                fetch_result_vectors(
                    connection, config.model, pairs, by_notes=config.unit == "notes"
                ),
                config.diversity_weight,
                considered=max(config.top_k.reranking, request.top_k),
                cosine_range=info.cosine_range,
            )
        return chunks

    def _find(
        self, request: Request, vectors: QuestionVectors, stages: Stages, intent: Intent
    ) -> tuple[Found, str | None]:
        """Find candidates; if no retriever could run, say why in Spanish."""
        question = Question(request, vectors, stages, intent)
        names, unembedded = self._embedded(question)
        try:
            found = self._finder.find(question, names)
        except Exception as error:  # noqa: BLE001 -- the user gets a response after any error
            stages.degrade("database", error, component="database")
            unreachable = isinstance(error, DatabaseUnavailableError | DependencyOpenError)
            return Found(), (
                _("Connection error. Please try again later.")
                if unreachable
                else _("No results could be retrieved. Please try again.")
            )
        for name, failure in found.failures.items():
            if failure not in unembedded:
                stages.degrade(name.value, failure, component=dependency_of(name, request.config))
        return found, None if found.worked else _(
            "No results could be retrieved. Please try again."
        )

    def _embedded(self, question: Question) -> tuple[list[RetrieverName], list[Exception]]:
        """Embed the question for the wanted retrievers.

        Returns:
            The retrievers whose vectors are ready, with stand-ins for the others; and the errors.
        """
        config, errors = question.request.config, dict[str, Exception]()
        names = config.searched
        for model in dict.fromkeys(model for name in names for model in models_of(name, config)):
            with question.stages.optional("embed", component=f"embedding:{model}") as attempt:
                question.vectors.of(model)
            if attempt.error:
                errors[model] = attempt.error
        able = [name for name in names if not errors.keys() & set(models_of(name, config))]
        beside = (
            stand_in for name in names if name not in able for stand_in in KINDS[name].stand_ins
        )
        return list(dict.fromkeys((*able, *beside))), list(errors.values())

    def _scored(
        self, request: Request, config: ScoreConfig, found: Found, stages: Stages
    ) -> tuple[ScoredChunk, ...]:
        """Order the best by a second model; those that it has no time for follow."""
        deadline = request.deadline.within(request.deadline.remaining_ms - _AFTER_RERANKING_MS)
        component = f"embedding:{config.model}"
        scores: dict[UUID, float] = {}
        with stages.optional("score", component=component):
            score = partial(
                score_again,
                self._database,
                self._embedders(request)(config.model),
                request.query,
                found.chunks[: config.passages],
                scores,
                keep=self._keep_vectors,
                deadline=deadline,
            )
            with self._breakers[component].guard(blames(deadline)):
                in_time = call_within(deadline, score)
            if not in_time:
                raise DeadlineExceededError(
                    _("There is no time left for this part of the search."), scored=len(scores)
                )
        return tuple(rerank(found.chunks, dict(scores), config.weight))

    def _reranked(self, request: Request, found: Found, stages: Stages) -> Sequence[ScoredChunk]:
        config = request.config.reranking
        limit_ms = min(config.timeout_ms, request.deadline.remaining_ms - _AFTER_RERANKING_MS)
        deadline = request.deadline.within(limit_ms)
        head = found.chunks[: request.config.top_k.reranking]
        passages = [found.passages[chunk.chunk_id].chunk.content for chunk in head]
        component = f"rerank:{config.method}"
        with (
            stages.optional("rerank", component=component),
            self._breakers[component].guard(blames(deadline)),
        ):
            embedder = self._embedders(request)(config.model)
            reranker = self._reranker(request.config, embedder)
            scores = call_within(
                deadline, lambda: reranker.score(request.query, passages, deadline=deadline)
            )
            by_chunk = dict(zip((chunk.chunk_id for chunk in head), scores, strict=True))
            return rerank(found.chunks, by_chunk, config.weight)
        return found.chunks

    def _results(
        self, request: Request, kept: Sequence[ScoredChunk], found: Found, stages: Stages
    ) -> tuple[RetrievalResult, ...]:
        windows: Mapping[UUID, Span] = {}
        with stages.optional("expand", component="text"):
            sentences = self._caches.sentences if self._caches and request.cached else cut_sentences
            windows = expanded_windows(
                [found.passages[chunk.chunk_id] for chunk in kept],
                request.config.context,
                sentences,
            )
        return results(kept, found.passages, windows, found.windows)

    def _built_reranker(self, config: RetrievalConfig, embedder: Embedder) -> Reranker:
        return build_reranker(
            config.reranking.method,
            embedder=embedder,
            language_model=self._language_model,
            batch_size=config.reranking.batch_size,
        )

    def _embedders(self, request: Request) -> Callable[[str], Embedder]:
        """Return the embedder of each model by name, through the cache if the request allows it."""
        if self._caches is None or not request.cached:
            return self._embedder
        caches = self._caches

        def cached(model: str) -> Embedder:
            # Two threads may each create one. That is harmless: they share the cache.
            if model not in self._cached_embedders:
                embedder = CachedEmbedder(self._embedder(model), caches.embeddings)
                self._cached_embedders[model] = embedder
            return self._cached_embedders[model]

        return cached
