"""An answer for a reader: sentences with citations, and the retrieval it was made from."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

from rag_resources.core.answer_log import Outcome
from rag_resources.core.citations import CitedAnswer
from rag_resources.core.confidence import Confidence, Silence
from rag_resources.core.question_reading import Reading

if TYPE_CHECKING:
    from rag_resources.application.wiring import Answered


@dataclass(frozen=True, slots=True)
class AnswerMetadata:
    """The model, time and tokens that an answer took.

    Attributes:
        model: The language model that was asked; None if none is configured.
        prompt_tokens: As its server counts them; None if it does not, or wrote nothing.
        completion_tokens: Likewise.
        mean_similarity: Mean score of the passages, in [0, 1]; None without passages.
        stages: Milliseconds by stage, of the retrieval and of the answer: `first_sentence` and
            `answer`, both since the retrieval ended.
        dropped: Sentences that were left out, because their sources do not support them.
    """

    model: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    mean_similarity: float | None = None
    stages: dict[str, float] = field(default_factory=dict)
    dropped: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the camelCase form."""
        prompt, completion = self.prompt_tokens, self.completion_tokens
        tokens = None
        if prompt is not None or completion is not None:
            tokens = {"prompt": prompt, "completion": completion}
        return {
            "model": self.model,
            "tokensUsed": tokens,
            "meanSimilarity": self.mean_similarity,
            "stages": self.stages,
            "droppedSentences": self.dropped,
        }


@dataclass(frozen=True, slots=True)
class Asked:
    """An answer with citations, and the retrieval that it was made from.

    Attributes:
        interruption: Why the answer ends early, and what was kept; None if it is complete.
        confidence: The confidence that it is right; None if nothing was found.
        silence: Whether the answer was withheld; None if nothing was found.
        reading: How the question was read.
        answer_id: Its id in the log, to which feedback refers.
    """

    answer: CitedAnswer
    retrieval: "Answered"
    reading: Reading
    metadata: AnswerMetadata = field(default_factory=AnswerMetadata)
    interruption: str | None = None
    confidence: Confidence | None = None
    silence: Silence | None = None
    answer_id: UUID = field(default_factory=uuid4)

    @property
    def outcome(self) -> Outcome:
        """Whether the question was answered, and if not, why."""
        if self.error:
            return Outcome.FAILED
        if self.answer.found:
            return Outcome.ANSWERED
        is_withheld = self.silence is not None and self.silence.is_silent and self.silence.point
        return Outcome.WITHHELD if is_withheld else Outcome.MISSED

    @property
    def error(self) -> str | None:
        """Why there is no complete answer; None if there is."""
        return self.retrieval.response.error or self.interruption

    def reworded(self, render: Callable[[str], str]) -> "Asked":
        """Return it with all messages about it rendered, for instance in another language."""
        answer, retrieval = self.answer, self.retrieval
        return replace(
            self,
            answer=replace(answer, notice=render(answer.notice)),
            retrieval=replace(retrieval, response=retrieval.response.reworded(render)),
            interruption=None if self.interruption is None else render(self.interruption),
            confidence=self.confidence.reworded(render) if self.confidence else None,
            silence=self.silence.reworded(render) if self.silence else None,
            reading=self.reading.reworded(render),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the camelCase form of the command line."""
        response = self.retrieval.response
        return (
            {"answerId": str(self.answer_id)}
            | self.answer.to_json()
            | {
                "metadata": {
                    **self.retrieval.origin_to_json(),
                    "embeddingModel": response.model,
                    "passages": len(response.results),
                    "degraded": list(response.degraded),
                    "messages": list(response.messages),
                    **self.metadata.to_json(),
                },
                "confidence": self.confidence.to_json() if self.confidence else None,
                "silence": self.silence.to_json() if self.silence else None,
                "reading": self.reading.to_json(),
                "error": self.error,
            }
        )
