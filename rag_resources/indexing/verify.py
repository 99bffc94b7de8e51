"""Verifies what indexing wrote: chunks against their notes, vectors against the model."""

import math
from collections.abc import Sequence

import numpy as np

from rag_resources.core.contextual import contextual_text
from rag_resources.core.migration_gate import VectorState
from rag_resources.core.types import TimeWindow, Vectors
from rag_resources.database.pool import Database
from rag_resources.providers.protocols import Embedder
from rag_resources.store.chunks import BrokenNote, ChunkSpans, find_broken, stream_spans
from rag_resources.store.embeddings import (
    EmbeddedSample,
    count_gaps,
    count_wrong_norms,
    sample_vectors,
)

SAMPLE = 4
"""Texts of every month that are embedded again, each with both of its vectors."""

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
    """Whether everything outside the chunks is white space."""
    position = 0
    for start, end in note.spans:
        if start > position and note.content[position:start].strip():
            return False
        position = max(position, end)
    return not note.content[position:].strip()


def verify_vectors(database: Database, embedder: Embedder, window: TimeWindow) -> VectorState:
    """Compare stored vectors of a window with those of the same texts, embedded singly now.

    A few texts of every month, the same every time, tell vectors that are not the model's; they
    do not find a single bad one. The lengths of all vectors are read.
    """
    info = embedder.info
    with database.transaction() as connection:
        wrong_norms = count_wrong_norms(connection, info.name, window)
        wrong_dimension = count_gaps(connection, info, window).wrong_dimension
        sample = sample_vectors(connection, info.name, window, per_month=SAMPLE)
    lowest = None if wrong_dimension else _lowest_cosine(embedder, sample)
    return VectorState(len(sample), lowest, wrong_norms, wrong_dimension)


def _lowest_cosine(embedder: Embedder, sample: Sequence[EmbeddedSample]) -> float | None:
    if not sample:
        return None
    pairs = [(item.content, item.embedding) for item in sample] + [
        (contextual_text(item.context, item.content), item.contextual_embedding) for item in sample
    ]
    return min(_cosine(stored, embedder.embed_passages([text])[0]) for text, stored in pairs)


def _cosine(stored: Vectors, made: Vectors) -> float:
    """The cosine of two vectors; -1 if the stored one has no direction."""
    length = float(np.linalg.norm(stored))
    return float(np.dot(stored, made)) / length if math.isfinite(length) and length > 0 else -1.0
