"""The retrieval pipeline: validate, embed, search, fuse, fetch, expand.

What a stage computes lives in `core`, what it fetches in `store`; here is their order.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from uuid import UUID

from rag_resources.core.configuration import RetrievalConfig
from rag_resources.core.errors import InvalidQueryError, ModelMissingError
from rag_resources.core.expansion import expand
from rag_resources.core.fusion import fuse
from rag_resources.core.messages import Message
from rag_resources.core.text import Span, is_blank
from rag_resources.core.types import (
    Chunk,
    ModelInfo,
    Note,
    RetrievalResponse,
    RetrievalResult,
    Retriever,
    ScoredChunk,
    Vectors,
)
from rag_resources.database.pool import Connection, Database
from rag_resources.providers.protocols import Embedder
from rag_resources.store.chunks import fetch_chunks
from rag_resources.store.embeddings import fetch_model
from rag_resources.store.notes import fetch_notes
from rag_resources.store.search import EmbeddedQuery, SearchRequest, any_unchunked, search

MAX_QUERY_CHARS = 2_000
MAX_POOL = 500
"""Candidates per list beyond which no more distinct notes are looked for."""


@dataclass
class Stopwatch:
    """Milliseconds per stage, in the order the stages first ran."""

    stages: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the time of a block to a stage."""
        started = time.perf_counter()
        try:
            yield
        finally:
            elapsed_ms = (time.perf_counter() - started) * 1000
            self.stages[name] = self.stages.get(name, 0.0) + elapsed_ms


class RetrievalPipeline:
    """Answers questions over one tenant's notes; safe to share between threads.

    Args:
        database: Open.
        embedder: The embedder of a model, by name.
        tenant: Whose notes.
        note_model: Model of the whole-note vectors, which find notes not yet chunked.
    """

    def __init__(
        self,
        database: Database,
        *,
        embedder: Callable[[str], Embedder],
        tenant: str,
        note_model: str,
    ) -> None:
        self._database = database
        self._embedder = embedder
        self._tenant = tenant
        self._note_model = note_model
        self._models: dict[str, ModelInfo] = {}

    def retrieve(
        self,
        query: str,
        config: RetrievalConfig,
        *,
        top_k: int | None = None,
        distinct_notes: int | None = None,
    ) -> RetrievalResponse:
        """Find the passages that answer a question.

        Args:
            query: Not blank, at most `MAX_QUERY_CHARS` characters.
            config: How to search.
            top_k: How many results; None takes the configuration's.
            distinct_notes: An evaluation's wish: as many results as that many distinct notes need,
                in place of `top_k`.

        Returns:
            Results best first, scores never increasing, ties by chunk id.

        Raises:
            InvalidQueryError: The question cannot be searched.
            ModelMissingError: Nothing is indexed with the configuration's model.
            ProviderError: The model cannot be used.
            DatabaseUnavailableError: The database does not answer.

        Properties: 3, 4, 5, 39, 43, 44.
        """
        check_query(query)
        watch, started = Stopwatch(), time.perf_counter()
        text = _searchable(query)
        vector = None
        if config.strategy.uses_vectors:
            vector = self._embed(config.model, text, watch)
        # One snapshot: what is found, what it is cut from and what is searched as a whole agree.
        with self._database.snapshot() as connection:
            request = self._request(connection, text, vector, config, watch)
            fused = _search(connection, request, config, watch, distinct_notes)
            wanted = _needed(fused, distinct_notes) if distinct_notes else top_k
            kept = fused[: wanted or config.top_k.final]
            with watch.stage("fetch"):
                chunks = fetch_chunks(connection, [item.chunk_id for item in kept])
                notes = fetch_notes(connection, {item.note_id for item in kept})
        with watch.stage("expand"):
            results = tuple(_results(kept, chunks, notes, config))
        return RetrievalResponse(
            results=results,
            query=query,
            strategy=config.strategy.value,
            model=config.model,
            latency_ms=(time.perf_counter() - started) * 1000,
            stages=watch.stages,
        )

    def _request(
        self,
        connection: Connection,
        text: str,
        vector: Vectors | None,
        config: RetrievalConfig,
        watch: Stopwatch,
    ) -> SearchRequest:
        """Decide which lists to fetch."""
        by_chunks = config.unit == "chunks"
        with watch.stage("plan"):
            query = None
            if vector is not None:
                query = _embedded(self._model(connection, config.model), vector, config)
            beside = by_chunks and any_unchunked(connection, config.model if query else "")
            model = self._find_model(connection, self._note_model) if beside and query else None
        note_query = None if by_chunks else query
        if model:
            note_query = _embedded(model, self._embed(model.name, text, watch), config)
        return SearchRequest(
            retrievers=_retrievers(config, notes=beside or not by_chunks, vectors=bool(note_query)),
            query=text,
            tenant=self._tenant,
            pool=config.top_k.retrieval,
            chunk_query=query if by_chunks else None,
            note_query=note_query,
            unchunked_only=by_chunks,
        )

    def _embed(self, model: str, text: str, watch: Stopwatch) -> Vectors:
        with watch.stage("embed"):
            vector: Vectors = self._embedder(model).embed_queries([text])[0]
        return vector

    def _model(self, connection: Connection, name: str) -> ModelInfo:
        model = self._find_model(connection, name)
        if model is None:
            raise ModelMissingError(Message.MODEL_NOT_INDEXED.format(model=name), model=name)
        return model

    def _find_model(self, connection: Connection, name: str) -> ModelInfo | None:
        model = self._models.get(name) or fetch_model(connection, name)
        if model:
            self._models[name] = model
        return model


def _embedded(model: ModelInfo, vector: Vectors, config: RetrievalConfig) -> EmbeddedQuery:
    """The threshold is the model's, unless the configuration names its own for its model."""
    own = config.similarity_threshold if model.name == config.model else None
    return EmbeddedQuery(model, vector, model.similarity_threshold if own is None else own)


def check_query(query: str) -> None:
    """Refuse a question that cannot be searched.

    Raises:
        InvalidQueryError: It is blank or too long.
    """
    if is_blank(query.replace("\0", " ")):
        raise InvalidQueryError(Message.QUERY_BLANK)
    if len(query) > MAX_QUERY_CHARS:
        raise InvalidQueryError(
            Message.QUERY_TOO_LONG.format(length=len(query), maximum=MAX_QUERY_CHARS)
        )


def _searchable(query: str) -> str:
    """The question without what a database or a model cannot read: NUL and lone surrogates."""
    return query.replace("\0", " ").encode("utf-8", "replace").decode()


def _search(
    connection: Connection,
    request: SearchRequest,
    config: RetrievalConfig,
    watch: Stopwatch,
    distinct_notes: int | None,
) -> list[ScoredChunk]:
    """Fetch and fuse the lists; again with a larger pool while distinct notes are missing."""
    while True:
        with watch.stage("search"):
            rankings = search(connection, request)
        with watch.stage("fuse"):
            fused = fuse(rankings, config.fusion)
        enough = len({chunk.note_id for chunk in fused}) >= (distinct_notes or 0)
        more = any(len(ranking.candidates) >= request.pool for ranking in rankings)
        if enough or not more or request.pool >= MAX_POOL:
            return fused
        request = replace(request, pool=min(2 * request.pool, MAX_POOL))


def _results(
    kept: Sequence[ScoredChunk],
    chunks: Mapping[UUID, Chunk],
    notes: Mapping[UUID, Note],
    config: RetrievalConfig,
) -> Iterator[RetrievalResult]:
    passages = [_passage(item, chunks, notes[item.note_id]) for item in kept]
    windows = _windows(passages, notes, config)
    for item, passage in zip(kept, passages, strict=True):
        window, note = windows[passage.chunk_id], notes[item.note_id]
        yield RetrievalResult(
            chunk_id=item.chunk_id,
            note_id=item.note_id,
            content=passage.content,
            expanded_content=note.content[window.start : window.end],
            score=item.score,
            chunk_index=passage.chunk_index,
            matched_bounds=(passage.start_char - window.start, passage.end_char - window.start),
            retrieval_method="+".join(item.retrievers),
            original_score=item.original_score,
            title=note.title,
            created_at=note.created_at,
        )


def _retrievers(config: RetrievalConfig, *, notes: bool, vectors: bool) -> list[Retriever]:
    chunks = config.unit == "chunks"
    semantic, fulltext = config.strategy.uses_vectors, config.strategy.uses_words
    wanted = {
        Retriever.SEMANTIC: chunks and semantic,
        Retriever.CONTEXTUAL: chunks and semantic and config.contextual,
        Retriever.FULLTEXT: chunks and fulltext,
        Retriever.NOTES_SEMANTIC: notes and semantic and vectors,
        Retriever.NOTES_FULLTEXT: notes and fulltext,
    }
    return [retriever for retriever, use in wanted.items() if use]


def _needed(fused: Sequence[ScoredChunk], distinct_notes: int) -> int:
    """How many of the best chunks it takes to see so many distinct notes."""
    seen = set()
    for count, chunk in enumerate(fused, start=1):
        seen.add(chunk.note_id)
        if len(seen) == distinct_notes:
            return count
    return len(fused)


def _passage(item: ScoredChunk, chunks: Mapping[UUID, Chunk], note: Note) -> Chunk:
    """The chunk of a result; the whole note where it was found as a whole."""
    whole = Chunk(item.chunk_id, note.note_id, 0, 0, len(note.content), note.content)
    return chunks.get(item.chunk_id, whole)


def _windows(
    passages: Sequence[Chunk], notes: Mapping[UUID, Note], config: RetrievalConfig
) -> dict[UUID, Span]:
    """The expanded window of each passage; windows of one note that meet become one."""
    windows: dict[UUID, Span] = {}
    for note_id in {passage.note_id for passage in passages}:
        own = [passage for passage in passages if passage.note_id == note_id]
        spans = [Span(passage.start_char, passage.end_char) for passage in own]
        expanded = expand(notes[note_id].content, spans, config.context)
        windows.update(zip((passage.chunk_id for passage in own), expanded, strict=True))
    return windows
