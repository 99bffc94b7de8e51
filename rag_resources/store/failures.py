"""Rows of `indexing_failures`: the texts that could not be chunked or embedded."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from psycopg.types.json import Jsonb

from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries
from rag_resources.languages.messages import to_stored

Stage = Literal["chunk", "embed_note", "embed_chunk", "mentions", "causal_statements"]


@dataclass(frozen=True, slots=True)
class Failure:
    """A text that could not be indexed, and why."""

    stage: str
    note_id: UUID
    error: str
    chunk_id: UUID | None = None
    model: str | None = None
    external_id: str = ""


def record_failure(connection: Connection, failure: Failure) -> None:
    """Store a failure; one row per text."""
    queries().record_failure(
        connection,
        stage=failure.stage,
        note_id=failure.note_id,
        chunk_id=failure.chunk_id,
        model=failure.model,
        error=Jsonb(to_stored(failure.error)),
    )


def clear_failures(
    connection: Connection, stage: Stage, note_ids: Sequence[UUID], *, model: str | None = None
) -> None:
    """Delete the stored failures of notes that have succeeded since."""
    if note_ids:
        queries().clear_failures(connection, stage=stage, note_ids=list(note_ids), model=model)
