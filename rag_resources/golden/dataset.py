"""The golden dataset: files, which `golden.files` reads, single questions, history and review."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

from rag_resources.core.errors import InvalidGoldenDatasetError, InvalidParameterError
from rag_resources.core.frames import entries_of_frame, golden_frame
from rag_resources.core.golden import GoldenEntry, parse_entry
from rag_resources.core.golden_drift import GoldenDrift
from rag_resources.core.golden_places import could_name_a_note
from rag_resources.database.pool import Connection, Database
from rag_resources.golden.files import (
    GoldenFile,
    export_golden,
    import_golden,
    import_rows,
    read_golden,
)
from rag_resources.languages.messages import _
from rag_resources.settings import Settings
from rag_resources.store.comparison import name_notes
from rag_resources.store.golden import (
    BrokenEntry,
    GoldenImport,
    delete_golden,
    find_broken,
    list_golden,
    lock_golden,
    present_place,
    withdrawn_golden,
    write_golden,
)
from rag_resources.store.golden_review import review_drift
from rag_resources.store.notes import find_note, note_content

if TYPE_CHECKING:
    import pandas as pd

Fields = Mapping[str, Any]
"""The fields of an entry, as a file gives them."""


def find_entry(entries: Sequence[GoldenEntry], prefix: str) -> GoldenEntry:
    """Return the only entry whose id starts with this prefix.

    Raises:
        InvalidParameterError: No entry matches, or several do.
    """
    found = [entry for entry in entries if str(entry.golden_id).startswith(prefix.strip().lower())]
    if len(found) == 1:
        return found[0]
    message = (
        _("{count} questions have an identifier that begins with “{prefix}”. Write more digits.")
        if found
        else _(
            "No question has an identifier that begins with “{prefix}”. See them with “rag golden "
            "list”."
        )
    )
    raise InvalidParameterError(message.format(prefix=prefix, count=len(found)))


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
            path: A file of questions: JSON, CSV or Parquet.
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

    def export(self, path: Path, *, force: bool = False) -> int:
        """Write the questions to a file, and return how many.

        Raises:
            RagError: The file cannot be written, or exists with other content without `force`.
        """
        return export_golden(self.database, path, force=force)

    def read_file(self, path: Path) -> GoldenFile:
        """Read a file and check it against the stored notes; nothing is stored.

        Raises:
            RagError: The file cannot be read, or is not valid.
        """
        return read_golden(self.database, path, tenant=self.settings.tenant)

    def entries(self, tag: str | None = None) -> list[GoldenEntry]:
        """Return all questions, or those with a tag, in a stable order."""
        with self.database.transaction() as connection:
            found = list_golden(connection)
        return [entry for entry in found if tag is None or tag in entry.tags]

    def frame(self) -> "pd.DataFrame":
        """Return all questions as a data frame; its columns are `core.frames.GOLDEN`."""
        return golden_frame(self.entries())

    def import_frame(
        self, frame: "pd.DataFrame", *, name: str = "frame", replace: bool = False
    ) -> GoldenImport:
        """Import the rows of a data frame, all or none; see `import_rows`.

        Args:
            frame: Its columns are the keys of a file of questions, or those of `frame`.
            name: As for `import_rows`; a later import under the same name replaces these.
            replace: As for `import_file`.

        Raises:
            InvalidGoldenDatasetError: A row is not valid; nothing changed.
        """
        return self.import_rows(entries_of_frame(frame), name=name, origin=name, replace=replace)

    def find(self, golden_id: str) -> tuple[GoldenEntry, Mapping[UUID, str]]:
        """Return a question by its id or the beginning of it, and its notes' names.

        Raises:
            InvalidParameterError: No question, or several, have such an id.
        """
        with self.database.transaction() as connection:
            entry = find_entry(list_golden(connection), golden_id)
            return entry, name_notes(connection, entry.relevant_note_ids)

    def add(self, fields: Fields, *, origin: str) -> GoldenEntry:
        """Add a question.

        Args:
            fields: As a file gives them.
            origin: The cause that the history records.

        Raises:
            InvalidGoldenDatasetError: The question is not valid; every problem is named.
        """
        with self.database.transaction() as connection:
            lock_golden(connection, origin=origin)
            return self._write(connection, fields, list_golden(connection), origin)

    def update(
        self, golden_id: str, fields: Fields, *, origin: str, reason: str = ""
    ) -> GoldenEntry:
        """Change some fields of a question; with no fields, record that it was reviewed.

        Places that are not given are kept at their present position in the notes. Those in notes
        that are no longer relevant are dropped. A lost place must be given again.

        Args:
            golden_id: Its id or the beginning of it.
            fields: As for `add`.
            origin: As for `add`.
            reason: Why, for the history; without one the question as it was stays asked until the
                next promotion.

        Raises:
            RagError: No question has such an id, or it would not be valid.
        """
        with self.database.transaction() as connection:
            lock_golden(connection, origin=origin)
            entries = list_golden(connection)
            stored = find_entry(entries, golden_id)
            row = stored.to_json()
            if "relevantNotes" in fields:
                del row["relevantNoteIds"]
            if stored.places and "places" not in fields:
                row["places"] = self._present_places(connection, stored, fields)
            others = [entry for entry in entries if entry is not stored]
            row |= {"updatedAt": datetime.now(UTC).isoformat(), **fields, "id": row["id"]}
            return self._write(connection, row, others, origin, reason)

    def delete(self, entries: Sequence[GoldenEntry], *, origin: str, reason: str = "") -> None:
        """Delete questions; the history keeps them. The reason is as for `update`."""
        with self.database.transaction() as connection:
            lock_golden(connection, origin=origin, reason=reason)
            delete_golden(connection, entries)

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

    def _present_places(
        self, connection: Connection, stored: GoldenEntry, fields: Fields
    ) -> list[dict[str, Any]]:
        """Return the places of a stored entry at their present position, as a file writes them."""
        relevant = set(stored.relevant_note_ids)
        names = fields.get("relevantNoteIds") or fields.get("relevantNotes")
        if isinstance(names, list):
            relevant = {
                found
                for name in names
                if could_name_a_note(name)
                and (found := find_note(connection, str(name), tenant=self.settings.tenant))
            }
        return [
            present_place(connection, place).to_json()
            for place in stored.places
            if place.note_id in relevant
        ]

    def _write(
        self,
        connection: Connection,
        row: Fields,
        others: Sequence[GoldenEntry],
        origin: str,
        reason: str = "",
    ) -> GoldenEntry:
        """Write one entry among the others, in a transaction that has called `lock_golden`."""
        entry = parse_entry(
            row,
            resolve_note=lambda name: find_note(connection, name, tenant=self.settings.tenant),
            content_of=lambda found: note_content(connection, found),
        )
        for other in others:
            if entry.folded_query == other.folded_query or entry.golden_id == other.golden_id:
                repeated = _(
                    "the question is already there: {known} (capitals, accents and "
                    "punctuation do not count)"
                ).format(known=other.golden_id)
                raise InvalidGoldenDatasetError(
                    _("The question is not valid; nothing was changed:"), [repeated]
                )
        write_golden(connection, [entry], replace=False, origin=origin, reason=reason)
        written = {each.normalized_query: each for each in list_golden(connection)}
        return written[entry.normalized_query]
