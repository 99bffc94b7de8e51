"""Use cases of the log of answers: recording them, feedback of readers, and figures."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from rag_resources.answers.citing import CitationNow, citations_now
from rag_resources.application.asked import Asked
from rag_resources.core.answer_log import (
    AnswerFigures,
    Feedback,
    KeptText,
    ListedAnswer,
    LoggedAnswer,
    LoggedCitation,
    Verdict,
    figures_of,
)
from rag_resources.core.citations import numbered
from rag_resources.core.confidence import Confidence, Silence
from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.quoting import shown
from rag_resources.core.text import storable
from rag_resources.core.types import TimeWindow
from rag_resources.database.background import BackgroundWriter
from rag_resources.database.pool import Connection, Database
from rag_resources.languages.messages import _, about, to_stored
from rag_resources.settings import Settings
from rag_resources.store.answers import (
    delete_old_answers,
    fetch_feedback,
    find_answers,
    list_answers,
    outcomes_between,
    write_feedback,
)

MAX_COMMENT_CHARS = 2_000


@dataclass(frozen=True, slots=True)
class ShownAnswer:
    """An earlier answer, with its citations as the notes are now.

    Attributes:
        citations: In the order of their numbers.
    """

    answer: LoggedAnswer
    citations: tuple[CitationNow, ...]
    feedback: tuple[Feedback, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the camelCase form."""
        return {
            **self.answer.to_json(),
            "citations": [own.to_json() for own in self.citations],
            "feedback": [own.to_json() for own in self.feedback],
        }


@dataclass(frozen=True, slots=True)
class AnswerLog:
    """The answers that were given to the readers of one tenant.

    Attributes:
        writer: Writes them in the background.
    """

    database: Database
    settings: Settings
    writer: BackgroundWriter[LoggedAnswer]

    def record(self, asked: Asked, language: str) -> None:
        """Queue an answer to be written; does no input or output, and never fails."""
        self.writer.put(
            logged(asked, language, datetime.now(UTC), KeptText(self.settings.answer_log_text))
        )

    def give_feedback(
        self,
        answer_id: UUID | str,
        verdict: Verdict | str,
        *,
        citation: int | None = None,
        comment: str = "",
    ) -> Feedback:
        """Store a reader's verdict on an answer; it replaces an earlier verdict.

        Args:
            answer_id: The answer's id, or its beginning.
            verdict: `up` or `down`.
            citation: The number of one of its citations; None for the answer as a whole.
            comment: In the reader's words; may be empty.

        Raises:
            InvalidParameterError: There is no such answer, citation or verdict, or the comment is
                too long.
        """
        chosen = _verdict(verdict)
        if len(comment) > MAX_COMMENT_CHARS:
            raise InvalidParameterError(
                about(
                    "comment",
                    _("has more than {max_length} characters or values").format(
                        max_length=MAX_COMMENT_CHARS
                    ),
                ),
                field="comment",
            )
        self.writer.flush()
        with self.database.transaction() as connection:
            answer = _find(connection, str(answer_id))
            _check_citation(answer, citation)
            given = Feedback(
                answer_id=answer.answer_id,
                citation=citation,
                verdict=chosen,
                comment=storable(comment).strip() or None,
            )
            write_feedback(connection, given)
            stored = fetch_feedback(connection, answer.answer_id)
        return next(own for own in stored if own.citation == citation)

    def show(self, answer_id: UUID | str) -> ShownAnswer:
        """Return an earlier answer, with its citations as the notes are now.

        Args:
            answer_id: The answer's id, or its beginning.

        Raises:
            InvalidParameterError: There is no such answer, or there are several.
        """
        self.writer.flush()
        with self.database.snapshot() as connection:
            answer = _find(connection, str(answer_id))
            citations = citations_now(connection, answer.citations)
            return ShownAnswer(
                answer, citations, tuple(fetch_feedback(connection, answer.answer_id))
            )

    def latest(self, *, limit: int) -> list[ListedAnswer]:
        """Return the latest answers, latest first."""
        self.writer.flush()
        with self.database.transaction() as connection:
            return list_answers(connection, limit=limit)

    def figures(self, window: TimeWindow) -> AnswerFigures:
        """Return the figures of a period."""
        with self.database.transaction() as connection:
            return figures_of(outcomes_between(connection, window))

    def delete_old(self) -> None:
        """Delete the answers that are older than the settings allow."""
        with self.database.transaction() as connection:
            delete_old_answers(connection)


def logged(asked: Asked, language: str, at: datetime, kept: KeptText) -> LoggedAnswer:
    """Return the row of an answer for the log, with only the texts that may be kept."""
    retrieved, metadata, answer = asked.retrieval, asked.metadata, asked.answer
    response = retrieved.response
    numbers = numbered(answer.sentences)
    citations = tuple(
        LoggedCitation(
            number=numbers[own],
            sentence=position,
            note_id=own.note_id,
            start=own.start,
            end=own.end,
            content_sha256=own.content_sha256.hex(),
        )
        for position, sentence in enumerate(answer.sentences)
        for own in sentence.citations
    )
    return LoggedAnswer(
        answer_id=asked.answer_id,
        asked_at=at,
        question=None if kept is KeptText.NONE else storable(answer.question),
        language=language,
        outcome=asked.outcome,
        configuration=retrieved.name,
        embedding_model=response.model,
        answerer=answer.answerer,
        sentences=tuple(storable(own.text) for own in answer.sentences)
        if kept is KeptText.ALL
        else None,
        searched=_searched_instead(asked, kept),
        filters={"implied": [own.to_json() for own in asked.reading.implied]}
        if asked.reading.implied and kept is not KeptText.NONE
        else {},
        intent=_intent(asked),
        config_hash=retrieved.config.config_hash if retrieved.config else None,
        language_model=metadata.model,
        prompt_tokens=metadata.prompt_tokens,
        completion_tokens=metadata.completion_tokens,
        confidence=_without_words(asked.confidence),
        silence=_without_words(asked.silence),
        stages={
            **metadata.stages,
            "whole": response.latency_ms + metadata.stages.get("answer", 0.0),
        },
        degraded=response.degraded,
        citations=citations,
        passages=tuple(
            {"noteId": str(own.note_id), "chunkId": str(own.chunk_id), "score": own.score}
            for own in response.results
        ),
    )


def _searched_instead(asked: Asked, kept: KeptText) -> str | None:
    reading = asked.reading
    if reading.searched == reading.question or kept is KeptText.NONE:
        return None
    return storable(reading.searched)


def _intent(asked: Asked) -> str | None:
    transformed = asked.retrieval.response.transformed
    return transformed.intent.value if transformed else None


def _without_words(judged: Confidence | Silence | None) -> dict[str, Any] | None:
    """Return the stored form: a reason by its code, never in words. Property 53."""
    if judged is None:
        return None
    stored = judged.to_json()
    return stored if judged.missing is None else stored | {"missing": to_stored(judged.missing)}


def _find(connection: Connection, prefix: str) -> LoggedAnswer:
    found = find_answers(connection, prefix)
    if len(found) == 1:
        return found[0]
    message = (
        _("Several answers begin with “{prefix}”. Give more digits.")
        if found
        else _(
            "There is no answer “{prefix}”: there never was, or it is no longer kept. “rag "
            "answers list” shows the latest ones."
        )
    )
    raise InvalidParameterError(message.format(prefix=shown(prefix)), field="answerId")


def _verdict(given: Verdict | str) -> Verdict:
    try:
        return Verdict(given)
    except ValueError:
        message = _("“{value}” is not a verdict: write up (useful) or down (not useful).").format(
            value=shown(given)
        )
        raise InvalidParameterError(message, field="verdict") from None


def _check_citation(answer: LoggedAnswer, citation: int | None) -> None:
    count = len({own.number for own in answer.citations})
    if citation is not None and not 1 <= citation <= count:
        message = (
            _("The answer has no citation {value}: it has {count}.").format(
                value=citation, count=count
            )
            if count
            else _("The answer has no citations; judge it as a whole, without a citation's number.")
        )
        raise InvalidParameterError(message, field="citation")
