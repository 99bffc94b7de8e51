"""Makes and maintains the causal graph of the notes, one time window at a call."""

from collections.abc import Callable
from dataclasses import dataclass

from rag_resources.core.graph_version import GraphPart
from rag_resources.core.types import TimeWindow
from rag_resources.database.pool import Database
from rag_resources.graph.extraction import Extractor, build_extractor
from rag_resources.graph.reading import GraphReport, read_notes
from rag_resources.providers.protocols import LanguageModel
from rag_resources.settings import Settings
from rag_resources.store.graph import (
    GraphGaps,
    count_gaps,
    count_queued,
    forget_orphans,
    is_current,
    register_part,
)


@dataclass(frozen=True, slots=True)
class Graph:
    """The graph of a database. A `window` is a range of notes' creation times."""

    database: Database
    settings: Settings
    language_model: LanguageModel | None = None

    @property
    def extractor(self) -> Extractor:
        """The extractor that the settings name.

        Raises:
            InvalidParameterError: It is a language model, and none is configured.
        """
        return build_extractor(self.settings.graph_extractor, self.language_model)

    def register(self, part: GraphPart) -> None:
        """Register a part of the graph; all notes are read again if its version changed."""
        version = self.extractor.version(part)
        with self.database.transaction() as connection:
            register_part(connection, part, version=version)

    def left(self, part: GraphPart, window: TimeWindow) -> int:
        """Count the notes of a window that wait to be read."""
        with self.database.transaction() as connection:
            return count_queued(connection, part, window)

    def is_done(self, window: TimeWindow) -> bool:
        """Whether no chunked note of a window waits to be read, for any part."""
        versions = {part: self.extractor.version(part) for part in GraphPart}
        with self.database.transaction() as connection:
            return is_current(connection, versions, window)

    def read(
        self, part: GraphPart, window: TimeWindow, *, progress: Callable[[int], None]
    ) -> GraphReport:
        """Read the notes of a window that wait for it."""
        return read_notes(self.database, part, self.extractor, window, progress=progress)

    def clean(self) -> None:
        """Delete the entities that edited notes do not name any more."""
        with self.database.transaction() as connection:
            forget_orphans(connection)

    def gaps(self, part: GraphPart, window: TimeWindow) -> GraphGaps:
        """Count what a part lacks in the notes of a window."""
        with self.database.transaction() as connection:
            return count_gaps(connection, part, window)
