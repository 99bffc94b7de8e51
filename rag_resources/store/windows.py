"""Rows of `chunk_windows`.

`core.windows` cuts chunks, `indexing.windows` makes the vectors, `store.queues` has the notes that
wait for windows.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from pgvector import HalfVector

from rag_resources.core.text import Span
from rag_resources.core.types import ModelInfo, TimeWindow
from rag_resources.database.claims import with_brief_locks
from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries


@dataclass(frozen=True, slots=True)
class Window:
    """A window: its span in its chunk, and the SHA-256 of the text that its vector represents."""

    span: Span
    text_sha256: bytes


@dataclass(frozen=True, slots=True)
class ChunkToCut:
    """A chunk of a queued note.

    Attributes:
        title: The note's title.
        tags: The note's tags.
        stored: The windows it has now, in order.
    """

    chunk_id: UUID
    note_id: UUID
    title: str
    tags: tuple[str, ...]
    content: str
    stored: tuple[Window, ...]


@dataclass(frozen=True, slots=True)
class WindowGaps:
    """How many windows of a model are missing or wrong in the chunks of a time window.

    Attributes:
        chunks: All chunks.
        windows: All windows.
        missing: Chunks without any window.
        pending: Chunks that have windows, but whose note waits for new ones.
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


def register_windows(connection: Connection, model: str, *, windows_hash: str) -> None:
    """Enable windows for a registered model, and queue all notes if it had none or others.

    If the model has these windows already, nothing is locked. Otherwise some tables are locked
    against writers until the caller commits.

    Args:
        connection: In a transaction.
        model: Registered.
        windows_hash: See `core.windows.windows_hash`.

    Raises:
        IndexingError: Another session does not release its locks on those tables.
    """
    if _windows_hash(connection, model) != windows_hash:
        with_brief_locks(connection, lambda: _register(connection, model, windows_hash))


def has_windows(connection: Connection, model: str) -> bool:
    """Whether windows are enabled for a model, even if some are still missing."""
    return _windows_hash(connection, model) is not None


def _windows_hash(connection: Connection, model: str) -> str | None:
    known = queries().fetch_model(connection, name=model)
    return known.windows_hash if known else None


def _register(connection: Connection, model: str, windows_hash: str) -> None:
    queries().lock_for_partitions(connection)
    # Another run may have registered them since the first look.
    if _windows_hash(connection, model) != windows_hash:
        queries().set_windows(connection, model=model, windows_hash=windows_hash)


def select_chunks_to_cut(
    connection: Connection, model: str, note_ids: Sequence[UUID]
) -> list[ChunkToCut]:
    """Return the chunks of the given notes with their present windows."""
    rows = queries().select_chunks_to_cut(connection, model=model, note_ids=list(note_ids))
    return [
        ChunkToCut(
            row.id,
            row.note_id,
            row.title,
            tuple(row.tags),
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
    """Return the vectors that a model already has for the given texts, by the texts' SHA-256."""
    rows = queries().find_reusable_windows(connection, model=model, hashes=list(hashes))
    return {bytes(row.sha256): row.embedding for row in rows}


def replace_windows(
    connection: Connection,
    model: str,
    windows: Mapping[UUID, Sequence[Window]],
    vectors: Mapping[bytes, HalfVector],
) -> set[UUID]:
    """Replace the windows of chunks.

    Args:
        connection: In a transaction.
        model: Registered.
        windows: By chunk, in order.
        vectors: By the hash of their text.

    Returns:
        The chunks that have their windows now; not those deleted or being deleted.
    """
    kept = {row.id: row.tenant_id for row in queries().keep_chunks(connection, ids=list(windows))}
    if not kept:
        return set()
    queries().delete_windows(connection, model=model, chunk_ids=list(kept))
    with connection.cursor() as cursor, cursor.copy(queries().copy_windows.sql) as copy:
        copy.set_types(["uuid", "text", "int4", "int4", "int4", "halfvec", "bytea", "text"])
        for chunk_id, tenant in kept.items():
            for index, window in enumerate(windows[chunk_id]):
                sha256 = window.text_sha256
                place = (chunk_id, model, index, window.span.start, window.span.end)
                copy.write_row((*place, vectors[sha256], sha256, tenant))
    return set(kept)


def complete_pending_windows(
    connection: Connection, model: str, note_ids: Sequence[UUID]
) -> list[UUID]:
    """Remove notes from the queue; return those that were in it."""
    rows = queries().complete_pending_windows(connection, model=model, note_ids=list(note_ids))
    return [row.note_id for row in rows]


def count_window_gaps(connection: Connection, info: ModelInfo, window: TimeWindow) -> WindowGaps:
    """Count the windows of a model that are missing or wrong in the chunks of a time window."""
    row = queries().count_window_gaps(
        connection,
        model=info.name,
        dimension=info.dimension,
        month_start=window.start,
        month_end=window.end,
    )
    return WindowGaps(*row)
