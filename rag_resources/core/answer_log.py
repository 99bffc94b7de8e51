"""The log of answers: their rows, readers' verdicts, and the figures of a month.

Rows, and the writer of the log, are in `store.answers`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer
from pydantic.alias_generators import to_camel

from rag_resources.core.gate import Interval, wilson_interval
from rag_resources.core.metrics import percentile


class Outcome(StrEnum):
    """Whether a question was answered, and if not, why."""

    ANSWERED = "answered"

    MISSED = "missed"
    """Nothing was found, or no sentence that could answer."""

    WITHHELD = "withheld"
    """Something was found, but the answer was withheld because it was probably false."""

    FAILED = "failed"
    """Nothing could be searched, or the answer was cut off."""


class Verdict(StrEnum):
    """A reader's verdict on an answer, or on one of its citations."""

    UP = "up"
    DOWN = "down"


class KeptText(StrEnum):
    """Which texts the log keeps."""

    NONE = "none"
    QUESTION = "question"
    ALL = "all"
    """The sentences of the answer too, until a note that they were made from is deleted."""


Moment = Annotated[datetime, PlainSerializer(datetime.isoformat, when_used="json")]
"""A time, in JSON with its offset."""


class Logged(BaseModel):
    """What is logged, one type from the row to JSON, where its names are camelCase."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True
    )

    def to_json(self) -> dict[str, Any]:
        """Return the camelCase form."""
        return self.model_dump(mode="json", by_alias=True)


class LoggedCitation(Logged):
    """A citation without its text.

    Attributes:
        number: As the reader saw it, from 1.
        sentence: Position of the sentence that has it, from 0.
        start: Offset into the note's content, in code points.
        end: After the last character.
        content_sha256: Hash of the note's content when it was cited, in hex.
    """

    number: int
    sentence: int
    note_id: UUID
    start: int
    end: int
    content_sha256: str


class LoggedAnswer(Logged):
    """The row of an answer in the log.

    Attributes:
        question: None if texts are not kept.
        searched: The text searched instead, in a conversation; None if the question itself was.
        sentences: Their texts; None if they are not kept, or a note that they were made from is
            gone.
        filters: Conditions that the question implied, as JSON.
        intent: The kind of answer that was asked for; None if nothing could be searched.
        configuration: Its name, without its state.
        config_hash: None if the configuration is not known.
        answerer: Name and version of the answerer.
        language_model: The one that was asked; None if none is configured.
        confidence: As `Confidence.to_json`; None if there was nothing to judge.
        silence: As `Silence.to_json`; None if there was nothing to judge.
        stages: Milliseconds by stage.
        passages: The passages it was made from: `noteId`, `chunkId` and `score`, best first.
    """

    answer_id: UUID
    asked_at: Moment
    question: str | None
    language: str
    outcome: Outcome
    configuration: str
    embedding_model: str
    answerer: str
    searched: str | None = None
    sentences: tuple[str, ...] | None = None
    filters: dict[str, Any] = Field(default_factory=dict)
    intent: str | None = None
    config_hash: str | None = None
    language_model: str | None = Field(None, alias="model")
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    confidence: dict[str, Any] | None = None
    silence: dict[str, Any] | None = None
    stages: dict[str, float] = Field(default_factory=dict)
    degraded: tuple[str, ...] = ()
    citations: tuple[LoggedCitation, ...] = ()
    passages: tuple[dict[str, Any], ...] = ()

    @property
    def note_ids(self) -> list[UUID]:
        """The notes of its passages and citations, each once."""
        named = [
            *(UUID(passage["noteId"]) for passage in self.passages),
            *(citation.note_id for citation in self.citations),
        ]
        return list(dict.fromkeys(named))


class ListedAnswer(Logged):
    """An answer in a list.

    Attributes:
        question: None if texts are not kept.
        citations: Number of its citations.
        up: Number of good verdicts, on the whole or on a citation; `down` counts the bad ones.
    """

    answer_id: UUID
    asked_at: Moment
    question: str | None
    outcome: Outcome
    citations: int
    up: int = Field(alias="thumbsUp")
    down: int = Field(alias="thumbsDown")


class Feedback(Logged):
    """A reader's verdict.

    Attributes:
        citation: The number of a citation, from 1; None for the answer as a whole.
        comment: In the reader's words; None without any, or once a note of the answer is gone.
    """

    answer_id: UUID
    citation: int | None
    verdict: Verdict
    comment: str | None = None
    given_at: Moment | None = None


class LoggedOutcome(Logged):
    """The outcome of a logged question.

    Attributes:
        false_answers: The share of unanswerable questions that were answered when the threshold in
            use was measured; None without a calibration.
        latency_ms: Time of retrieval and answer.
        is_up: Whether its reader found the answer right.
        is_down: Whether its reader found it wrong.
    """

    outcome: Outcome
    false_answers: float | None = None
    latency_ms: float = 0.0
    is_up: bool = False
    is_down: bool = False
    citations_up: int = 0
    citations_down: int = 0


@dataclass(frozen=True, slots=True)
class AnswerFigures:
    """The figures of a period.

    Attributes:
        counts: Questions by outcome.
        miss_rate: Share of the questions that could be searched and got no answer; None if none
            could.
        miss_interval: Its 95 % interval by Wilson; None if `miss_rate` is.
        false_answers: The measured share of unanswerable questions that the thresholds in use
            answer: the mean over the calibrated questions; None if there are none. Which of the
            given answers were false, only their readers know.
        calibrated: How many questions that mean covers.
        up: Answers that their readers found right.
        down: Answers that they found wrong, as a whole or in a citation.
        p50_ms: Median latency of retrieval and answer; None without questions.
    """

    counts: Mapping[Outcome, int]
    miss_rate: float | None = None
    miss_interval: Interval | None = None
    false_answers: float | None = None
    calibrated: int = 0
    up: int = 0
    down: int = 0
    citations_up: int = 0
    citations_down: int = 0
    p50_ms: float | None = None
    p95_ms: float | None = None

    @property
    def questions(self) -> int:
        """Number of all questions."""
        return sum(self.counts.values())


def figures_of(asked: Sequence[LoggedOutcome]) -> AnswerFigures:
    """Return the figures of logged questions."""
    counts = {outcome: sum(own.outcome is outcome for own in asked) for outcome in Outcome}
    searched = len(asked) - counts[Outcome.FAILED]
    silent = counts[Outcome.MISSED] + counts[Outcome.WITHHELD]
    measured = [own.false_answers for own in asked if own.false_answers is not None]
    latencies = [own.latency_ms for own in asked]
    return AnswerFigures(
        counts,
        miss_rate=silent / searched if searched else None,
        miss_interval=wilson_interval(silent, searched) if searched else None,
        false_answers=sum(measured) / len(measured) if measured else None,
        calibrated=len(measured),
        up=sum(own.is_up for own in asked),
        down=sum(own.is_down or own.citations_down > 0 for own in asked),
        citations_up=sum(own.citations_up for own in asked),
        citations_down=sum(own.citations_down for own in asked),
        p50_ms=percentile(latencies, 0.5) if latencies else None,
        p95_ms=percentile(latencies, 0.95) if latencies else None,
    )
