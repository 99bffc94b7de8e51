"""The bodies of requests and answers, in camelCase; the OpenAPI schema is made from them."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, StrictBool, model_validator
from pydantic.alias_generators import to_camel

from rag_resources.core.configuration import Strategy
from rag_resources.core.filters import RetrievalFilters, ShortText
from rag_resources.core.query import MAX_QUERY_CHARS
from rag_resources.core.validation import check_writable
from rag_resources.store.document_list import DocumentSummary
from rag_resources.store.evaluation_requests import EvaluationRequest


class Body(BaseModel):
    """A request: unknown fields are refused by name, and so are texts that cannot be stored."""

    model_config = ConfigDict(
        extra="forbid",
        alias_generator=to_camel,
        frozen=True,
        validate_by_name=True,
        validate_by_alias=True,
    )

    @model_validator(mode="before")
    @classmethod
    def _writable(cls, given: Any) -> Any:
        if isinstance(given, Mapping):
            check_writable(given)
        return given


Share = Annotated[float, Field(ge=0, le=1)]
MOST_TURNS = 20
"""Most earlier turns of a conversation that are used."""
Question = Annotated[str, Field(min_length=1, max_length=MAX_QUERY_CHARS)]


Ignored = Annotated[
    tuple[Annotated[str, Field(min_length=1, max_length=200)], ...], Field(max_length=50)
]
"""Implied conditions that were revoked, by their text."""


class FiltersInCamelCase(RetrievalFilters):
    """Conditions on the notes, all of which must hold."""

    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True)

    def as_filters(self) -> RetrievalFilters:
        """Return them as the core's filters."""
        return RetrievalFilters.model_validate(self.model_dump())


class Depths(Body):
    """How many passages each stage passes on."""

    retrieval: int | None = None
    reranking: int | None = None
    final: Annotated[int, Field(ge=1, le=50)] | None = None


class HybridSearch(Body):
    """How the lists of both kinds of search are fused; `rrfK` means reciprocal rank fusion."""

    enabled: StrictBool | None = None
    rrf_k: Annotated[int, Field(ge=1, le=10_000)] | None = None
    semantic_weight: Share | None = None
    fulltext_weight: Share | None = None


class Switch(Body):
    """A stage that may be switched off; more fields of it as in a configuration's file."""

    model_config = ConfigDict(extra="allow")

    enabled: StrictBool | None = None


class QueryTransformation(Body):
    """What is searched besides the question itself."""

    enabled: StrictBool | None = None
    enable_hyde: StrictBool | None = Field(None, alias="enableHyDE")


class SearchConfig(Body):
    """Changes of a configuration; every other field of one may be given as in its file."""

    model_config = ConfigDict(extra="allow")

    strategy: Strategy | None = None
    top_k: Depths | None = None
    hybrid_search: HybridSearch | None = None
    reranking: Switch | None = None
    query_transformation: QueryTransformation | None = None

    def overrides(self) -> dict[str, Any]:
        """Return the changes by the names of a configuration."""
        changes = self.model_dump(exclude_none=True, mode="json")
        hybrid = changes.pop("hybrid_search", {})
        transformed = changes.pop("query_transformation", {})
        if "enable_hyde" in transformed:
            transformed["hyde"] = transformed.pop("enable_hyde")
        if transformed:
            changes["transformation"] = transformed | changes.get("transformation", {})
        if "rrf_k" in hybrid:
            changes["fusion"] = {"method": "rrf", "rank_constant": hybrid["rrf_k"]}
        if hybrid.get("enabled") is False:
            changes.setdefault("strategy", "semantic")
        weights = {
            "vectors": hybrid.get("semantic_weight"),
            "words": hybrid.get("fulltext_weight"),
        }
        return (
            changes | {"weights": weights}
            if any(each is not None for each in weights.values())
            else changes
        )


class Search(Body):
    """A question, and how to search.

    Attributes:
        configuration: Name of a configuration; by default the one that serves.
        strategy: How it is searched; as `config.strategy`.
        config: Fields of it to change, at any depth.
        top_k: Number of passages.
        filters: Conditions on the notes, as in `RetrievalFilters`, in camelCase.
        language: Of the question and of what is said about it. With `auto` the question is read in
            the language in which it is written, and what is said is in that of `Accept-Language`.
    """

    query: Question
    configuration: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    strategy: Strategy | None = None
    config: SearchConfig = SearchConfig()
    top_k: Annotated[int, Field(ge=1, le=50, strict=True)] | None = None
    filters: FiltersInCamelCase | None = None
    language: Literal["es", "fr", "en", "auto"] | None = None

    def overrides(self) -> dict[str, Any]:
        """Return the changes of the configuration."""
        strategy = {"strategy": self.strategy.value} if self.strategy else {}
        return self.config.overrides() | strategy


class AnswerRequest(Search):
    """A question to answer; with `stream` sentence by sentence, as server-sent events.

    Attributes:
        conversation: The questions before, as they were searched, oldest first.
        ignored: Conditions that the question implies and that were revoked, by their text.
    """

    stream: StrictBool = False
    conversation: tuple[Question, ...] = Field((), max_length=MOST_TURNS)
    ignored: Ignored = ()

    def reading(self) -> dict[str, Any]:
        """Return how the question is to be read, as `Answers.stream` takes it."""
        return {
            "conversation": self.conversation,
            "ignored": self.ignored,
        }


class QueryRequest(Body):
    """The request of `/api/v1/query`."""

    query: Question
    top_k: Annotated[int, Field(ge=1, strict=True)] | None = None
    source: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    tags: Annotated[tuple[ShortText, ...], Field(min_length=1, max_length=20)] | None = None
    document_id: UUID | None = None
    similarity_threshold: Annotated[float, Field(ge=0, le=1, strict=True)] | None = None


class FeedbackBody(Body):
    """A thumb up or down for an answer, or for one of its citations, by its number."""

    answer_id: UUID
    verdict: Literal["up", "down"]
    citation: Annotated[int, Field(ge=1, le=1_000, strict=True)] | None = None
    comment: str = ""


class NoteChanges(Body):
    """Fields of a note's metadata to change; null takes one away."""

    metadata: dict[str, Any]


class DocumentChanges(NoteChanges):
    """The title of a document, and fields of its metadata, to change."""

    title: Annotated[str, Field(min_length=1, max_length=300)] | None = None
    metadata: dict[str, Any] = {}


class DeletedAddress(Body):
    """The address that a deleted document had, as its `address` said."""

    address: Annotated[str, Field(min_length=1, max_length=2_000)]


class EvaluationBody(Body):
    """What to measure: a configuration by its name; by default the one that serves."""

    configuration: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    config: SearchConfig = SearchConfig()
    category: Literal["factual", "causal", "temporal", "comparative", "multi-part"] | None = None


class ChatMessage(BaseModel):
    """A message of a conversation in OpenAI's form."""

    model_config = ConfigDict(extra="ignore")

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[dict[str, Any]] | None = None

    @property
    def text(self) -> str:
        """The text of the message, its parts joined."""
        if isinstance(self.content, list):
            texts = (part.get("text") for part in self.content if part.get("type") == "text")
            return "\n".join(text for text in texts if isinstance(text, str))
        return self.content or ""


class StreamOptions(BaseModel):
    """What a stream has besides its text."""

    include_usage: StrictBool = False


class ChatRequest(Body):
    """A conversation in OpenAI's form; what does not apply here, as `temperature`, is ignored.

    Attributes:
        ignored: As of `AnswerRequest`, beside OpenAI's fields.
    """

    model_config = ConfigDict(extra="ignore", alias_generator=None)

    model: Annotated[str, Field(min_length=1, max_length=100)]
    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=1_000)]
    stream: StrictBool | None = None
    stream_options: StreamOptions | None = None
    ignored: Ignored = ()


class EmbeddingsRequest(Body):
    """Texts to embed as passages, in OpenAI's form."""

    model_config = ConfigDict(extra="ignore", alias_generator=None)

    model: Annotated[str, Field(min_length=1, max_length=100)]
    input: Question | Annotated[list[Question], Field(min_length=1, max_length=256)]
    encoding_format: Literal["float", "base64"] = "float"


class GoldenBody(Body):
    """The fields of a golden question, all optional, as in a file."""

    query: str | None = None
    relevant_note_ids: list[UUID] | None = None
    relevant_notes: list[str] | None = None
    expected_answer: str | None = None
    category: str | None = None
    difficulty: Annotated[int, Field(strict=True)] | None = None
    tags: list[str] | None = None
    places: list[dict[str, Any]] | None = None

    def fields(self) -> dict[str, Any]:
        """Return the fields that were given."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)


class GoldenFile(Body):
    """A whole golden dataset, as it is exported."""

    entries: list[Any]


class Written(BaseModel):
    """An answer, or a part of one."""

    model_config = ConfigDict(
        alias_generator=to_camel, validate_by_name=True, validate_by_alias=True
    )


class Bounds(Written):
    """A range of characters."""

    start: int
    end: int


class ResultMetadata(Written):
    """How a passage was found; one of a document has more."""

    model_config = ConfigDict(extra="allow")

    chunk_index: int
    matched_chunk_bounds: Bounds
    start_char: int
    end_char: int
    retrieval_method: Literal["semantic", "fulltext", "hybrid", "graph"]
    lists: list[str]
    original_score: float
    rerank_score: float | None
    causal_path: list[str] | None


class Result(Written):
    """A passage."""

    chunk_id: UUID
    note_id: UUID
    external_id: str
    title: str
    created_at: str | None
    content: str
    expanded_content: str
    score: Share
    metadata: ResultMetadata


class SearchMetadata(Written):
    """How a question was searched."""

    query: str

    model_config = ConfigDict(extra="allow")

    configuration: str | None
    promoted: bool
    strategy: str
    model: str
    latency_ms: float
    stages: dict[str, float]
    degraded: list[str]
    messages: list[str]
    cached: bool
    transformed_query: dict[str, Any] | None


class Found(Written):
    """The answer to a search."""

    results: list[Result]
    metadata: SearchMetadata
    confidence: dict[str, Any] | None
    message: str | None = None


class QueryResult(Written):
    """A passage, and the document or note it is of; its score is compared with the threshold."""

    document_id: UUID
    title: str
    chunk_index: int
    snippet: str
    score: Share
    source: str | None = None
    tags: list[str] | None = None


class QueryResults(Written):
    """The answer to a query, best first."""

    results: list[QueryResult]
    message: str | None = None


class DocumentRows(Written):
    """The latest documents, and how many there are."""

    documents: list[DocumentSummary]
    total: int


class EvaluationMetrics(Written):
    """What was measured; null what nothing could judge. Latencies in milliseconds."""

    hit_rate_k1: Share
    hit_rate_k3: Share
    hit_rate_k5: Share
    hit_rate_k10: Share
    mrr: Share
    faithfulness: Share | None
    answer_relevance: Share | None
    latency_p50: float
    latency_p95: float
    latency_p99: float


class Evaluated(Written):
    """A finished evaluation, to whoever asked for it."""

    evaluation_id: UUID
    config_hash: str
    metrics: EvaluationMetrics
    total_queries: int
    timestamp: datetime


class EvaluationRow(Written):
    """A finished evaluation: its metrics and what it was measured on."""

    id: UUID
    configuration: str
    config_hash: str
    config: dict[str, Any]
    model: str
    golden_hash: str
    gate: str
    metrics: EvaluationMetrics
    served_hit_rate: float
    breakdown: dict[str, dict[str, float]]
    total_queries: int
    failed_queries: int
    timestamp: datetime


class Evaluations(Written):
    """Finished evaluations, newest first."""

    evaluations: list[EvaluationRow]


class Tag(Written):
    """A tag, and how many notes have it."""

    tag: str
    notes: int


class Tags(Written):
    """The tags of the notes."""

    tags: list[Tag]


class Who(Written):
    """Whose notes a key shows, and what it may do."""

    tenant: str
    role: Literal["owner", "writer", "reader"]
    key_id: str | None


class FeedbackRow(Written):
    """What is stored of a thumb."""

    answer_id: UUID
    citation: int | None
    verdict: Literal["up", "down"]
    comment: str | None


class RequestedEvaluation(EvaluationRequest):
    """An evaluation that was asked for; `evaluation` once it is done."""

    evaluation: EvaluationRow | None = None
