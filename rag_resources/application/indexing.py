"""Makes and maintains chunks and vectors of notes, one time window at a call."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from uuid import UUID

from rag_resources.configurations import vector_kinds
from rag_resources.core.chunking_version import chunking_hash
from rag_resources.core.migration_gate import VectorState
from rag_resources.core.retrievers import VectorKind
from rag_resources.core.types import ModelInfo, TimeWindow
from rag_resources.core.windows import WindowsConfig
from rag_resources.database.pool import Database
from rag_resources.indexing.adopt import AdoptReport, adopt_vectors
from rag_resources.indexing.chunk import ChunkReport, Progress, chunk_window, no_progress
from rag_resources.indexing.embed import embed_chunks, embed_notes
from rag_resources.indexing.embedding_queue import EmbedReport
from rag_resources.indexing.retirement import configurations_of, contents_of, retire
from rag_resources.indexing.scale import measured_info
from rag_resources.indexing.verify import (
    discard_all,
    discard_refused,
    find_broken_notes,
    verify_vectors,
)
from rag_resources.providers.protocols import Embedder
from rag_resources.settings import Settings
from rag_resources.store.chunks import BrokenNote, count_notes_to_chunk, update_statistics
from rag_resources.store.document_list import refresh_statuses
from rag_resources.store.index_state import bump_index_version
from rag_resources.store.models import ModelContents, register_model
from rag_resources.store.notes import count_notes, external_ids, fetch_notes
from rag_resources.store.progress import WaitingMonth, index_is_current, list_waiting_months
from rag_resources.store.vector_indexes import ensure_vector_indexes
from rag_resources.store.vectors import (
    Discarded,
    VectorGaps,
    count_gaps,
    count_pending,
    count_queued,
    is_empty,
)

_AT_ONCE = 100
"""Most notes of one moment that are indexed outside a run."""


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

    # --- Chunks

    def is_chunked(self, window: TimeWindow) -> bool:
        """Whether no note of a window is left to chunk."""
        way = chunking_hash(self.settings.chunking)
        with self.database.transaction() as connection:
            return index_is_current(connection, window, chunking_hash=way, kinds={})

    def waiting_months(self) -> list[WaitingMonth]:
        """Return the months in which notes wait for what other notes of the month have."""
        with self.database.transaction() as connection:
            return list_waiting_months(connection, self.settings.embedding_models)

    def left_to_chunk(self, window: TimeWindow) -> int:
        """Count the notes of a window that are left to chunk."""
        way = chunking_hash(self.settings.chunking)
        with self.database.transaction() as connection:
            return count_notes_to_chunk(connection, window, chunking_hash=way)

    def chunk(self, window: TimeWindow, *, progress: Progress) -> ChunkReport:
        """Chunk the notes of a window that need it."""
        return chunk_window(self.database, window, self.settings.chunking, progress=progress)

    def refresh_statistics(self, *, rewritten: int) -> None:
        """Recount lexemes after this many chunks were rewritten, or if the counts are old.

        Documents whose notes are all chunked get that status.
        """
        with self.database.transaction() as connection:
            update_statistics(connection, rewritten=rewritten)
            refresh_statuses(connection)

    def broken_notes(self, window: TimeWindow) -> tuple[int, list[BrokenNote]]:
        """Check the chunks of a window; return the number of notes and the broken ones."""
        return find_broken_notes(self.database, window)

    # --- Vectors of chunks

    def register(self, model: str) -> ModelInfo:
        """Create the tables that a model needs, for the vectors that configurations search.

        Its scale is measured on the notes.

        Raises:
            ProviderError: Another model is registered under this name.
        """
        info = measured_info(self.database, self.embedder(model))
        with self.database.transaction() as connection:
            register_model(
                connection,
                info,
                vector_kinds(self.settings.configuration_folders, model),
                windows=WindowsConfig(),
            )
        return info

    def is_embedded(self, model: str, window: TimeWindow) -> bool:
        """Whether no note of a window waits for vectors of its chunks."""
        with self.database.transaction() as connection:
            return is_empty(connection, model, window)

    def left_to_embed(self, model: str, window: TimeWindow) -> int:
        """Count the notes of a window that wait for vectors of their chunks."""
        with self.database.transaction() as connection:
            return count_queued(connection, model, window)

    def embed(self, model: str, window: TimeWindow, *, progress: Progress) -> EmbedReport:
        """Make the missing vectors of a window's chunks."""
        return embed_chunks(
            self.database,
            self.embedder(model),
            window,
            windows=WindowsConfig(),
            progress=progress,
        )

    def build_indexes(self, model: str) -> None:
        """Build the indexes for which there are enough vectors now.

        Documents whose notes are all embedded get that status.
        """
        with self.database.transaction() as connection:
            refresh_statuses(connection)
        if ensure_vector_indexes(self.database, self.embedder(model).info):
            with self.database.transaction() as connection:
                bump_index_version(connection)

    def gaps(self, model: str, window: TimeWindow) -> list[VectorGaps]:
        """Count the missing and the wrong vectors of a window, by kind."""
        with self.database.transaction() as connection:
            return count_gaps(connection, self.embedder(model).info, window)

    def verify_vectors(self, model: str, window: TimeWindow) -> VectorState:
        """Compare stored vectors of a window with newly made ones, and check all lengths."""
        return verify_vectors(self.database, self.embedder(model), window)

    def discard_refused(self, model: str, window: TimeWindow) -> Discarded | None:
        """Delete the vectors of a window that are not the model's; see `verify.discard_refused`."""
        return discard_refused(self.database, self.embedder(model), window)

    def discard_vectors(self, model: str, window: TimeWindow) -> Discarded:
        """Delete a model's vectors of a window's chunks, so that the next run makes them again.

        Raises:
            ModelMissingError: The model was retired, or never registered.
        """
        return discard_all(self.database, model, window)

    # --- The end of a model

    def contents_of(self, model: str) -> ModelContents:
        """Return what retiring a model would drop.

        Raises:
            InvalidParameterError: No model ever had this name.
        """
        return contents_of(self.database, model)

    def pending(self) -> dict[str, int]:
        """Return how many notes wait for vectors, by model; models without any are left out."""
        with self.database.transaction() as connection:
            return count_pending(connection)

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

    def register_note_model(self) -> None:
        """Create the tables of whole-note vectors if they are missing.

        Raises:
            ProviderError: Another model is registered under this name.
        """
        info = measured_info(self.database, self.embedder(self.note_model))
        with self.database.transaction() as connection:
            register_model(connection, info, {VectorKind.NOTE})

    def notes_left_to_embed(self, window: TimeWindow) -> int:
        """Count the notes of a window that have no vector."""
        with self.database.transaction() as connection:
            return count_queued(connection, self.note_model, window, whole=True)

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

    def index_like_their_months(self, note_ids: Collection[UUID]) -> bool:
        """Index some notes at once, as far as other notes of their months are.

        Args:
            note_ids: Few notes, which wait to be indexed.

        Returns:
            Whether all of them have now what the others have. What is left, the next run does.

        Raises:
            ProviderError: A model is not usable; what was made before stays.
        """
        with self.database.transaction() as connection:
            notes = fetch_notes(connection, note_ids).values()
        moments = sorted({note.created_at for note in notes})
        outcomes = [self._index_like_its_month(moment) for moment in moments]
        return all(outcomes)

    def _index_like_its_month(self, moment: datetime) -> bool:
        own, month = TimeWindow.of_moment(moment), TimeWindow.of_month(moment)
        others = self.count_notes(month) - self.count_notes(own)

        def is_due(left: Callable[[TimeWindow], int]) -> bool:
            """Whether a note waits for what other notes of the month, if there are any, have."""
            waiting = left(own)
            return waiting > 0 and (not others or left(month) - waiting < others)

        if not is_due(self.left_to_chunk) or self.left_to_chunk(own) > _AT_ONCE:
            return False
        self.register_note_model()
        failed = [*self.embed_notes(own).failed]
        report = self.chunk(own, progress=no_progress)
        failed += report.failed
        for model in self.settings.embedding_models:
            if is_due(partial(self.left_to_embed, model)):
                failed += self.embed(model, own, progress=no_progress).failed
        self.refresh_statistics(rewritten=report.chunks)
        return not failed

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
