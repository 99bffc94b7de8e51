"""Verifies what indexing wrote: chunks against their notes, vectors against the model.

Vectors that are not the model's are deleted here, and made again as any others.
"""

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import combinations

import numpy as np

from rag_resources.core.blocks import read
from rag_resources.core.migration_gate import MIN_COSINE, VectorState
from rag_resources.core.text import content_sha256
from rag_resources.core.types import TimeWindow, Vectors
from rag_resources.database.pool import Database
from rag_resources.indexing.embed import embed_each
from rag_resources.providers.protocols import Embedder
from rag_resources.store.chunks import BrokenNote, ChunkSpans, find_broken, stream_spans
from rag_resources.store.index_state import bump_index_version
from rag_resources.store.models import keep_model
from rag_resources.store.vectors import (
    Discarded,
    StoredVector,
    count_gaps,
    discard_vectors,
    sample_vectors,
)

SAMPLE = 4
"""How many texts of every kind and month are embedded again."""

MOST_BROKEN = 100

_KNOWN = 32
_EVERY = 2**31 - 1
_EVER = TimeWindow(datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))


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


def discard_refused(database: Database, embedder: Embedder, window: TimeWindow) -> Discarded | None:
    """Delete the vectors of a window's chunks that are not the model's, and queue their notes.

    All of them are made again to find out. A broken model server, or one that has another model
    under this name now, must not condemn good vectors: the model is tried before, and once more
    before anything is deleted.

    Returns:
        What was deleted; None if the model does not give known vectors now.

    Raises:
        ProviderError: The model cannot be used; nothing was deleted.

    Property: 63.
    """
    model = embedder.info.name
    with database.transaction() as connection:
        known = sample_vectors(connection, model, _EVER, per_month=1)
        stored = sample_vectors(connection, model, window, per_month=_EVERY)
    known = known[:: -(-len(known) // _KNOWN)] if known else []
    if not _is_sound(embedder, known):
        return None
    made, _ = embed_each(embedder, {content_sha256(own.text): own.text for own in stored})
    refused = set()
    for own in stored:
        fresh = made.get(content_sha256(own.text))
        if fresh and not _agree(own.embedding, fresh.to_numpy().astype(np.float32)):
            refused.add(own.text_sha256)
    if not _is_sound(embedder, known):
        return None
    return _discard(database, model, refused)


def discard_all(database: Database, model: str, window: TimeWindow) -> Discarded:
    """Delete all vectors of a window's chunks, and queue their notes to be embedded again.

    Raises:
        ModelMissingError: The model was retired, or never registered.
    """
    with database.transaction() as connection:
        stored = sample_vectors(connection, model, window, per_month=_EVERY)
    return _discard(database, model, {own.text_sha256 for own in stored})


def _discard(database: Database, model: str, hashes: set[bytes]) -> Discarded:
    with database.transaction() as connection:
        keep_model(connection, model)
        discarded = discard_vectors(connection, model, hashes)
        bump_index_version(connection)
    return discarded


def _is_sound(embedder: Embedder, known: Sequence[StoredVector]) -> bool:
    """Whether a model gives the same vectors twice, others for other texts, and known ones."""
    made, again = ([embedder.embed_passages([own.text])[0] for own in known] for _ in range(2))
    texts = {own.text: vector for own, vector in zip(known, made, strict=True)}
    pairs = [_agree(one, other) for one, other in combinations(texts.values(), 2)]
    return (
        all(map(_agree, made, again))
        and not (pairs and all(pairs))
        # Those that were refused may be among them.
        and 2 * sum(_agree(own.embedding, vector) for own, vector in zip(known, made, strict=True))
        >= len(known)
    )


def _agree(stored: Vectors, made: Vectors) -> bool:
    return _cosine(stored, made) >= MIN_COSINE and abs(float(np.linalg.norm(stored)) - 1) <= 0.01


def _cosine(stored: Vectors, made: Vectors) -> float:
    """The cosine of two vectors; -1 if the stored one has no direction."""
    length = float(np.linalg.norm(stored))
    return float(np.dot(stored, made)) / length if math.isfinite(length) and length > 0 else -1.0
