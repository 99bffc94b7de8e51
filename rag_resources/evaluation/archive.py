"""Moves the questions of old evaluations out of the database, into files; their means stay."""

import gzip
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any
from uuid import UUID

from rag_resources.core.errors import RagError
from rag_resources.core.messages import Message
from rag_resources.database.pool import Connection, Database
from rag_resources.files import Files
from rag_resources.store.archive import (
    delete_questions,
    evaluations_to_archive,
    lock_evaluation,
    stream_questions,
)


@dataclass(frozen=True, slots=True)
class ArchiveReport:
    """How many evaluations were moved, and how many questions."""

    evaluations: int
    questions: int


def archive_questions(
    database: Database,
    files: Files,
    *,
    keep_days: int,
    progress: Callable[[int], None] = lambda _: None,
) -> ArchiveReport:
    """Move the questions of old evaluations to files, one file each (`archive_name`).

    A file is written and read again before its rows are deleted. Killed at any moment, an
    evaluation has its rows or its file or both, and the next call does the rest; of two calls at
    once the second waits for the first. Answers, which quote notes, are not kept: those may be
    purged.

    Args:
        database: Open.
        files: Where to.
        keep_days: Days an evaluation keeps its questions at least, >= 0.
        progress: Called with 1 after each evaluation.

    Raises:
        InvalidParameterError: The files cannot be written.
        RagError: A file is not what was written; its rows stay.
        DatabaseUnavailableError: The database was lost; what is moved is moved.
    """
    with database.transaction() as connection:
        evaluations = evaluations_to_archive(connection, keep_days=keep_days)
    questions = 0
    for evaluation_id in evaluations:
        with database.transaction() as connection:
            questions += _move(connection, evaluation_id, files)
        progress(1)
    return ArchiveReport(len(evaluations), questions)


def archive_name(evaluation_id: UUID) -> str:
    """Return the name of the file with an evaluation's questions."""
    return f"archive/evaluations/{evaluation_id}.jsonl.gz"


def _move(connection: Connection, evaluation_id: UUID, files: Files) -> int:
    lock_evaluation(connection, evaluation_id)
    packed, count = _pack(stream_questions(connection, evaluation_id))
    if count:  # If there are none, somebody else has moved them.
        name = archive_name(evaluation_id)
        files.write(name, packed)
        if files.read(name) != packed:
            raise RagError(Message.FILE_NOT_KEPT.format(path=files.where(name)))
        delete_questions(connection, evaluation_id)
    return count


def _pack(questions: Iterable[Mapping[str, Any]]) -> tuple[bytes, int]:
    """Return questions as compressed lines of JSON, and how many; the same bytes every time."""
    packed, count = BytesIO(), 0
    with gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as file:
        for question in questions:
            file.write(f"{json.dumps(question, ensure_ascii=False)}\n".encode())
            count += 1
    return packed.getvalue(), count
