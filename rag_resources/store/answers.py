"""Rows of `answers` and `feedback`. Their types are in `core.answer_log`."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from rag_resources.core.answer_log import Feedback, ListedAnswer, LoggedAnswer, LoggedOutcome
from rag_resources.core.types import TimeWindow
from rag_resources.database.background import WRITE_MS, BackgroundWriter
from rag_resources.database.pool import Connection, Database
from rag_resources.database.queries import queries

KEPT_DAYS = 365
_UUID_DIGITS = 32
_JSON = ("filters", "confidence", "silence", "stages", "citations", "passages")


def answer_writer(
    database: Database,
    *,
    write_ms: float = WRITE_MS,
) -> BackgroundWriter[LoggedAnswer]:
    """Return the background writer of the answer log: no question waits for it, or fails by it.

    It writes each answer at once, because feedback may soon follow and name its id.

    Args:
        database: Where the table is.
        write_ms: Longest time of a write.
    """
    return BackgroundWriter(
        database,
        insert_answers,
        name="answer_log",
        write_ms=write_ms,
    )


def insert_answers(connection: Connection, answers: Sequence[LoggedAnswer]) -> None:
    """Write some answers, and delete those older than `KEPT_DAYS`.

    A trigger removes the texts of an answer whose notes are gone by now.
    """
    queries().insert_answer(connection, [_row(answer) for answer in answers])
    delete_old_answers(connection)


def delete_old_answers(connection: Connection) -> None:
    """Delete the answers older than `KEPT_DAYS`, with their feedback."""
    queries().delete_old_answers(connection, days=KEPT_DAYS)


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
    rows = queries().find_answers(connection, first=first, last=last)
    return [LoggedAnswer(**row._asdict()) for row in rows]


def list_answers(connection: Connection, *, limit: int) -> list[ListedAnswer]:
    """Return the latest answers, latest first."""
    rows = queries().list_answers(connection, row_limit=limit)
    return [ListedAnswer(**row._asdict()) for row in rows]


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
    rows = queries().fetch_feedback(connection, answer_id=answer_id)
    return [Feedback(**row._asdict()) for row in rows]


def outcomes_between(connection: Connection, window: TimeWindow) -> list[LoggedOutcome]:
    """Return the outcomes of the questions of a period, in the order in which they were asked."""
    rows = queries().outcomes_between(connection, first=window.start, after_last=window.end)
    return [LoggedOutcome(**row._asdict()) for row in rows]


def _row(answer: LoggedAnswer) -> dict[str, Any]:
    """Return the columns of an answer."""
    plain = answer.model_dump(mode="json", by_alias=False)
    stored = answer.model_dump(mode="json", by_alias=True, include=set(_JSON))
    wrapped = {name: None if stored[name] is None else Jsonb(stored[name]) for name in _JSON}
    return {
        **plain,
        **wrapped,
        "answer_id": answer.answer_id,
        "asked_at": answer.asked_at,
        "note_ids": answer.note_ids,
    }
