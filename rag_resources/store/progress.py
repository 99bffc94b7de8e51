"""The progress of indexing, in numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rag_resources.core.types import TimeWindow
from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries


@dataclass(frozen=True, slots=True)
class Progress:
    """Number of notes, and how many are indexed; `vectors` counts embedded chunks by model."""

    notes: int
    note_vectors: int
    chunked: int
    chunks: int
    vectors: Mapping[str, int]


def read_progress(connection: Connection, note_model: str) -> Progress:
    """Count the current notes, chunks and vectors."""
    row = queries().indexing_progress(connection, note_model=note_model)
    vectors = {item.model: item.vectors for item in queries().embedding_progress(connection)}
    return Progress(row.notes, row.note_vectors, row.chunked, row.chunks, vectors)


def index_is_current(
    connection: Connection, window: TimeWindow, *, chunking_hash: str, models: Sequence[str]
) -> bool:
    """Whether every note of a window is chunked and embedded."""
    current: bool = queries().index_is_current(
        connection,
        month_start=window.start,
        month_end=window.end,
        chunking_hash=chunking_hash,
        models=list(models),
    )
    return current
