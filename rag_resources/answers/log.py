"""Writes answers into the log in the background, so that no question waits or fails.

The rows are in `store.answers`, their types in `core.answer_log`.
"""

from collections.abc import Callable
from functools import partial

from rag_resources.core.answer_log import LoggedAnswer
from rag_resources.database.background import WRITE_MS, BackgroundWriter, ignore_lost
from rag_resources.database.pool import Database
from rag_resources.store.answers import insert_answers


def answer_writer(
    database: Database,
    *,
    keep_days: int,
    write_ms: float = WRITE_MS,
    on_lost: Callable[[str, int], None] = ignore_lost,
) -> BackgroundWriter[LoggedAnswer]:
    """Return the background writer of the answer log.

    It writes each answer at once, because feedback may soon follow and name its id.

    Args:
        database: Where the table is.
        keep_days: Answers older than this are deleted, >= 1.
        write_ms: Longest time of a write.
        on_lost: As of `BackgroundWriter`.
    """
    return BackgroundWriter(
        database,
        partial(insert_answers, keep_days=keep_days),
        name="answer_log",
        write_ms=write_ms,
        on_lost=on_lost,
    )
