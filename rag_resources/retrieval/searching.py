"""The statements of one retrieval, run on the connection that the caller passes in.

Each retriever decides which lists it fetches (`retrieval.retrievers`). The SQL is in `store.search`
and the fusion in `core.fusion`. What happens when a statement fails is in `retrieval.finding`.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from rag_resources.core.fusion import fuse, on_scale, shared_weights
from rag_resources.core.retrievers import (
    DOCUMENTS_OF,
    RETRIEVER_OF,
    Documents,
    RankedList,
    RetrieverName,
)
from rag_resources.core.types import Ranking, ScoredChunk, Windows
from rag_resources.core.whole_notes import joins_chunks, rescored
from rag_resources.database.connection import LimitedConnection
from rag_resources.resilience.deadlines import share
from rag_resources.retrieval.found import Found
from rag_resources.retrieval.retrievers import RETRIEVERS
from rag_resources.retrieval.retrievers.protocol import Question
from rag_resources.store.candidate_scores import look_up_scores, match_windows
from rag_resources.store.models import require_model
from rag_resources.store.passages import fetch_passages, fetch_result_vectors
from rag_resources.store.ranked_lists import ListRequest
from rag_resources.store.search import SearchPlan, SearchScope, plan_search, search
from rag_resources.store.search_at_once import AllAtOnce, Merging, search_at_once

# Share of the time left for the vectors of diversity; the results can do without them.
_SHARE_VECTORS = 0.5

SEEDS = 20
"""How many of the best chunks are the starting points of retrievers that follow links."""

_UNPLANNED = SearchPlan(any_unchunked=True, any_expired=True, models={}, matching=None)


class Search:
    """The statements of one question.

    Attributes:
        plan: The plan of the latest lists; None before there were any.
    """

    def __init__(self, question: Question) -> None:
        self._question = question
        self._requested: dict[tuple[RankedList, int], ListRequest] = {}
        self.plan: SearchPlan | None = None
        self.request = question.request
        self.stages = question.stages

    def dependency(self, name: RetrieverName) -> str:
        """Return the name of the retriever's dependency, for its circuit breaker."""
        return RETRIEVERS[name].dependency(self.request.config)

    def embed(self, name: RetrieverName, *, insist: bool) -> None:
        """Embed the question with every model that the retriever requires.

        Args:
            name: The retriever's name.
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
            names: The retrievers' names.
            beside: Retrievers whose lists the caller already has.

        Raises:
            ProviderError: A model is missing, or its vectors have another dimension.
            DatabaseError: A search fails or is too late.
            psycopg.Error: A search fails.
            Exception: What `QuestionVectors.of` raises.
        """
        scope = self._scope(searched=(*names, *beside))
        with self.stages.run("plan"):
            plan = self.plan = plan_search(connection, scope, models=self._models)
        lists = self._lists(names, plan)
        with self.stages.run("search"):
            return search(connection, lists, scope.under(plan), pool=self._pool)

    @property
    def fits_one_statement(self) -> bool:
        """Whether one statement can do the whole search under an earlier plan.

        It cannot with filters, which change the plan, nor with diversity, which reads more.
        """
        return self.request.filters.is_empty and self.request.config.diversity_weight == 0

    def plan_key(self, names: Sequence[RetrieverName]) -> tuple[object, ...]:
        """Return what a plan depends on besides the database."""
        scope = self._scope(searched=names)
        searched = (scope.chunk_model, scope.window_model, scope.unchunked_only)
        return self.request.tenant, *searched, self._models

    def at_once(
        self, connection: LimitedConnection, names: Sequence[RetrieverName], plan: SearchPlan
    ) -> Found | None:
        """Find candidates and fetch the passages of the best chunks in one statement.

        Args:
            connection: Outside a transaction.
            names: The retrievers' names.
            plan: The plan of an earlier question.

        Returns:
            None if the plan has changed since, or a chunk was deleted before its text was read.

        Raises:
            Exception: As for `rankings`; also because the plan has changed.
        """
        config = self.request.config
        lists = self._lists(names, plan)
        if not lists:
            return None
        scales = tuple(map(_scale, lists)) if config.fusion.looks_up_scores else None
        stubs = [Ranking(item.name, (), item.question) for item in lists]
        merging = Merging(
            tuple(shared_weights(stubs, config.weighted)),
            scales,
            config.fusion.rank_constant if config.fusion.method == "rrf" else None,
            self._count_shown,
            self._count_kept(lists),
        )
        with self.stages.run("search"):
            made = search_at_once(
                connection,
                lists,
                self._scope(searched=names).under(plan),
                pool=self._pool,
                models=self._models,
                merging=merging,
                versioned=self.request.cached,
            )
        if not made.plan.decides_as(plan):
            return None
        rankings = self._with_comparable_notes(connection, made.rankings)
        found = self._found(connection, rankings, names, made.scores, made)
        return None if found.any_gone else replace(found, version=made.version)

    def _lists(self, names: Sequence[RetrieverName], plan: SearchPlan) -> list[ListRequest]:
        lists = [item for name in names for item in RETRIEVERS[name].lists(self._question, plan)]
        lists = _with_those_that_find(lists, self.request.config.only_scoring)
        self._requested |= {(item.name, item.question): item for item in lists}
        return lists

    @property
    def _models(self) -> tuple[str, ...]:
        return tuple(sorted({self.request.config.model, self._question.note_model}))

    @property
    def _pool(self) -> int:
        return max(self.request.config.top_k.retrieval, self.request.top_k)

    @property
    def _count_shown(self) -> int:
        """How many texts are probably needed."""
        return max(self._count_considered, self.request.top_k, self.request.distinct_notes)

    @property
    def _count_considered(self) -> int:
        """How many chunks are needed to put the results in their final order."""
        config = self.request.config
        return config.top_k.reranking if config.reranks or config.diversity_weight > 0 else 0

    @property
    def _count_fused(self) -> int | None:
        """How many fused chunks decide the results; None if that is not known beforehand."""
        if self.request.distinct_notes:
            return None
        return max(self._count_considered, self.request.top_k)

    def _count_kept(self, lists: Sequence[ListRequest]) -> int | None:
        """How many candidates may decide the results, in the statement's order; None: all.

        Twice as many as are needed. The statement adds up scores in another order than Python, so
        equal scores may differ in the last bit. With sub-questions or links, all candidates count.
        """
        config = self.request.config
        if (
            self._count_fused is None
            or not config.fusion.looks_up_scores
            or config.searches_graph
            or any(item.question for item in lists)
        ):
            return None
        return 2 * self._count_fused

    def fetch(
        self,
        connection: LimitedConnection,
        rankings: Sequence[Ranking],
        worked: Sequence[RetrieverName],
        *,
        looks_up: bool = True,
    ) -> Found:
        """Fuse the lists and fetch the passages of the best chunks.

        Args:
            connection: In a snapshot.
            rankings: The lists.
            worked: The retrievers that gave them.
            looks_up: Whether scores that are missing from a list are looked up, if the fusion uses
                them; otherwise they count as 0, and whole notes stay lists of their own.
        """
        config = self.request.config
        scores = None
        if config.fusion.looks_up_scores:
            with self.stages.run("scores"):
                scores = self._look_up(connection, rankings) if looks_up else self._held(rankings)
        if looks_up:
            rankings = self._with_comparable_notes(connection, rankings)
        return self._found(connection, rankings, worked, scores, merges=looks_up)

    def _found(
        self,
        connection: LimitedConnection,
        rankings: Sequence[Ranking],
        worked: Sequence[RetrieverName],
        scores: Sequence[Mapping[UUID, float]] | None,
        brought: AllAtOnce | None = None,
        *,
        merges: bool = True,
    ) -> Found:
        """Fuse the lists, and fetch those passages of the best chunks that are not in `brought`.

        Args:
            connection: In a snapshot.
            rankings: The lists.
            worked: The retrievers that gave them.
            scores: Every candidate's in each list, on its scale, if the fusion looks them up.
            brought: What the statement brought that found the lists.
            merges: Whether scores of whole notes compare with those of chunks.
        """
        config = self.request.config
        with self.stages.run("fuse"):
            fused = fuse(
                rankings,
                config.fusion,
                config.weighted,
                ranges=list(map(_scale, self._requests(rankings))) if merges else None,
                pool=self._pool,
                scores=scores,
                most=self._count_fused,
            )
            best = tuple(fused[: max(self._count_considered, self.request.count_needed(fused))])
        passages = dict(brought.passages) if brought else {}
        windows = dict(brought.windows) if brought else {}
        missing = [chunk for chunk in best if chunk.chunk_id not in passages]
        if missing:
            with self.stages.run("fetch"):
                pairs = [(chunk.chunk_id, chunk.note_id) for chunk in missing]
                passages |= fetch_passages(connection, pairs)
                if RetrieverName.WINDOWS in worked:
                    windows |= self._windows(connection, missing)
        # A chunk may be gone if the lists come from an earlier snapshot.
        kept = tuple(chunk for chunk in best if chunk.chunk_id in passages)
        found = Found(
            kept,
            passages,
            windows,
            worked=tuple(worked),
            rankings=rankings,
            seeds=tuple(item.chunk_id for item in fused[:SEEDS] if item.chunk_id != item.note_id),
            any_gone=len(kept) < len(best),
        )
        if config.diversity_weight == 0:
            return found
        return self._with_vectors(
            connection, found, [(chunk.chunk_id, chunk.note_id) for chunk in best]
        )

    def follows(self, found: Found, name: RetrieverName) -> bool:
        """Whether a retriever that follows links has chunks to start from in this question."""
        self._question = replace(self._question, seeds=found.seeds)
        return bool(self._lists([name], _UNPLANNED))

    def followed(self, connection: LimitedConnection, found: Found, name: RetrieverName) -> Found:
        """Add the list of a retriever that follows links, and fuse again.

        Args:
            connection: In a snapshot.
            found: The result of the other retrievers, for which `follows` is true.
            name: The retriever's name.

        Raises:
            Exception: As for `rankings`.
        """
        scope = self._scope(searched=(*found.worked, name))
        worked = (*found.worked, name)
        with self.stages.run(name.value):
            plan = plan_search(connection, scope, models=self._models)
            lists = self._lists([name], plan)
            rankings = search(connection, lists, scope.under(plan), pool=self._pool)
        if not any(ranking.candidates for ranking in rankings):
            return replace(found, worked=worked)
        again = self.fetch(connection, [*found.rankings, *rankings], worked)
        return replace(again, failures=found.failures, version=found.version)

    def _requests(self, rankings: Sequence[Ranking]) -> list[ListRequest]:
        return [self._requested[ranking.name, ranking.question] for ranking in rankings]

    def _with_comparable_notes(
        self, connection: LimitedConnection, rankings: Sequence[Ranking]
    ) -> Sequence[Ranking]:
        """Look up the scores of whole notes that the fusion puts among chunks.

        Their lists have other scores: words are counted without their rarity, and negative cosines
        are 0.
        """
        waiting = [ranking for ranking in rankings if joins_chunks(ranking, rankings)]
        if not waiting or self.request.config.fusion.looks_up_scores:
            return rankings
        ids = {candidate.note_id: None for each in waiting for candidate in each.candidates}
        with self.stages.run("scores"):
            known = look_up_scores(
                connection,
                self._requests(waiting),
                {"chunks": [], "notes": list(ids)},
                tenant=self.request.tenant,
            )
        scores = dict(zip(((each.name, each.question) for each in waiting), known, strict=True))
        return [
            rescored(each, scores[key]) if (key := (each.name, each.question)) in scores else each
            for each in rankings
        ]

    def _look_up(
        self, connection: LimitedConnection, rankings: Sequence[Ranking]
    ) -> list[dict[UUID, float]]:
        """Look up every candidate's score in every list, on the list's scale."""
        found: dict[Documents, dict[UUID, None]] = {"chunks": {}, "notes": {}}
        for ranking in rankings:
            found[DOCUMENTS_OF[ranking.name]].update(
                dict.fromkeys(candidate.chunk_id for candidate in ranking.candidates)
            )
        candidates = {kind: list(ids) for kind, ids in found.items()}
        lists = self._requests(rankings)
        looked_up = look_up_scores(connection, lists, candidates, tenant=self.request.tenant)
        known = [
            {own.chunk_id: own.score for own in ranking.candidates} if item.links else own_scores
            for item, ranking, own_scores in zip(lists, rankings, looked_up, strict=True)
        ]
        return _on_scales(lists, known)

    def _held(self, rankings: Sequence[Ranking]) -> list[dict[UUID, float]]:
        """Return only the scores that the lists themselves hold, on their scales."""
        lists = self._requests(rankings)
        held = [{own.chunk_id: own.score for own in ranking.candidates} for ranking in rankings]
        return _on_scales(lists, held)

    def _windows(
        self, connection: LimitedConnection, chunks: Sequence[ScoredChunk]
    ) -> Mapping[UUID, Windows]:
        """Find the windows of chunks, if windows were searched."""
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
            # Chunks whose vectors are not made yet are found by full text only.
            chunk_model=config.model if RetrieverName.SEMANTIC in searched and by_chunks else "",
            window_model=config.model if RetrieverName.WINDOWS in searched and by_chunks else "",
            unchunked_only=by_chunks,
        )


def _with_those_that_find(
    lists: Sequence[ListRequest], only_scoring: Collection[RetrieverName]
) -> list[ListRequest]:
    """Mark the lists of chunks that only score, unless no other vector list finds chunks."""

    def scores_only(item: ListRequest) -> bool:
        return RETRIEVER_OF[item.name] in only_scoring and DOCUMENTS_OF[item.name] == "chunks"

    finding = any(
        item.embedded and DOCUMENTS_OF[item.name] == "chunks" and not scores_only(item)
        for item in lists
    )
    return [replace(item, finds=not (finding and scores_only(item))) for item in lists]


def _scale(item: ListRequest) -> tuple[float, float]:
    """The range that a list's scores are mapped from: the model's, or BM25's up to its bound."""
    return item.embedded.info.cosine_range if item.embedded else (0.0, 1.0)


def _on_scales(
    lists: Sequence[ListRequest], scores: Sequence[Mapping[UUID, float]]
) -> list[dict[UUID, float]]:
    """Map every candidate's score in each list to that list's scale."""
    mapped = []
    for item, own in zip(lists, scores, strict=True):
        low, high = _scale(item)
        mapped.append({key: on_scale(score, low, high) for key, score in own.items()})
    return mapped
