"""Rows of `vectors` and `pending_vectors`: what is stored, what waits, what is missing or faulty.

Models belong in `store.models`, HNSW indexes in `store.vector_indexes`; `indexing.embed` makes the
vectors.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
from pgvector import HalfVector
from psycopg import sql

from rag_resources.core.contextual import contextual_text
from rag_resources.core.retrievers import VectorKind
from rag_resources.core.text import Span, content_sha256
from rag_resources.core.types import ModelInfo, TimeWindow, Vectors
from rag_resources.core.windows import window_text, window_words
from rag_resources.database.pool import Connection, Database
from rag_resources.database.queries import queries, statement
from rag_resources.store.models import keep_model


@dataclass(frozen=True, slots=True)
class QueuedNote:
    """A claimed note."""

    note_id: UUID
    created_at: datetime


@dataclass(frozen=True, slots=True)
class OwnerText:
    """A chunk, or a whole note, that has vectors.

    Attributes:
        owner: The chunk's id, or the note's.
        title: The note's title.
        tags: The note's tags.
        content: Its characters of the note.
        shown: What a reader of the rendered note sees of them.
        context: The chunk's contextual prefix.
    """

    owner: UUID
    note_id: UUID
    title: str
    tags: Sequence[str]
    content: str
    shown: str
    context: str

    def text(self, kind: VectorKind, span: Span | None = None) -> str:
        """Return the text that a vector stands for; a window is a span of the content."""
        if span is not None:
            return window_text(self.title, window_words(self.content, span), self.tags)
        if kind is VectorKind.CONTEXTUAL:
            return contextual_text(self.context, self.shown)
        return self.shown


class Place(NamedTuple):
    """One of the vectors of a chunk or note: a window's span, and the hash of its text."""

    span: Span | None
    text_sha256: bytes


Places = Mapping[UUID, tuple[Place, ...]]
"""The vectors of one kind, in order, by their chunk or note."""


@dataclass(frozen=True, slots=True)
class VectorGaps:
    """How many vectors of a kind are missing or faulty in a time window.

    Attributes:
        owners: Chunks, or notes.
        vectors: All vectors.
        missing: Chunks or notes without any.
        stale: Vectors of another text, outside their chunk, or about to be replaced.
        wrong_dimension: Vectors of another dimension than the model's.
        wrong_norms: Vectors whose length is not 1.
    """

    kind: str
    owners: int
    vectors: int
    missing: int
    stale: int
    wrong_dimension: int
    wrong_norms: int

    @property
    def total(self) -> int:
        """Gaps of all kinds; a wrong length is no gap."""
        return self.missing + self.stale + self.wrong_dimension


@dataclass(frozen=True, slots=True)
class StoredVector:
    """A stored vector, `(dimension,)` float32, and the text that it should represent.

    Attributes:
        text_sha256: Of the text that was embedded.
    """

    text: str
    text_sha256: bytes
    embedding: Vectors


class Discarded(NamedTuple):
    """How many vectors were deleted, and of how many notes."""

    vectors: int
    notes: int


# --- What waits ---------------------------------------------------------------------------------


def claim_queued(
    connection: Connection,
    model: str,
    window: TimeWindow,
    *,
    skipped: Collection[UUID],
    batch_size: int,
    whole: bool = False,
) -> list[QueuedNote]:
    """Lock the newest unclaimed notes of a time window that lack vectors, until commit.

    Args:
        connection: In a transaction.
        model: Registered.
        window: Range of the notes' creation times.
        skipped: Notes that are not claimed.
        batch_size: Most notes, >= 1.
        whole: Whether those that lack a current whole-note vector, instead of the queued ones.
    """
    claim = queries().claim_notes_to_embed if whole else queries().claim_queued_notes
    rows = claim(connection, **_of(model, window), skipped=list(skipped), batch_size=batch_size)
    return [QueuedNote(*row) for row in rows]


def count_queued(
    connection: Connection,
    model: str,
    window: TimeWindow,
    *,
    skipped: Collection[UUID] = (),
    whole: bool = False,
) -> int:
    """Count the notes of a time window that lack vectors, claimed or not; see `claim_queued`."""
    count = queries().count_notes_to_embed if whole else queries().count_queued_notes
    notes: int = count(connection, **_of(model, window), skipped=list(skipped))
    return notes


def count_pending(connection: Connection) -> dict[str, int]:
    """Return how many notes wait for vectors of their chunks, by model."""
    return {row.model: row.notes for row in queries().count_pending_notes(connection)}


def is_empty(connection: Connection, model: str, window: TimeWindow) -> bool:
    """Whether no note of a time window is queued, not even one that is not chunked yet."""
    found: bool = queries().queue_is_empty(connection, **_of(model, window))
    return found


def complete_pending(
    connection: Connection,
    model: str,
    note_ids: Sequence[UUID],
    texts: Sequence[OwnerText],
    *,
    vectors: int,
) -> list[UUID]:
    """Remove notes from the queue whose chunks still have these texts; return them."""
    rows = queries().complete_pending_notes(
        connection,
        model=model,
        note_ids=list(note_ids),
        vectors=vectors,
        owners=[text.owner for text in texts],
        contents=[content_sha256(text.shown) for text in texts],
        contexts=[content_sha256(text.context) for text in texts],
    )
    return [row.note_id for row in rows]


# --- Reading and writing ------------------------------------------------------------------------


def select_texts(
    connection: Connection, note_ids: Sequence[UUID], *, whole: bool
) -> list[OwnerText]:
    """Return the chunks of notes, or the notes as a whole."""
    select = queries().select_notes_to_embed if whole else queries().select_chunks_to_embed
    return [OwnerText(*row) for row in select(connection, note_ids=list(note_ids))]


def stored_places(
    connection: Connection, model: str, kind: VectorKind, owners: Sequence[UUID]
) -> dict[UUID, tuple[Place, ...]]:
    """Return the vectors that chunks or notes have, without the vectors themselves."""
    found: dict[UUID, tuple[Place, ...]] = {}
    query = statement("list_stored_vectors", **_table(model, kind))
    for row in connection.execute(query, {"owners": list(owners)}):
        span = None if row.start_char is None else Span(row.start_char, row.end_char)
        found[row.owner_id] = (*found.get(row.owner_id, ()), Place(span, bytes(row.text_sha256)))
    return found


def find_reusable(
    connection: Connection, model: str, hashes: Iterable[bytes]
) -> dict[bytes, HalfVector]:
    """Return the vectors that a model already has for the given texts, by the texts' SHA-256."""
    rows = queries().find_reusable_vectors(connection, model=model, hashes=list(hashes))
    return {bytes(row.sha256): row.embedding for row in rows}


def replace_vectors(
    connection: Connection,
    model: str,
    kind: VectorKind,
    places: Places,
    vectors: Mapping[bytes, HalfVector],
) -> set[UUID]:
    """Replace the vectors of one kind of chunks, or of notes.

    Args:
        connection: In a transaction.
        model: Registered.
        kind: Of the vectors.
        places: What the chunks or notes are to have.
        vectors: By the hash of their text.

    Returns:
        The chunks or notes that have their vectors now; not those deleted or being deleted.
    """
    keep = queries().keep_notes if kind is VectorKind.NOTE else queries().keep_chunks
    kept = {row.owner: row.tenant_id for row in keep(connection, owners=list(places))}
    if not kept:
        return set()
    names = _table(model, kind)
    connection.execute(statement("delete_vectors", **names), {"owners": list(kept)})
    with connection.cursor() as cursor, cursor.copy(statement("copy_vectors", **names)) as copy:
        copy.set_types(["uuid", "int4", "int4", "int4", "text", "text", "text", "bytea", "halfvec"])
        for owner, tenant in kept.items():
            for position, (span, sha256) in enumerate(places[owner]):
                bounds = (span.start, span.end) if span else (None, None)
                of = (model, kind.value, tenant, sha256, vectors[sha256])
                copy.write_row((owner, position, *bounds, *of))
    return set(kept)


def keep_vectors(
    database: Database, model: str, texts: Mapping[UUID, str], vectors: Vectors
) -> None:
    """Store the standard vectors of some chunks of the model of a text each, in their order.

    Args:
        database: Open.
        model: Registered.
        texts: By chunk.
        vectors: `(n_texts, dimension)`.
    """
    places = {owner: (Place(None, content_sha256(text)),) for owner, text in texts.items()}
    made = {
        place.text_sha256: HalfVector(vector)
        for (place,), vector in zip(places.values(), vectors, strict=True)
    }
    with database.transaction() as connection:
        keep_model(connection, model)
        replace_vectors(connection, model, VectorKind.CHUNK, places, made)


# --- Verifying ----------------------------------------------------------------------------------


def count_gaps(connection: Connection, info: ModelInfo, window: TimeWindow) -> list[VectorGaps]:
    """Count the missing and the faulty vectors of a time window, of each kind that a model has."""
    rows = queries().count_vector_gaps(
        connection, **_of(info.name, window), dimension=info.dimension
    )
    return [VectorGaps(*row) for row in rows]


def sample_vectors(
    connection: Connection, model: str, window: TimeWindow, *, per_month: int
) -> list[StoredVector]:
    """Return some vectors of chunks of each kind and month, the same ones at every call."""
    rows = queries().sample_vectors(connection, **_of(model, window), per_month=per_month)
    nobody = UUID(int=0)
    return [
        StoredVector(
            OwnerText(
                nobody, nobody, row.title, row.tags, row.content, row.shown, row.context
            ).text(
                VectorKind(row.kind),
                None if row.start_char is None else Span(row.start_char, row.end_char),
            ),
            bytes(row.text_sha256),
            row.embedding.to_numpy().astype(np.float32),
        )
        for row in rows
    ]


def discard_vectors(connection: Connection, model: str, hashes: Collection[bytes]) -> Discarded:
    """Delete a model's vectors of some texts, and queue the notes that have them. Property 63."""
    of = {"model": model, "hashes": list(hashes)}
    queries().queue_owners_of_texts(connection, **of)
    return Discarded(*queries().discard_vectors(connection, **of))


def vectors_table(model: str, kind: VectorKind) -> sql.Identifier:
    """Return the table of the vectors of one kind of a model."""
    return sql.Identifier(f"vectors_{model}_{kind.value}")


def _of(model: str, window: TimeWindow) -> dict[str, Any]:
    return {"model": model, "month_start": window.start, "month_end": window.end}


def _table(model: str, kind: VectorKind) -> dict[str, sql.Identifier]:
    owner = "note_id" if kind is VectorKind.NOTE else "chunk_id"
    return {"table": vectors_table(model, kind), "owner": sql.Identifier(owner)}
