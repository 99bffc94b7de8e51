"""Moves the questions of old evaluations out of the database, into files; their means stay."""

import gzip
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.messages import Message
from rag_resources.database.pool import Connection, Database
from rag_resources.store.archive import (
    delete_questions,
    evaluations_to_archive,
    lock_evaluation,
    stream_questions,
)


@dataclass(frozen=True, slots=True)
class ArchiveReport:
    """What was moved: evaluations, their questions, and where to."""

    evaluations: int
    questions: int
    folder: Path


def archive_questions(
    database: Database,
    folder: Path,
    *,
    keep_days: int,
    progress: Callable[[int], None] = lambda _: None,
) -> ArchiveReport:
    """Move the questions of old evaluations to `<evaluation id>.jsonl.gz`, one file each.

    A file is complete and on disk before its rows are deleted. Killed at any moment, an evaluation
    has its rows or its file or both, and the next call does the rest; of two calls at once the
    second waits for the first. Answers, which quote notes, are not kept: those may be purged.

    Args:
        database: Open.
        folder: Where to; made if it is not there.
        keep_days: Days an evaluation keeps its questions at least, >= 0.
        progress: Called with 1 after each evaluation.

    Raises:
        InvalidParameterError: The folder cannot be written.
        DatabaseUnavailableError: The database was lost; what is moved is moved.
    """
    with database.transaction() as connection:
        evaluations = evaluations_to_archive(connection, keep_days=keep_days)
    questions = 0
    for evaluation_id in evaluations:
        with database.transaction() as connection:
            questions += _move(connection, evaluation_id, folder)
        progress(1)
    return ArchiveReport(len(evaluations), questions, folder)


def _move(connection: Connection, evaluation_id: UUID, folder: Path) -> int:
    path = folder / f"{evaluation_id}.jsonl.gz"
    unfinished = path.with_suffix(".tmp")
    count = 0
    lock_evaluation(connection, evaluation_id)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with unfinished.open("wb") as raw:
            with gzip.open(raw, "wt", encoding="utf-8") as file:
                for question in stream_questions(connection, evaluation_id):
                    file.write(json.dumps(question, ensure_ascii=False) + "\n")
                    count += 1
            os.fsync(raw.fileno())
        if not count:  # Somebody else has moved them.
            unfinished.unlink()
            return 0
        unfinished.replace(path)
        _sync(folder)
    except OSError as error:
        raise InvalidParameterError(
            Message.FOLDER_NOT_WRITABLE.format(path=folder), path=folder
        ) from error
    delete_questions(connection, evaluation_id)
    return count


def _sync(folder: Path) -> None:
    """Have the name of a new file survive a power failure, too."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
