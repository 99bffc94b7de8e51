"""The value types that travel between the layers; configuration is `core.configuration`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt

from rag_resources.core.places import DocumentPlace
from rag_resources.core.query import TransformedQuery
from rag_resources.core.retrievers import RankedList

Vectors = npt.NDArray[np.float32]
"""Embeddings: `(n_texts, dimension)` or one `(dimension,)`, finite, L2-normalised."""


@dataclass(frozen=True, slots=True)
class NoteRecord:
    """A note as a source gives it, before it has a row.

    Attributes:
        external_id: Its identity within the source.
        title: May be empty.
        content: Not blank, no NUL.
        created_at: Aware; decides the partition.
        tags: In the order given, without repeats.
        metadata: Anything else the source says, JSON values.
        location: Where it was read, for messages: file, or file and line.
    """

    external_id: str
    title: str
    content: str
    created_at: datetime
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    location: str = ""


@dataclass(frozen=True, slots=True)
class RejectedRecord:
    """A record a source could not give: where, and why in Spanish."""

    location: str
    reason: str


@dataclass(frozen=True, slots=True)
class Note:
    """A stored note, as far as indexing needs it."""

    note_id: UUID
    title: str
    content: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage of a note: `note.content[start_char:end_char] == content`.

    Attributes:
        context: The contextual prefix, for the contextual vector.
        topics: What the prefix is about, without its fixed words, for full text.
    """

    chunk_id: UUID
    note_id: UUID
    chunk_index: int
    start_char: int
    end_char: int
    content: str
    context: str = ""
    topics: str = ""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A chunk (or a whole note) in one ranked list.

    Attributes:
        chunk_id: The chunk; a note searched as a whole has its note id here.
        note_id: Its note.
        score: Higher is better, in [0, 1], comparable only within the list.
        created_at: Of the note, for ties; aware.
    """

    chunk_id: UUID
    note_id: UUID
    score: float
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Ranking:
    """One ranked list of a question: its candidates best first, none twice.

    Attributes:
        model: Embedding model of a list found by vectors, else empty.
        question: Which text was searched: 0 is the question, others are its sub-queries and its
            hypothetical answer.
    """

    name: RankedList
    candidates: tuple[Candidate, ...]
    model: str = ""
    question: int = 0


@dataclass(frozen=True, slots=True)
class ScoredChunk:
    """A chunk after fusion.

    Attributes:
        score: In [0, 1].
        lists: Which lists held it, in the order of the lists.
        original_score: Its score in the first list that held it.
        created_at: Of its note; aware.
        rerank_score: What a re-ranker gave it, in [0, 1].
    """

    chunk_id: UUID
    note_id: UUID
    score: float
    lists: tuple[RankedList, ...]
    original_score: float
    created_at: datetime | None = None
    rerank_score: float | None = None


@dataclass(frozen=True, slots=True)
class RetrievalResult:
    """One passage of an answer. Property 5.

    Attributes:
        expanded_content: The passage with its neighbouring sentences, a substring of the note.
        matched_bounds: Offsets of `content` inside `expanded_content`.
        retrieval_method: The lists that found it, joined by "+".
        original_score: Before re-ranking; without it, in the first list that held the passage.
        rerank_score: Score of re-ranking, if it took place.
        start_char: Offset of `content` in the note.
        place: Where in its document it stands; None for a note that is no section of one.
    """

    chunk_id: UUID
    note_id: UUID
    content: str
    expanded_content: str
    score: float
    chunk_index: int
    matched_bounds: tuple[int, int]
    retrieval_method: str
    original_score: float
    title: str = ""
    created_at: datetime | None = None
    rerank_score: float | None = None
    start_char: int = 0
    place: DocumentPlace | None = None

    @property
    def end_char(self) -> int:
        """End of `content` in the note."""
        return self.start_char + len(self.content)

    def to_json(self) -> dict[str, Any]:
        """Return the camelCase form of the command line, HTTP and the store.

        The metadata has a `place` only if the passage has one.
        """
        place = {"place": self.place.to_json()} if self.place else {}
        return {
            "chunkId": str(self.chunk_id),
            "noteId": str(self.note_id),
            "title": self.title,
            "createdAt": self.created_at.isoformat() if self.created_at else None,
            "content": self.content,
            "expandedContent": self.expanded_content,
            "score": self.score,
            "metadata": {
                "chunkIndex": self.chunk_index,
                "matchedChunkBounds": list(self.matched_bounds),
                "startChar": self.start_char,
                "endChar": self.end_char,
                "retrievalMethod": self.retrieval_method,
                "originalScore": self.original_score,
                "rerankScore": self.rerank_score,
                "causalPath": None,  # Of the promised shape; there is no graph yet.
                **place,
            },
        }


@dataclass(frozen=True, slots=True)
class RetrievalResponse:
    """What retrieval answers.

    Attributes:
        stages: Milliseconds per stage, in order.
        transformed: What was searched beside the question.
        degraded: Stages that failed or were left out.
        messages: What to tell the user, in Spanish.
        error: Why nothing could be searched, in Spanish, among the messages too; None if something
            was, whether it found anything or not.
        cached: Whether it is an earlier answer.
    """

    results: tuple[RetrievalResult, ...]
    query: str
    strategy: str
    model: str
    latency_ms: float
    stages: Mapping[str, float]
    transformed: TransformedQuery | None = None
    degraded: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()
    error: str | None = None
    cached: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the camelCase form of the command line, HTTP and the store."""
        return {
            "results": [result.to_json() for result in self.results],
            "query": self.query,
            "transformedQuery": self.transformed.to_json() if self.transformed else None,
            "strategy": self.strategy,
            "model": self.model,
            "latencyMs": self.latency_ms,
            "stages": dict(self.stages),
            "degraded": list(self.degraded),
            "messages": list(self.messages),
            "error": self.error,
            "cached": self.cached,
        }


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """A half-open span of time, both ends aware; one month of a partition, or several."""

    start: datetime
    end: datetime


@dataclass(frozen=True)
class ModelInfo:
    """What the registry (table `embedding_models`) stores about an embedding model.

    Attributes:
        name: Short name; also the asset key `embeddings/<name>`, so letters, digits and `_` only.
        dimension: Components of a vector.
        provider: Where it runs: `embedded` or `ollama`.
        digest: Identifies the weights and the prefixes; a change means other vectors.
        similarity_threshold: Cosine under which a passage counts as unrelated, for this model.
        max_sequence_tokens: Model tokens one text may have before it is windowed or cut.
    """

    name: str
    dimension: int
    provider: str
    digest: str
    similarity_threshold: float
    max_sequence_tokens: int
