"""Moves the questions of old evaluations from the database to files; the averages stay."""

import gzip
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any
from uuid import UUID

from rag_resources.core.errors import RagError
from rag_resources.database.pool import Connection, Database
from rag_resources.database.queries import queries
from rag_resources.files import Files
from rag_resources.languages.messages import _

KEPT_DAYS = 90
"""How long an evaluation keeps its questions in the database."""


@dataclass(frozen=True, slots=True)
class ArchiveReport:
    """How many evaluations and how many questions were moved."""

    evaluations: int
    questions: int


def archive_questions(
    database: Database,
    files: Files,
    *,
    keep_days: int = KEPT_DAYS,
    progress: Callable[[int], None] = lambda _: None,
) -> ArchiveReport:
    """Move the questions of old evaluations to files, one file each (`archive_name`).

    A file is written and read back before its rows are deleted. If the process is killed, an
    evaluation has its rows, its file or both, and the next call does the rest. Of two concurrent
    calls the second waits for the first. Answers are not archived: they quote notes, which may
    have to be purged.

    Args:
        database: Open.
        files: Where the files go.
        keep_days: How many days an evaluation keeps its questions at least, >= 0.
        progress: Called with 1 after each evaluation.

    Raises:
        InvalidParameterError: The files cannot be written.
        RagError: A file does not contain what was written; its rows stay.
        DatabaseUnavailableError: The connection was lost; evaluations already moved stay moved.
    """
    with database.transaction() as connection:
        rows = queries().evaluations_to_archive(connection, keep_days=keep_days)
        evaluations = [row.id for row in rows]
    questions = 0
    for evaluation_id in evaluations:
        with database.transaction() as connection:
            questions += _move(connection, evaluation_id, files)
        progress(1)
    return ArchiveReport(len(evaluations), questions)


def archive_name(evaluation_id: UUID) -> str:
    """Return the name of the file that holds an evaluation's questions."""
    return f"archive/evaluations/{evaluation_id}.jsonl.gz"


def _move(connection: Connection, evaluation_id: UUID, files: Files) -> int:
    queries().lock_evaluation(connection, evaluation_id=evaluation_id)
    rows = queries().stream_questions(connection, evaluation_id=evaluation_id)
    packed, count = _pack(row.question for row in rows)
    if count:  # Otherwise another call has moved them.
        name = archive_name(evaluation_id)
        files.write(name, packed)
        if files.read(name) != packed:
            raise RagError(
                _(
                    "What is read from {path} is not what was written; nothing was deleted from "
                    "the database."
                ).format(path=files.where(name))
            )
        queries().delete_questions(connection, evaluation_id=evaluation_id)
    return count


def _pack(questions: Iterable[Mapping[str, Any]]) -> tuple[bytes, int]:
    """Return the questions as compressed JSON lines, and their count; output is reproducible."""
    packed, count = BytesIO(), 0
    with gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as file:
        for question in questions:
            file.write(f"{json.dumps(question, ensure_ascii=False)}\n".encode())
            count += 1
    return packed.getvalue(), count
