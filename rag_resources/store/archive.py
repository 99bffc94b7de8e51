"""Questions of old evaluations: finding those to archive, reading and deleting them."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries


def evaluations_to_archive(connection: Connection, *, keep_days: int) -> list[UUID]:
    """Return the evaluations whose questions are no longer needed, oldest first."""
    return [row.id for row in queries().evaluations_to_archive(connection, keep_days=keep_days)]


def lock_evaluation(connection: Connection, evaluation_id: UUID) -> None:
    """Lock an evaluation until commit, so that no other run archives its questions."""
    queries().lock_evaluation(connection, evaluation_id=evaluation_id)


def stream_questions(connection: Connection, evaluation_id: UUID) -> Iterator[dict[str, Any]]:
    """Yield every question of an evaluation, without the columns that quote notes."""
    for row in queries().stream_questions(connection, evaluation_id=evaluation_id):
        yield row.question


def delete_questions(connection: Connection, evaluation_id: UUID) -> None:
    """Delete the questions of an evaluation; its mean metrics stay."""
    queries().delete_questions(connection, evaluation_id=evaluation_id)
