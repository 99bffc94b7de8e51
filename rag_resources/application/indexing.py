"""Makes and maintains chunks and vectors of notes, one time window at a call."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from uuid import UUID

from rag_resources.core.chunking_version import chunking_hash
from rag_resources.core.migration_gate import VectorState
from rag_resources.core.types import ModelInfo, TimeWindow
from rag_resources.core.windows import windows_hash
from rag_resources.database.pool import Database
from rag_resources.indexing.adopt import AdoptReport, adopt_vectors
from rag_resources.indexing.chunk import ChunkReport, chunk_window
from rag_resources.indexing.embed import EmbedReport, embed_chunks, embed_notes
from rag_resources.indexing.retirement import configurations_of, contents_of, retire
from rag_resources.indexing.verify import find_broken_notes, verify_vectors
from rag_resources.indexing.windows import embed_windows, lowest_window_cosine
from rag_resources.ingestion.content_settings import require_model, require_settings
from rag_resources.providers.protocols import Embedder
from rag_resources.settings import Settings
from rag_resources.store.chunks import BrokenNote, count_notes_to_chunk, update_statistics
from rag_resources.store.embeddings import (
    Gaps,
    count_gaps,
    count_notes_to_embed,
    count_pending,
)
from rag_resources.store.index_state import bump_index_version
from rag_resources.store.migration import vectors_are_current
from rag_resources.store.models import ModelContents, register_model
from rag_resources.store.notes import count_notes, external_ids
from rag_resources.store.progress import index_is_current
from rag_resources.store.vector_indexes import ensure_vector_indexes, ensure_window_indexes
from rag_resources.store.windows import (
    WindowGaps,
    count_pending_windows,
    count_window_gaps,
    register_windows,
    windows_are_current,
)

Progress = Callable[[int], None]
"""Told how many notes were done."""


@dataclass(frozen=True, slots=True)
class Indexing:
    """The index of a database.

    Attributes:
        embedder: Returns the embedder of a model, by name.
    """

    database: Database
    settings: Settings
    embedder: Callable[[str], Embedder]

    @property
    def note_model(self) -> str:
        """The model of the whole-note vectors."""
        return self.settings.note_embedding_model

    def require_settings(self, names: Collection[str]) -> None:
        """Refuse settings that differ from those the database was filled with.

        Raises:
            SettingsChangedError: One of the named settings differs.
        """
        require_settings(self.database, self.settings, names)

    def require_model(self, model: str) -> None:
        """Refuse a model with which the database was not filled.

        Raises:
            SettingsChangedError: The model is not one of the database's.
        """
        require_model(self.database, self.settings, model)

    # --- Chunks

    def is_chunked(self, window: TimeWindow) -> bool:
        """Whether no note of a window is left to chunk."""
        way = chunking_hash(self.settings.chunking)
        with self.database.transaction() as connection:
            return index_is_current(connection, window, chunking_hash=way, models=())

    def left_to_chunk(self, window: TimeWindow) -> int:
        """Count the notes of a window that are left to chunk."""
        way = chunking_hash(self.settings.chunking)
        with self.database.transaction() as connection:
            return count_notes_to_chunk(connection, window, chunking_hash=way)

    def chunk(self, window: TimeWindow, *, progress: Progress) -> ChunkReport:
        """Chunk the notes of a window that need it."""
        return chunk_window(self.database, window, self.settings.chunking, progress=progress)

    def refresh_statistics(self, *, rewritten: int) -> None:
        """Recount lexemes after this many chunks were rewritten, or if the counts are old."""
        with self.database.transaction() as connection:
            update_statistics(connection, rewritten=rewritten)

    def broken_notes(self, window: TimeWindow) -> tuple[int, list[BrokenNote]]:
        """Check the chunks of a window; return the number of notes and the broken ones."""
        return find_broken_notes(self.database, window)

    # --- Vectors

    def register(self, model: str, *, embeds_chunks: bool) -> ModelInfo:
        """Create the tables of a model if they are missing, and return its description.

        Raises:
            ProviderError: Another model is registered under this name.
        """
        info = self.embedder(model).info
        with self.database.transaction() as connection:
            register_model(connection, info, embeds_chunks=embeds_chunks)
        return info

    def is_embedded(self, model: str, window: TimeWindow) -> bool:
        """Whether no chunk of a window is left to embed."""
        with self.database.transaction() as connection:
            return vectors_are_current(connection, model, window)

    def left_to_embed(self, model: str, window: TimeWindow) -> int:
        """Count the notes of a window with chunks left to embed."""
        with self.database.transaction() as connection:
            return count_pending(connection, model, window, skipped=())

    def embed(self, model: str, window: TimeWindow, *, progress: Progress) -> EmbedReport:
        """Embed the chunks of a window that need it."""
        return embed_chunks(self.database, self.embedder(model), window, progress=progress)

    def build_vector_indexes(self, model: str) -> None:
        """Build the vector indexes that a model is now large enough for."""
        info, min_rows = self.embedder(model).info, self.settings.hnsw_min_rows
        if ensure_vector_indexes(self.database, info, min_rows=min_rows):
            with self.database.transaction() as connection:
                bump_index_version(connection)

    def gaps(self, model: str, window: TimeWindow) -> Gaps:
        """Count the vectors of a model that the chunks of a window lack."""
        info = self.embedder(model).info
        with self.database.transaction() as connection:
            return count_gaps(connection, info, window)

    def verify_vectors(self, model: str, window: TimeWindow) -> VectorState:
        """Compare the stored vectors of a window with newly made ones, and check their lengths."""
        return verify_vectors(self.database, self.embedder(model), window)

    # --- Windows

    def register_windows(self, model: str) -> None:
        """Have the chunks of a registered model cut into windows as configured."""
        way = windows_hash(self.settings.windows)
        with self.database.transaction() as connection:
            register_windows(connection, model, windows_hash=way)

    def has_windows(self, model: str, window: TimeWindow) -> bool:
        """Whether no note of some months waits for its windows."""
        with self.database.transaction() as connection:
            return windows_are_current(connection, model, window)

    def left_to_cut(self, model: str, window: TimeWindow) -> int:
        """Count the notes of some months that wait for their windows."""
        with self.database.transaction() as connection:
            return count_pending_windows(connection, model, window, skipped=())

    def embed_windows(self, model: str, window: TimeWindow, *, progress: Progress) -> EmbedReport:
        """Make the windows of some months that are missing."""
        return embed_windows(
            self.database,
            self.embedder(model),
            self.settings.windows,
            window,
            progress=progress,
        )

    def build_window_index(self, model: str) -> None:
        """Build the index of a model's windows if there are enough of them now."""
        info, min_rows = self.embedder(model).info, self.settings.hnsw_min_rows
        if ensure_window_indexes(self.database, info, min_rows=min_rows):
            with self.database.transaction() as connection:
                bump_index_version(connection)

    def window_gaps(self, model: str, window: TimeWindow) -> WindowGaps:
        """Count the windows that the chunks of some months lack."""
        info = self.embedder(model).info
        with self.database.transaction() as connection:
            return count_window_gaps(connection, info, window)

    def lowest_window_cosine(self, model: str) -> float | None:
        """Compare stored windows with newly made ones; None if nothing is stored."""
        return lowest_window_cosine(self.database, self.embedder(model))

    # --- The end of a model

    def contents_of(self, model: str) -> ModelContents:
        """Return what retiring a model would drop.

        Raises:
            InvalidParameterError: No model ever had this name.
        """
        return contents_of(self.database, model)

    def retire(self, model: str) -> ModelContents:
        """Drop all vectors of a model, and return what was dropped.

        Raises:
            ModelInUseError: The model is in use.
        """
        return retire(self.database, self.settings, model)

    def configurations_of(self, model: str) -> list[str]:
        """Return the configurations that search with a model."""
        return configurations_of(self.settings, model)

    # --- Whole notes

    def notes_left_to_embed(self, window: TimeWindow) -> int:
        """Count the notes of a window that have no vector."""
        with self.database.transaction() as connection:
            return count_notes_to_embed(connection, self.note_model, window, skipped=())

    def embed_notes(
        self, window: TimeWindow, *, progress: Progress = lambda _: None
    ) -> EmbedReport:
        """Embed the notes of a window that need it, as a whole."""
        embedder = self.embedder(self.note_model)
        return embed_notes(self.database, embedder, window, progress=progress)

    def adopt_vectors(self, window: TimeWindow) -> AdoptReport | None:
        """Adopt the vectors of the old application; None if the settings do not ask for it."""
        if not self.settings.adopts_legacy_vectors:
            return None
        return adopt_vectors(self.database, self.embedder(self.note_model), window)

    # --- Notes

    def count_notes(self, window: TimeWindow) -> int:
        """Count the notes of a window."""
        with self.database.transaction() as connection:
            return count_notes(connection, window)

    def external_ids(self, note_ids: Collection[UUID]) -> dict[UUID, str]:
        """Return the external ids of some notes; deleted notes are left out."""
        if not note_ids:
            return {}
        with self.database.transaction() as connection:
            return external_ids(connection, note_ids)
