"""How far the index is, in numbers."""

from collections.abc import Mapping
from dataclasses import dataclass

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
