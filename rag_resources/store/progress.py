"""How far the index is, in numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rag_resources.core.types import TimeWindow
from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries


@dataclass(frozen=True, slots=True)
class Progress:
    """Notes, and what they have so far; `vectors` counts embedded chunks by model."""

    notes: int
    note_vectors: int
    chunked: int
    chunks: int
    vectors: Mapping[str, int]


def read_progress(connection: Connection, note_model: str) -> Progress:
    """Count notes, chunks and vectors as they stand now."""
    row = queries().indexing_progress(connection, note_model=note_model)
    vectors = {item.model: item.vectors for item in queries().embedding_progress(connection)}
    return Progress(row.notes, row.note_vectors, row.chunked, row.chunks, vectors)


def index_is_current(
    connection: Connection, window: TimeWindow, *, chunking_hash: str, models: Sequence[str]
) -> bool:
    """Whether nothing of a window is left to chunk or embed."""
    current: bool = queries().index_is_current(
        connection,
        month_start=window.start,
        month_end=window.end,
        chunking_hash=chunking_hash,
        models=list(models),
    )
    return current
