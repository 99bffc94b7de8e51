"""The bodies of requests and answers, in camelCase; the OpenAPI schema is made from them."""

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, StrictBool
from pydantic.alias_generators import to_camel

from rag_resources.core.filters import RetrievalFilters
from rag_resources.core.query import MAX_QUERY_CHARS


class Body(BaseModel):
    """A request: unknown fields are refused by name."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, frozen=True)


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


class Search(Body):
    """A question, and how to search.

    Attributes:
        configuration: Name of a configuration; by default the one that serves.
        config: Fields of it to change, at any depth, named as in its file.
        top_k: Number of passages.
        filters: Conditions on the notes, as in `RetrievalFilters`, in camelCase.
        language: Of the question and of what is said about it. With `auto` the question is read in
            the language in which it is written, and what is said is in that of `Accept-Language`.
    """

    query: Question
    configuration: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    config: dict[str, Any] = {}
    top_k: Annotated[int, Field(ge=1, le=50, strict=True)] | None = None
    filters: FiltersInCamelCase | None = None
    language: Literal["es", "fr", "en", "auto"] | None = None


class AnswerRequest(Search):
    """A question to answer; with `stream` sentence by sentence, as server-sent events.

    Attributes:
        conversation: The questions before, as they were searched, oldest first.
        ignored: Conditions that the question implies and that were revoked, by their text.
        literal: Whether the question is searched as it is, without what it implies.
    """

    stream: StrictBool = False
    conversation: tuple[Question, ...] = Field((), max_length=MOST_TURNS)
    ignored: Ignored = ()
    literal: StrictBool = False

    def reading(self) -> dict[str, Any]:
        """Return how the question is to be read, as `Answers.stream` takes it."""
        return {
            "conversation": self.conversation,
            "ignored": self.ignored,
            "literal": self.literal,
        }


class QueryRequest(Body):
    """The request of `/api/v1/query`."""

    query: Question
    top_k: Annotated[int, Field(ge=1, strict=True)] | None = None
    source: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    tags: tuple[Annotated[str, Field(min_length=1, max_length=200)], ...] = Field((), max_length=20)
    similarity_threshold: Annotated[float, Field(ge=0, le=1, strict=True)] | None = None


class FeedbackBody(Body):
    """A thumb up or down for an answer, or for one of its citations, by its number."""

    answer_id: UUID
    verdict: Literal["up", "down"]
    citation: Annotated[int, Field(ge=1, le=1_000, strict=True)] | None = None
    comment: str = ""


class EvaluationBody(Body):
    """What to measure: a configuration by its name; by default the one that serves."""

    configuration: Annotated[str, Field(min_length=1, max_length=100)] | None = None


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


class ChatRequest(BaseModel):
    """A conversation in OpenAI's form; what does not apply here, as `temperature`, is ignored.

    Attributes:
        ignored: As of `AnswerRequest`, beside OpenAI's fields; likewise `literal`.
    """

    model_config = ConfigDict(extra="ignore")

    model: Annotated[str, Field(min_length=1, max_length=100)]
    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=1_000)]
    stream: StrictBool = False
    ignored: Ignored = ()
    literal: StrictBool = False


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

    model_config = ConfigDict(alias_generator=to_camel)


class Bounds(Written):
    """A range of characters."""

    start: int
    end: int


class ResultMetadata(Written):
    """How a passage was found; one of a document has more."""

    model_config = ConfigDict(extra="allow", alias_generator=to_camel)

    chunk_index: int
    matched_chunk_bounds: Bounds
    start_char: int
    end_char: int
    retrieval_method: str
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
    score: Annotated[float, Field(ge=0, le=1)]
    metadata: ResultMetadata


class SearchMetadata(Written):
    """How a question was searched."""

    model_config = ConfigDict(extra="allow", alias_generator=to_camel)

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

    query: str
    results: list[Result]
    metadata: SearchMetadata
    confidence: dict[str, Any] | None
    message: str | None = None


class DocumentRow(Written):
    """A document: what it is, and how far it is in each stage."""

    model_config = ConfigDict(extra="allow", alias_generator=to_camel)

    id: UUID
    title: str
    status: str
    stages: dict[str, str]
    arrived_at: str


class DocumentRows(Written):
    """The latest documents, and how many there are."""

    documents: list[DocumentRow]
    total: int


class EvaluationRow(Written):
    """A finished evaluation: its metrics and what it was measured on."""

    model_config = ConfigDict(extra="allow", alias_generator=to_camel)

    id: UUID
    configuration: str
    config_hash: str
    created_at: str


class Evaluations(Written):
    """Finished evaluations, newest first."""

    evaluations: list[EvaluationRow]


class Note(Written):
    """A note; `documentId` and `headings` if it is a section of a document."""

    model_config = ConfigDict(extra="allow", alias_generator=to_camel)

    id: UUID
    external_id: str
    title: str
    content: str
    created_at: str
    content_sha256: str = Field(alias="contentSha256")
    tags: list[str]


class Tag(Written):
    """A tag, and how many notes have it."""

    tag: str
    notes: int


class Tags(Written):
    """The tags of the notes."""

    tags: list[Tag]


class Who(Written):
    """Whose notes a key shows, and what it may do; `scoped` if only search, within filters."""

    tenant: str
    role: Literal["owner", "writer", "reader"]
    scoped: bool
    key_id: str | None


class FeedbackRow(Written):
    """What is stored of a thumb."""

    answer_id: UUID
    citation: int | None
    verdict: Literal["up", "down"]
    comment: str | None


class RequestedEvaluation(Written):
    """An evaluation that was asked for; `evaluation` once it is done."""

    id: UUID
    configuration: str
    state: Literal["queued", "running", "done", "failed"]
    requested_at: str
    started_at: str | None
    finished_at: str | None
    attempts: int
    evaluation_id: UUID | None
    error: str | None
    evaluation: EvaluationRow | None = None
