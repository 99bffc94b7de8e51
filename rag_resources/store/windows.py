"""Rows of `chunk_windows` and the queue of the notes that wait for them.

Cutting is `core.windows`, making the vectors `indexing.windows`; the vectors of whole chunks are
`store.embeddings`.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np
from pgvector import HalfVector

from rag_resources.core.text import Span
from rag_resources.core.types import ModelInfo, TimeWindow, Vectors
from rag_resources.database.claims import with_brief_locks
from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries
from rag_resources.store.embeddings import PendingNote


@dataclass(frozen=True, slots=True)
class Window:
    """A window of a chunk: its span there, and the SHA-256 of what its vector stands for."""

    span: Span
    text_sha256: bytes


@dataclass(frozen=True, slots=True)
class ChunkToCut:
    """A chunk of a queued note.

    Attributes:
        title: Of the note.
        stored: The windows it has now, in order.
    """

    chunk_id: UUID
    note_id: UUID
    title: str
    content: str
    stored: tuple[Window, ...]


@dataclass(frozen=True, slots=True)
class WindowGaps:
    """What the chunks of some months lack of a model's windows.

    Attributes:
        missing: Chunks without any.
        pending: Chunks whose note waits for others.
        out_of_bounds: Windows that end after their chunk.
        wrong_dimension: Windows whose vector is not the model's.
    """

    chunks: int
    windows: int
    missing: int
    pending: int
    out_of_bounds: int
    wrong_dimension: int

    @property
    def total(self) -> int:
        """Gaps of all kinds."""
        return self.missing + self.pending + self.out_of_bounds + self.wrong_dimension


@dataclass(frozen=True, slots=True)
class WindowSample:
    """A window with its stored vector, `(dimension,)` float32."""

    title: str
    text: str
    embedding: Vectors


def register_windows(connection: Connection, model: str, *, windows_hash: str) -> None:
    """Have the chunks of a registered model cut, and queue all of them if that way is new.

    What is there already is left alone, without a lock. Otherwise some tables are locked against
    writers until the caller commits.

    Raises:
        IndexingError: Others do not let go of those tables.
    """
    if queries().fetch_windows_hash(connection, name=model) != windows_hash:
        with_brief_locks(connection, lambda: _register(connection, model, windows_hash))


def _register(connection: Connection, model: str, windows_hash: str) -> None:
    queries().lock_for_partitions(connection)
    # Another run may have been first.
    if queries().fetch_windows_hash(connection, name=model) == windows_hash:
        return
    dimension = queries().fetch_model(connection, name=model).dimension
    # A model known before there were windows has no partition for them.
    queries().create_partitions(connection, name=model, dimension=dimension)
    queries().set_windows_hash(connection, name=model, windows_hash=windows_hash)
    queries().request_all_windows(connection, model=model)


def claim_pending_windows(
    connection: Connection,
    model: str,
    window: TimeWindow,
    *,
    skipped: Collection[UUID],
    batch_size: int,
) -> list[PendingNote]:
    """Claim the newest queued notes of some months, until commit."""
    rows = queries().claim_pending_windows(
        connection,
        model=model,
        month_start=window.start,
        month_end=window.end,
        skipped=list(skipped),
        batch_size=batch_size,
    )
    return [PendingNote(*row) for row in rows]


def count_pending_windows(
    connection: Connection, model: str, window: TimeWindow, *, skipped: Collection[UUID]
) -> int:
    """Count the queued notes of some months, whoever has claimed them."""
    count: int = queries().count_pending_windows(
        connection,
        model=model,
        month_start=window.start,
        month_end=window.end,
        skipped=list(skipped),
    )
    return count


def select_chunks_to_cut(
    connection: Connection, model: str, note_ids: Sequence[UUID]
) -> list[ChunkToCut]:
    """Return the chunks of some notes with the windows they have."""
    rows = queries().select_chunks_to_cut(connection, model=model, note_ids=list(note_ids))
    return [
        ChunkToCut(
            row.id,
            row.note_id,
            row.title,
            row.content,
            tuple(
                Window(Span(start, end), bytes(sha256))
                for start, end, sha256 in zip(
                    row.starts or (), row.ends or (), row.digests or (), strict=True
                )
            ),
        )
        for row in rows
    ]


def find_reusable_windows(
    connection: Connection, model: str, hashes: Iterable[bytes]
) -> dict[bytes, HalfVector]:
    """Return the vectors a model already has for windows, by the SHA-256 of their texts."""
    rows = queries().find_reusable_windows(connection, model=model, hashes=list(hashes))
    return {bytes(row.sha256): row.embedding for row in rows}


def replace_windows(
    connection: Connection,
    model: str,
    windows: Mapping[UUID, Sequence[Window]],
    vectors: Mapping[bytes, HalfVector],
) -> set[UUID]:
    """Give chunks exactly these windows.

    Args:
        connection: In a transaction.
        model: Registered.
        windows: By chunk, in order.
        vectors: By the hash of their text.

    Returns:
        The chunks that have them now; not those that are gone or being deleted.
    """
    kept = [row.id for row in queries().keep_chunks(connection, ids=list(windows))]
    if not kept:
        return set()
    queries().delete_windows(connection, model=model, chunk_ids=kept)
    with connection.cursor() as cursor, cursor.copy(queries().copy_windows.sql) as copy:
        copy.set_types(["uuid", "text", "int4", "int4", "int4", "halfvec", "bytea"])
        for chunk_id in kept:
            for index, window in enumerate(windows[chunk_id]):
                sha256 = window.text_sha256
                span = window.span
                copy.write_row(
                    (chunk_id, model, index, span.start, span.end, vectors[sha256], sha256)
                )
    return set(kept)


def complete_pending_windows(
    connection: Connection, model: str, note_ids: Sequence[UUID]
) -> list[UUID]:
    """Take notes off the queue; returns those that were on it."""
    rows = queries().complete_pending_windows(connection, model=model, note_ids=list(note_ids))
    return [row.note_id for row in rows]


def count_window_gaps(connection: Connection, info: ModelInfo, window: TimeWindow) -> WindowGaps:
    """Count what the chunks of some months lack of a model's windows."""
    row = queries().count_window_gaps(
        connection,
        model=info.name,
        dimension=info.dimension,
        month_start=window.start,
        month_end=window.end,
    )
    return WindowGaps(*row)


def count_windows(connection: Connection, model: str) -> int:
    """Return how many windows have vectors of a model."""
    count: int = queries().count_windows(connection, model=model)
    return count


def sample_windows(connection: Connection, model: str, *, limit: int) -> list[WindowSample]:
    """Return some windows with their vectors, the same ones every time."""
    rows = queries().sample_windows(connection, model=model, row_limit=limit)
    return [
        WindowSample(
            row.title,
            row.content[row.start_char : row.end_char],
            row.embedding.to_numpy().astype(np.float32),
        )
        for row in rows
    ]


def windows_are_current(connection: Connection, model: str, window: TimeWindow) -> bool:
    """Whether no note of some months waits for its windows."""
    current: bool = queries().windows_are_current(
        connection, model=model, month_start=window.start, month_end=window.end
    )
    return current
