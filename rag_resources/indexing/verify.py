"""Verifies what indexing wrote: chunks against their notes, vectors against the model."""

import numpy as np

from rag_resources.core.contextual import contextual_text
from rag_resources.core.types import TimeWindow
from rag_resources.database.pool import Database
from rag_resources.providers.protocols import Embedder
from rag_resources.store.chunks import BrokenNote, ChunkSpans, find_broken, stream_spans
from rag_resources.store.embeddings import sample_vectors

MIN_COSINE = 0.999
"""Vectors are stored as halfvec; its rounding alone leaves a cosine above 0.9999."""

SAMPLE = 8
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


def lowest_cosine(database: Database, embedder: Embedder) -> float | None:
    """Compare stored vectors, made in batches, with those of the same texts embedded singly.

    Returns:
        The lowest cosine of a small fixed sample; None if no vector is stored.
    """
    with database.transaction() as connection:
        sample = sample_vectors(connection, embedder.info.name, limit=SAMPLE)
    if not sample:
        return None
    pairs = [(item.content, item.embedding) for item in sample] + [
        (contextual_text(item.context, item.content), item.contextual_embedding) for item in sample
    ]
    return min(
        float(np.dot(stored / np.linalg.norm(stored), embedder.embed_passages([text])[0]))
        for text, stored in pairs
    )
