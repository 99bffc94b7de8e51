"""The vectors that a model makes of chunks. All kinds are made and verified in the same way."""

from collections.abc import Callable
from dataclasses import dataclass

from rag_resources.core.migration_gate import VectorState
from rag_resources.core.types import ModelInfo, TimeWindow
from rag_resources.core.windows import WindowsConfig, windows_hash
from rag_resources.database.pool import Connection, Database
from rag_resources.indexing.chunk import Progress
from rag_resources.indexing.embed import embed_chunks
from rag_resources.indexing.embedding_queue import EmbedReport
from rag_resources.indexing.scale import measured_info
from rag_resources.indexing.verify import verify_embeddings, verify_windows
from rag_resources.indexing.windows import embed_windows
from rag_resources.providers.protocols import Embedder
from rag_resources.settings import Settings
from rag_resources.store.document_list import refresh_statuses
from rag_resources.store.embeddings import Gaps, count_gaps
from rag_resources.store.index_state import bump_index_version
from rag_resources.store.models import register_model
from rag_resources.store.queues import NoteQueue, count_queued, is_empty
from rag_resources.store.vector_indexes import ensure_vector_indexes, ensure_window_indexes
from rag_resources.store.windows import WindowGaps, count_window_gaps, register_windows


@dataclass(frozen=True, slots=True)
class VectorKind:
    """A kind of vectors.

    Attributes:
        queue: The notes that wait for such vectors.
        register: Creates the tables that a registered model needs in the database.
        embed: Makes the missing vectors of a time window.
        ensure_indexes: Builds the indexes for which there are enough vectors now.
        count_gaps: Counts the missing and the wrong vectors of a time window.
        verify: Compares stored vectors of a time window with newly made ones.
    """

    queue: NoteQueue
    register: Callable[[Connection, str, Settings], None]
    embed: Callable[[Database, Embedder, Settings, TimeWindow, Progress], EmbedReport]
    ensure_indexes: Callable[[Database, ModelInfo], list[str]]
    count_gaps: Callable[[Connection, ModelInfo, TimeWindow], Gaps | WindowGaps]
    verify: Callable[[Database, Embedder, TimeWindow], VectorState]


EMBEDDINGS = VectorKind(
    queue=NoteQueue.EMBEDDINGS,
    register=lambda _connection, _model, _settings: None,
    embed=lambda database, embedder, _settings, window, progress: embed_chunks(
        database, embedder, window, progress=progress
    ),
    ensure_indexes=ensure_vector_indexes,
    count_gaps=count_gaps,
    verify=verify_embeddings,
)
"""Vectors of whole chunks: one of the text, one of the text with its context."""

WINDOWS = VectorKind(
    queue=NoteQueue.WINDOWS,
    register=lambda connection, model, settings: register_windows(
        connection, model, windows_hash=windows_hash(WindowsConfig())
    ),
    embed=lambda database, embedder, settings, window, progress: embed_windows(
        database, embedder, WindowsConfig(), window, progress=progress
    ),
    ensure_indexes=ensure_window_indexes,
    count_gaps=count_window_gaps,
    verify=verify_windows,
)
"""Vectors of small windows of chunks."""


@dataclass(frozen=True, slots=True)
class ChunkVectors:
    """The vectors of one kind in a database. A `window` is a range of notes' creation times.

    Attributes:
        embedder: Returns the embedder of a model, by name.
    """

    database: Database
    settings: Settings
    embedder: Callable[[str], Embedder]
    kind: VectorKind

    def register(self, model: str) -> None:
        """Create the tables that a model needs in the database, if they are missing.

        Raises:
            ProviderError: Another model is registered under this name.
        """
        info = measured_info(self.database, self.embedder(model))
        with self.database.transaction() as connection:
            register_model(connection, info, embeds_chunks=True)
            self.kind.register(connection, model, self.settings)

    def is_done(self, model: str, window: TimeWindow) -> bool:
        """Whether no note of a window waits for vectors."""
        with self.database.transaction() as connection:
            return is_empty(connection, model, window, queue=self.kind.queue)

    def left(self, model: str, window: TimeWindow) -> int:
        """Count the notes of a window that wait for vectors."""
        with self.database.transaction() as connection:
            return count_queued(connection, model, window, queue=self.kind.queue)

    def embed(self, model: str, window: TimeWindow, *, progress: Progress) -> EmbedReport:
        """Make the missing vectors of a window."""
        embedder = self.embedder(model)
        return self.kind.embed(self.database, embedder, self.settings, window, progress)

    def build_indexes(self, model: str) -> None:
        """Build the indexes for which there are enough vectors now.

        Documents whose notes are all embedded get that status.
        """
        with self.database.transaction() as connection:
            refresh_statuses(connection)
        info = self.embedder(model).info
        if self.kind.ensure_indexes(self.database, info):
            with self.database.transaction() as connection:
                bump_index_version(connection)

    def gaps(self, model: str, window: TimeWindow) -> Gaps | WindowGaps:
        """Count the missing and the wrong vectors of a window."""
        with self.database.transaction() as connection:
            return self.kind.count_gaps(connection, self.embedder(model).info, window)

    def verify(self, model: str, window: TimeWindow) -> VectorState:
        """Compare stored vectors of a window with newly made ones, and check all lengths."""
        return self.kind.verify(self.database, self.embedder(model), window)
