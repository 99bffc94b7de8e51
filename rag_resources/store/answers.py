"""Rows of `answers` and `feedback`. Their types are in `core.answer_log`.

`answers.log` writes the answers in the background.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from rag_resources.core.answer_log import (
    AskedQuestion,
    Feedback,
    LoggedAnswer,
    LoggedCitation,
    Outcome,
    Verdict,
)
from rag_resources.core.types import TimeWindow
from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries

_UUID_DIGITS = 32


@dataclass(frozen=True, slots=True)
class ListedAnswer:
    """An answer in a list.

    Attributes:
        question: None if texts are not kept.
        citations: Number of its citations.
        up: Number of good verdicts, on the whole or on a citation; `down` counts the bad ones.
    """

    answer_id: UUID
    asked_at: datetime
    question: str | None
    outcome: Outcome
    citations: int
    up: int
    down: int


def insert_answers(
    connection: Connection, answers: Sequence[LoggedAnswer], *, keep_days: int
) -> None:
    """Write some answers, and delete those older than `keep_days`.

    A trigger removes the texts of an answer whose notes are gone by now.
    """
    queries().insert_answer(connection, [_row(answer) for answer in answers])
    delete_old_answers(connection, keep_days=keep_days)


def delete_old_answers(connection: Connection, *, keep_days: int) -> None:
    """Delete the answers older than `keep_days`, with their feedback."""
    queries().delete_old_answers(connection, days=keep_days)


def find_answers(connection: Connection, prefix: str) -> list[LoggedAnswer]:
    """Return the answers whose id has a prefix: none, the only one, or two of several.

    Args:
        connection: Any.
        prefix: Hexadecimal digits with or without hyphens; anything else matches nothing.
    """
    digits = prefix.strip().lower().replace("-", "")
    if not digits or len(digits) > _UUID_DIGITS or set(digits) - set("0123456789abcdef"):
        return []
    first, last = (UUID(digits.ljust(_UUID_DIGITS, fill)) for fill in "0f")
    return [_answer(row) for row in queries().find_answers(connection, first=first, last=last)]


def list_answers(connection: Connection, *, limit: int) -> list[ListedAnswer]:
    """Return the latest answers, latest first."""
    return [
        ListedAnswer(
            row.id,
            row.asked_at,
            row.question,
            Outcome(row.outcome),
            row.citations,
            row.up,
            row.down,
        )
        for row in queries().list_answers(connection, row_limit=limit)
    ]


def write_feedback(connection: Connection, feedback: Feedback) -> None:
    """Write a verdict on a stored answer; it replaces the previous one."""
    queries().write_feedback(
        connection,
        answer_id=feedback.answer_id,
        citation=feedback.citation or 0,
        verdict=feedback.verdict.value,
        comment=feedback.comment,
    )


def fetch_feedback(connection: Connection, answer_id: UUID) -> list[Feedback]:
    """Return the verdicts on an answer: first on the whole, then by citation."""
    return [
        Feedback(answer_id, row.citation or None, Verdict(row.verdict), row.comment, row.given_at)
        for row in queries().fetch_feedback(connection, answer_id=answer_id)
    ]


def asked_between(connection: Connection, window: TimeWindow) -> list[AskedQuestion]:
    """Return the logged questions of a period, in the order in which they were asked."""
    rows = queries().answers_between(connection, first=window.start, after_last=window.end)
    return [
        AskedQuestion(
            outcome=Outcome(row.outcome),
            false_answers=(row.silence or {}).get("falseAnswers"),
            latency_ms=row.stages.get("whole", 0.0),
            is_up=row.up,
            is_down=row.down,
            citations_up=row.citations_up,
            citations_down=row.citations_down,
        )
        for row in rows
    ]


def _row(answer: LoggedAnswer) -> dict[str, Any]:
    return {
        "id": answer.answer_id,
        "asked_at": answer.asked_at,
        "question": answer.question,
        "searched": answer.searched,
        "sentences": None if answer.sentences is None else list(answer.sentences),
        "filters": Jsonb(dict(answer.filters)),
        "language": answer.language,
        "intent": answer.intent,
        "configuration": answer.configuration,
        "config_hash": answer.config_hash,
        "embedding_model": answer.embedding_model,
        "answerer": answer.answerer,
        "language_model": answer.language_model,
        "prompt_tokens": answer.prompt_tokens,
        "completion_tokens": answer.completion_tokens,
        "outcome": answer.outcome.value,
        "confidence": _json_or_null(answer.confidence),
        "silence": _json_or_null(answer.silence),
        "stages": Jsonb(dict(answer.stages)),
        "degraded": list(answer.degraded),
        "citations": Jsonb([citation.to_json() for citation in answer.citations]),
        "passages": Jsonb([dict(passage) for passage in answer.passages]),
        "note_ids": list(answer.note_ids),
    }


def _json_or_null(value: Any) -> Jsonb | None:
    return None if value is None else Jsonb(dict(value))


def _answer(row: Any) -> LoggedAnswer:
    return LoggedAnswer(
        answer_id=row.id,
        asked_at=row.asked_at,
        question=row.question,
        language=row.language,
        outcome=Outcome(row.outcome),
        configuration=row.configuration,
        embedding_model=row.embedding_model,
        answerer=row.answerer,
        searched=row.searched,
        sentences=None if row.sentences is None else tuple(row.sentences),
        filters=row.filters,
        intent=row.intent,
        config_hash=row.config_hash,
        language_model=row.language_model,
        prompt_tokens=row.prompt_tokens,
        completion_tokens=row.completion_tokens,
        confidence=row.confidence,
        silence=row.silence,
        stages=row.stages,
        degraded=tuple(row.degraded),
        citations=tuple(LoggedCitation.from_json(own) for own in row.citations),
        passages=tuple(row.passages),
    )
