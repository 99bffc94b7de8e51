"""Reads samples of stored vectors, to verify them. The comparison is in `indexing.verify`."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from pgvector import HalfVector

from rag_resources.core.contextual import contextual_text
from rag_resources.core.text import Span
from rag_resources.core.types import ModelInfo, TimeWindow, Vectors
from rag_resources.core.windows import window_text, window_words
from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries


@dataclass(frozen=True, slots=True)
class StoredVector:
    """A stored vector, `(dimension,)` float32, and the text that it represents."""

    text: str
    embedding: Vectors


@dataclass(frozen=True, slots=True)
class FaultyVectors:
    """How many vectors of a time window do not have length 1, or have a wrong dimension."""

    wrong_norms: int
    wrong_dimension: int


def sample_embeddings(
    connection: Connection, model: str, window: TimeWindow, *, per_month: int
) -> list[StoredVector]:
    """Return both vectors of some chunks of each month, the same chunks at every call."""
    rows = queries().sample_embeddings(connection, **_of(model, window), per_month=per_month)
    return [
        _stored(text, vector)
        for row in rows
        for text, vector in (
            (row.content, row.embedding),
            (contextual_text(row.context, row.content), row.contextual_embedding),
        )
    ]


def sample_windows(
    connection: Connection, model: str, window: TimeWindow, *, per_month: int
) -> list[StoredVector]:
    """Return the vectors of some small windows of each month, the same ones at every call."""
    rows = queries().sample_windows(connection, **_of(model, window), per_month=per_month)
    return [
        _stored(
            window_text(
                row.title, window_words(row.content, Span(row.start_char, row.end_char)), row.tags
            ),
            row.embedding,
        )
        for row in rows
    ]


def count_faulty_embeddings(
    connection: Connection, info: ModelInfo, window: TimeWindow
) -> FaultyVectors:
    """Count the chunks of a time window with a faulty vector of a model."""
    parameters = _of(info.name, window)
    row = queries().count_faulty_embeddings(connection, **parameters, dimension=info.dimension)
    return FaultyVectors(*row)


def count_faulty_windows(
    connection: Connection, info: ModelInfo, window: TimeWindow
) -> FaultyVectors:
    """Count the small windows of a time window with a faulty vector of a model."""
    parameters = _of(info.name, window)
    row = queries().count_faulty_windows(connection, **parameters, dimension=info.dimension)
    return FaultyVectors(*row)


def _of(model: str, window: TimeWindow) -> dict[str, Any]:
    """Return the parameters that all of these queries share."""
    return {"model": model, "month_start": window.start, "month_end": window.end}


def _stored(text: str, vector: HalfVector) -> StoredVector:
    return StoredVector(text, vector.to_numpy().astype(np.float32))
