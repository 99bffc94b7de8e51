"""What one can do with the golden dataset."""

from dataclasses import dataclass
from pathlib import Path

from rag_resources.core.golden import GoldenEntry
from rag_resources.core.golden_drift import GoldenDrift
from rag_resources.database.pool import Database
from rag_resources.golden.files import import_golden
from rag_resources.golden.review import review_drift
from rag_resources.settings import Settings
from rag_resources.store.golden import BrokenEntry, GoldenImport, find_broken, list_golden


@dataclass(frozen=True, slots=True)
class Golden:
    """The golden dataset of a database."""

    database: Database
    settings: Settings

    def import_file(self, path: Path, *, run_id: str | None) -> GoldenImport:
        """Import the questions of a source, all of them or none.

        Raises:
            RagError: The file cannot be read, or is not valid; nothing changed.
        """
        return import_golden(self.database, path, tenant=self.settings.tenant, run_id=run_id)

    def entries(self) -> list[GoldenEntry]:
        """Return all questions, in a stable order."""
        with self.database.transaction() as connection:
            return list_golden(connection)

    def broken(self) -> list[BrokenEntry]:
        """Return the questions some of whose relevant notes are gone."""
        with self.database.transaction() as connection:
            return find_broken(connection)

    def drift(self) -> GoldenDrift:
        """Return which questions want looking at."""
        return review_drift(self.database)
