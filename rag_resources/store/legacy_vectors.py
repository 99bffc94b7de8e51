"""Reads the column `notes.embedding`, which an adopted database's earlier application wrote."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np
from psycopg import sql

from rag_resources.core.retrievers import VectorKind
from rag_resources.core.types import ModelInfo, TimeWindow, Vectors
from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries, statement
from rag_resources.store.vectors import vectors_table


@dataclass(frozen=True, slots=True)
class LegacySample:
    """The text of a note and its vector, `(dimension,)` float32, L2-normalised."""

    content: str
    embedding: Vectors


@dataclass(frozen=True, slots=True)
class UnusableVector:
    """A note whose vector has another dimension or is zero."""

    note_id: UUID
    dimension: int


def has_legacy_vectors(connection: Connection) -> bool:
    """Whether that column exists."""
    found: bool = queries().has_legacy_vectors(connection)
    return found


def sample_legacy_vectors(
    connection: Connection, info: ModelInfo, window: TimeWindow, *, max_chars: int, limit: int
) -> Sequence[LegacySample]:
    """Return some notes of a window with vectors that `adopt_legacy_vectors` would adopt."""
    rows = queries().sample_legacy_vectors(
        connection,
        model=info.name,
        dimension=info.dimension,
        month_start=window.start,
        month_end=window.end,
        max_chars=max_chars,
        row_limit=limit,
    )
    return [LegacySample(row.content, row.embedding.to_numpy().astype(np.float32)) for row in rows]


def adopt_legacy_vectors(
    connection: Connection, info: ModelInfo, window: TimeWindow, *, batch_size: int
) -> int:
    """Adopt a batch of the column's vectors as a model's whole-note vectors.

    Returns:
        How many were adopted; 0 when none are left.
    """
    query = statement(
        "adopt_legacy_vectors",
        table=vectors_table(info.name, VectorKind.NOTE),
        model=sql.Literal(info.name),
        dimension=sql.Literal(info.dimension),
    )
    values = {"month_start": window.start, "month_end": window.end, "batch_size": batch_size}
    return connection.execute(query, values).rowcount


def list_unusable_vectors(
    connection: Connection, info: ModelInfo, window: TimeWindow
) -> list[UnusableVector]:
    """Return the notes of a window whose vectors the model cannot have made, newest first."""
    rows = queries().select_unusable_vectors(
        connection, dimension=info.dimension, month_start=window.start, month_end=window.end
    )
    return [UnusableVector(row.id, row.dimension) for row in rows]
