"""The value types shared by the layers; configuration types are in `core.configuration`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, NamedTuple
from uuid import UUID

import numpy as np
import numpy.typing as npt

from rag_resources.core.confidence import Confidence
from rag_resources.core.document_passages import DocumentPassage
from rag_resources.core.note_labels import note_label
from rag_resources.core.places import DocumentPlace
from rag_resources.core.query import TransformedQuery
from rag_resources.core.retrievers import KINDS, RETRIEVER_OF, RankedList
from rag_resources.core.text import Span


class ScoredSpan(NamedTuple):
    """A range of a text with a score in [0, 1]."""

    start: int
    end: int
    score: float

    def overlaps(self, span: Span) -> bool:
        """Whether it has a character in common with a span."""
        return self.start < span.end and span.start < self.end

    def moved(self, offset: int) -> "ScoredSpan":
        """Return it in a text that begins this many characters earlier."""
        return ScoredSpan(self.start + offset, self.end + offset, self.score)


Windows = tuple[ScoredSpan, ...]
"""The windows of a chunk with their similarity to a question, the nearest first."""

Vectors = npt.NDArray[np.float32]
"""Embeddings: `(n_texts, dimension)` or one `(dimension,)`, finite, L2-normalised."""


DateSource = Literal["field", "file_name", "title", "folder", "text", "git", "file_modified"]
"""Where the date of a note is from: a field states it, or it was found."""


@dataclass(frozen=True, slots=True)
class NoteRecord:
    """A note as read from a source, before it is stored.

    Attributes:
        external_id: Its identity within the source.
        title: May be empty.
        content: Not blank, no NUL.
        created_at: Timezone-aware; decides the partition.
        tags: In the order given, without repeats.
        metadata: All other fields of the source, as JSON values.
        location: Where it was read, for messages: file, or file and line.
        date_source: Where `created_at` is from.
    """

    external_id: str
    title: str
    content: str
    created_at: datetime
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    location: str = ""
    date_source: DateSource = "field"


@dataclass(frozen=True, slots=True)
class RejectedRecord:
    """A record that could not be read from a source: where, and why in Spanish."""

    location: str
    reason: str


@dataclass(frozen=True, slots=True)
class Note:
    """The part of a stored note that indexing and searches need.

    Attributes:
        tags: Empty in a search.
        external_id: Its id, for a note that came from no source. Empty in indexing.
    """

    note_id: UUID
    title: str
    content: str
    created_at: datetime
    tags: tuple[str, ...] = ()
    external_id: str = ""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage of a note: `note.content[start_char:end_char] == content`.

    Attributes:
        context: The contextual prefix, for the contextual vector.
        topics: The prefix without its fixed words, for full-text search.
        rendered: What a reader of the rendered note sees of it; None where that is the content.
    """

    chunk_id: UUID
    note_id: UUID
    chunk_index: int
    start_char: int
    end_char: int
    content: str
    context: str = ""
    topics: str = ""
    rendered: str | None = None

    @property
    def searched(self) -> str:
        """The text that words and vectors are made of."""
        return self.content if self.rendered is None else self.rendered


class Candidate(NamedTuple):
    """A chunk (or a whole note) in one ranked list.

    Attributes:
        chunk_id: The chunk; for a note searched as a whole, the note's id.
        note_id: Its note.
        score: Higher is better, in [0, 1], comparable only within the list.
        path: The entities through which the graph found it, from start to end; else empty.
    """

    chunk_id: UUID
    note_id: UUID
    score: float
    path: tuple[UUID, ...] = ()


@dataclass(frozen=True, slots=True)
class ScoredChunk:
    """A chunk after fusion.

    Attributes:
        score: In [0, 1].
        lists: The lists that contain it, in the order of the lists.
        original_score: Its score in the first list that contains it.
        rerank_score: A re-ranker's score, in [0, 1].
        path: As in `Candidate`.
    """

    chunk_id: UUID
    note_id: UUID
    score: float
    lists: tuple[RankedList, ...]
    original_score: float
    rerank_score: float | None = None
    path: tuple[UUID, ...] = ()


@dataclass(frozen=True, slots=True)
class RetrievalResult:
    """One passage of an answer. Property 5.

    Attributes:
        expanded_content: The passage with its neighbouring sentences, a substring of the note.
        matched_bounds: Offsets of `content` inside `expanded_content`.
        lists: The ranked lists that found it.
        original_score: The score before re-ranking; without re-ranking, the score in the first
            list that contains the passage.
        external_id: As in `Note`.
        rerank_score: The re-ranker's score, if there was re-ranking.
        start_char: Offset of `content` in the note.
        place: Where it is in its document; None if the note is not a section of one.
        document: Further facts about it as a part of its document; None without a place.
        windows: Its windows, as offsets in the note; empty if no windows were searched.
        causal_path: The entities through which the graph found it, start to end; empty if the
            graph did not find it. Property 23.
    """

    chunk_id: UUID
    note_id: UUID
    content: str
    expanded_content: str
    score: float
    chunk_index: int
    matched_bounds: tuple[int, int]
    lists: tuple[RankedList, ...]
    original_score: float
    title: str = ""
    external_id: str = ""
    created_at: datetime | None = None
    rerank_score: float | None = None
    start_char: int = 0
    place: DocumentPlace | None = None
    document: DocumentPassage | None = None
    windows: Windows = ()
    causal_path: tuple[UUID, ...] = ()

    @property
    def retrieval_method(self) -> str:
        """`semantic`, `fulltext`, `graph`, or `hybrid` if several of them found it."""
        kinds = {KINDS[RETRIEVER_OF[name]].searches_by for name in self.lists}
        return (
            {"vectors": "semantic", "words": "fulltext", "links": "graph"}[kinds.pop()]
            if len(kinds) == 1
            else "hybrid"
        )

    @property
    def end_char(self) -> int:
        """End of `content` in the note."""
        return self.start_char + len(self.content)

    @property
    def matched_window(self) -> tuple[int, int] | None:
        """Offsets in the note of the sentences that matched best; None if unknown."""
        return self.windows[0][:2] if self.windows else None

    @property
    def label(self) -> str:
        """What people are shown of its note."""
        return note_label(self.title, self.external_id, self.note_id)

    def to_json(self) -> dict[str, Any]:
        """Return the camelCase form of the command line, HTTP and the store.

        The metadata has a `place`, what a document adds, and a `matchedWindow` only if the passage
        has them.
        """
        place = {"place": self.place.to_json()} if self.place else {}
        if self.place and self.document:
            place |= self.document.to_json(self.place, self.content)
        window = {"matchedWindow": list(self.matched_window)} if self.matched_window else {}
        return {
            "chunkId": str(self.chunk_id),
            "noteId": str(self.note_id),
            "externalId": self.external_id,
            "title": self.title,
            "createdAt": self.created_at.isoformat() if self.created_at else None,
            "content": self.content,
            "expandedContent": self.expanded_content,
            "score": self.score,
            "metadata": {
                "chunkIndex": self.chunk_index,
                "matchedChunkBounds": {
                    "start": self.matched_bounds[0],
                    "end": self.matched_bounds[1],
                },
                "startChar": self.start_char,
                "endChar": self.end_char,
                "retrievalMethod": self.retrieval_method,
                "lists": list(self.lists),
                "originalScore": self.original_score,
                "rerankScore": self.rerank_score,
                "causalPath": [str(entity) for entity in self.causal_path] or None,
                **place,
                **window,
            },
        }


@dataclass(frozen=True, slots=True)
class RetrievalResponse:
    """The response of a retrieval.

    Attributes:
        stages: Milliseconds per stage, in order.
        transformed: The texts that were searched besides the question.
        degraded: Stages that failed or were skipped.
        messages: Messages to the user.
        error: Why nothing could be searched; it is one of the messages too. None if something was
            searched, even if nothing was found.
        causes: The errors, if nothing could be searched.
        cached: Whether it comes from the cache.
        confidence: The confidence that it is right; None if it was not judged.
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
    causes: tuple[Any, ...] = ()
    cached: bool = False
    confidence: Confidence | None = None

    def reworded(self, render: Callable[[str], str]) -> "RetrievalResponse":
        """Return the response with all messages rendered, for instance in another language."""
        return replace(
            self,
            messages=tuple(map(render, self.messages)),
            error=None if self.error is None else render(self.error),
            confidence=self.confidence and self.confidence.reworded(render),
        )

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
            "confidence": self.confidence.to_json() if self.confidence else None,
        }


INSTANT = timedelta(microseconds=1)
"""The smallest difference between two PostgreSQL times."""


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """A half-open time range with timezone-aware ends: one monthly partition, or several."""

    start: datetime
    end: datetime

    @classmethod
    def of_month(cls, moment: datetime) -> "TimeWindow":
        """Return the month of a moment, in UTC."""
        start = moment.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        later, month = divmod(start.month, 12)
        return cls(start, start.replace(year=start.year + later, month=month + 1))

    @classmethod
    def of_moment(cls, moment: datetime) -> "TimeWindow":
        """Return the shortest window that has this moment in it."""
        return cls(moment, moment + INSTANT)


UNMEASURED = (0.0, 1.0)
"""The range of cosines of a model about which nothing is known."""


@dataclass(frozen=True)
class ModelInfo:
    """What is known of an embedding model; table `embedding_models` stores all but the last field.

    Attributes:
        name: Short name; also the asset key `embeddings/<name>`, so letters, digits and `_` only.
        dimension: Dimension of its vectors.
        provider: Where it runs: `embedded`, `ollama` or `openai`.
        digest: Identifies the weights and the prefixes; if it changes, vectors change.
        similarity_threshold: Cosine below which a passage counts as unrelated, for this model.
        max_sequence_tokens: Longest text in model tokens before it is windowed or truncated.
        cosine_range: The cosines that map to 0 and to 1 on the fixed scale of scores. `UNMEASURED`
            until a sample of the notes has told it.
        varies_with_batch: Whether the last digits of a vector depend on the texts embedded with it.
    """

    name: str
    dimension: int
    provider: str
    digest: str
    similarity_threshold: float
    max_sequence_tokens: int
    cosine_range: tuple[float, float] = UNMEASURED
    varies_with_batch: bool = False
