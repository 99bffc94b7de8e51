"""Use cases of the golden dataset: files, single questions, history and review."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from rag_resources.core.golden import GoldenEntry
from rag_resources.core.golden_changes import GoldenChange
from rag_resources.core.golden_drift import GoldenDrift
from rag_resources.database.pool import Database
from rag_resources.golden.editing import add_entry, delete_entries, find_entry, update_entry
from rag_resources.golden.files import (
    GoldenFile,
    export_golden,
    import_golden,
    import_rows,
    read_golden,
    restore_golden,
)
from rag_resources.settings import Settings
from rag_resources.store.comparison import name_notes
from rag_resources.store.golden import (
    BrokenEntry,
    GoldenImport,
    find_broken,
    list_golden,
    withdrawn_golden,
)
from rag_resources.store.golden_review import review_drift


@dataclass(frozen=True, slots=True)
class Golden:
    """The golden dataset of a database."""

    database: Database
    settings: Settings

    @property
    def source(self) -> Path | None:
        """The file that the next materialisation imports, if the settings name one."""
        return self.settings.golden_source

    def import_file(
        self, path: Path, *, replace: bool = False, reason: str = "", run_id: str | None = None
    ) -> GoldenImport:
        """Import the questions of a file, all of them or none.

        Args:
            path: A JSON file of questions.
            replace: Whether the file also replaces questions that a person entered.
            reason: As for `update`.
            run_id: Dagster's run, if there is one.

        Raises:
            RagError: The file cannot be read, or is not valid; nothing changed.
        """
        return import_golden(
            self.database,
            path,
            tenant=self.settings.tenant,
            replace=replace,
            reason=reason,
            run_id=run_id,
        )

    def import_rows(self, raw: Any, *, name: str, origin: str, replace: bool) -> GoldenImport:
        """Import questions as a file holds them, all or none.

        Args:
            raw: A list of entries, or a mapping with one under `entries`.
            name: The name in errors, and the source that is stored with the entries.
            origin: The cause that the history records.
            replace: As for `import_file`.

        Raises:
            InvalidGoldenDatasetError: An entry is not valid; nothing changed.
        """
        return import_rows(
            self.database,
            raw,
            name=name,
            tenant=self.settings.tenant,
            source=name,
            origin=origin,
            replace=replace,
        )

    def restore(self, moment: str) -> Sequence[GoldenChange]:
        """Restore the questions as they were at a version, golden hash or date.

        Raises:
            RagError: There is no such moment, or a relevant note is gone; nothing changed.
        """
        return restore_golden(self.database, moment)

    def export(self, path: Path, *, moment: str | None = None, force: bool = False) -> int:
        """Write the questions to a file, as they are or were, and return how many.

        Raises:
            RagError: There is no such moment, or the file cannot be written, or exists with other
                content without `force`.
        """
        return export_golden(self.database, path, moment=moment, force=force)

    def read_file(self, path: Path) -> GoldenFile:
        """Read a file and check it against the stored notes; nothing is stored.

        Raises:
            RagError: The file cannot be read, or is not valid.
        """
        return read_golden(self.database, path, tenant=self.settings.tenant)

    def entries(self) -> list[GoldenEntry]:
        """Return all questions, in a stable order."""
        with self.database.transaction() as connection:
            return list_golden(connection)

    def find(self, golden_id: str) -> tuple[GoldenEntry, Mapping[UUID, str]]:
        """Return a question by its id or the beginning of it, and its notes' names.

        Raises:
            InvalidParameterError: No question, or several, have such an id.
        """
        with self.database.transaction() as connection:
            entry = find_entry(list_golden(connection), golden_id)
            return entry, name_notes(connection, entry.relevant_note_ids)

    def add(self, fields: Mapping[str, Any], *, origin: str) -> GoldenEntry:
        """Add a question.

        Args:
            fields: As a file gives them.
            origin: The cause that the history records.

        Raises:
            InvalidGoldenDatasetError: The question is not valid; every problem is named.
        """
        return add_entry(self.database, fields, tenant=self.settings.tenant, origin=origin)

    def update(
        self, golden_id: str, fields: Mapping[str, Any], *, origin: str, reason: str = ""
    ) -> GoldenEntry:
        """Change some fields of a question.

        Args:
            golden_id: Its id or the beginning of it.
            fields: As for `add`; without any, the question is confirmed as right.
            origin: As for `add`.
            reason: Why, for the history; without one the question as it was stays asked until the
                next promotion.

        Raises:
            RagError: No question has such an id, or it would not be valid.
        """
        return update_entry(
            self.database,
            golden_id,
            fields,
            tenant=self.settings.tenant,
            origin=origin,
            reason=reason,
        )

    def delete(self, entries: Sequence[GoldenEntry], *, origin: str, reason: str = "") -> None:
        """Delete questions; the history keeps them. The reason is as for `update`."""
        delete_entries(self.database, entries, origin=origin, reason=reason)

    def withdrawn(self) -> list[GoldenEntry]:
        """Return the questions removed or changed without a reason since the last promotion."""
        with self.database.transaction() as connection:
            return withdrawn_golden(connection)

    def broken(self) -> list[BrokenEntry]:
        """Return the questions some of whose relevant notes are gone."""
        with self.database.transaction() as connection:
            return find_broken(connection)

    def drift(self) -> GoldenDrift:
        """Return the questions that need review."""
        with self.database.snapshot() as connection:
            return review_drift(connection)
