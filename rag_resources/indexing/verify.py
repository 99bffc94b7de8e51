"""Verifies what indexing wrote: chunks against their notes, vectors against the model."""

import math

import numpy as np

from rag_resources.core.blocks import read
from rag_resources.core.migration_gate import VectorState
from rag_resources.core.types import TimeWindow, Vectors
from rag_resources.database.pool import Database
from rag_resources.providers.protocols import Embedder
from rag_resources.store.chunks import BrokenNote, ChunkSpans, find_broken, stream_spans
from rag_resources.store.vectors import count_gaps, sample_vectors

SAMPLE = 4
"""How many texts of every kind and month are embedded again."""

MOST_BROKEN = 100


def find_broken_notes(database: Database, window: TimeWindow) -> tuple[int, list[BrokenNote]]:
    """Check the bounds, sequence and coverage of a window's chunks. Properties 7, 8, 9.

    Returns:
        The number of chunked notes checked, and the first `MOST_BROKEN` broken ones.
    """
    with database.transaction() as connection:
        broken = find_broken(connection, window, limit=MOST_BROKEN)
        checked = 0
        for note in stream_spans(connection, window):
            checked += 1
            if len(broken) < MOST_BROKEN and not _covers(note):
                broken.append(BrokenNote(note.note_id, "coverage"))
    return checked, broken


def _covers(note: ChunkSpans) -> bool:
    """Whether nothing that is shown is outside the chunks."""
    position = 0
    for start, end in note.spans:
        if start > position and read(note.content).shows(position, start):
            return False
        position = max(position, end)
    return not read(note.content).shows(position, len(note.content))


def verify_vectors(database: Database, embedder: Embedder, window: TimeWindow) -> VectorState:
    """Compare stored vectors of a window's chunks with new vectors of the same texts.

    A few texts of every kind and month, the same every time, are embedded one by one. They show
    whether the vectors come from the model, but do not find a single bad one. The lengths of all
    vectors are checked.
    """
    info = embedder.info
    with database.transaction() as connection:
        gaps = count_gaps(connection, info, window)
        sample = sample_vectors(connection, info.name, window, per_month=SAMPLE)
    wrong_dimension = sum(own.wrong_dimension for own in gaps)
    lowest = None
    if not wrong_dimension:
        cosines = (
            _cosine(stored.embedding, embedder.embed_passages([stored.text])[0])
            for stored in sample
        )
        lowest = min(cosines, default=None)
    return VectorState(len(sample), lowest, sum(own.wrong_norms for own in gaps), wrong_dimension)


def _cosine(stored: Vectors, made: Vectors) -> float:
    """The cosine of two vectors; -1 if the stored one has no direction."""
    length = float(np.linalg.norm(stored))
    return float(np.dot(stored, made)) / length if math.isfinite(length) and length > 0 else -1.0
