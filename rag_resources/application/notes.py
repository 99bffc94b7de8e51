"""Use cases of the notes: where they come from, ingestion, deletion and restoration."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

from psycopg.types.json import Jsonb

from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.frames import note_frame
from rag_resources.core.types import (
    Note,
    NoteRecord,
    RejectedRecord,
    TimeWindow,
)
from rag_resources.database.pool import Database
from rag_resources.database.queries import queries
from rag_resources.documents.uploads import checked_changes
from rag_resources.indexing.purge import DELETED_GRACE_DAYS, PurgeReport, purge
from rag_resources.ingestion.content_source import (
    ContentSource,
    require_unmixed,
    source_of_path,
    source_to_read,
)
from rag_resources.ingestion.deletion import Restored, delete_notes, find_stored, restore_notes
from rag_resources.ingestion.export import ExportReading, export_lines, export_notes, read_export
from rag_resources.ingestion.ingest import IngestReport, ingest
from rag_resources.ingestion.mirror import MirrorReport, mirror
from rag_resources.ingestion.sources import iter_source
from rag_resources.languages.messages import _
from rag_resources.settings import Settings
from rag_resources.store.golden import questions_naming
from rag_resources.store.mirror import count_due
from rag_resources.store.notes import (
    FileDatedMonth,
    OutsideNotes,
    StoredNote,
    fetch_notes,
    list_file_dated_months,
    list_notes,
    list_outside,
)
from rag_resources.store.open_notes import NoteOrigin, OpenNote
from rag_resources.store.rejections import (
    Rejection,
    UndatedNote,
    list_rejections,
    list_undated,
)
from rag_resources.store.tombstones import Tombstone, list_tombstones

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Notes:
    """The notes of a database."""

    database: Database
    settings: Settings

    @property
    def first_month(self) -> str:
        """The first monthly partition, as `YYYY-MM`."""
        return self.settings.first_month

    # --- Sources

    def source_to_read(self, *, sample: bool = False, mixes: bool = False) -> ContentSource:
        """Return the source that a run reads.

        Args:
            sample: Whether a person asked for the sample.
            mixes: Whether a person consented to several sources.

        Raises:
            MixedSourcesError: The source would join notes of others.
        """
        return source_to_read(self.database, self.settings, sample=sample, mixes=mixes)

    def require_unmixed(self, source: str) -> None:
        """Check that a source has notes already, or is the only one.

        Raises:
            MixedSourcesError: Its notes would join those of other sources.
        """
        with self.database.transaction() as connection:
            require_unmixed(connection, self.settings.tenant, source)

    def source_of(self, path: Path, *, name: str | None) -> str:
        """Return the source under which the notes of a path are stored.

        Raises:
            InvalidParameterError: The name is reserved for the sample.
        """
        return source_of_path(path, name=name, default=self.settings.notes_source_name)

    def is_read_by_runs(self, path: Path, source: str) -> bool:
        """Whether a path is in the source that the settings name, so that every run reads it."""
        named = self._named(source)
        return named is not None and path.resolve().is_relative_to(named)

    # --- Ingestion

    def read(self, path: Path) -> Iterator[NoteRecord | RejectedRecord]:
        """Read a source as the settings say, as a stream.

        Raises:
            InvalidSourceError: It cannot be read at all.
        """
        return iter_source(path)

    def ingest(
        self,
        records: Iterable[NoteRecord | RejectedRecord],
        *,
        source: str,
        root: Path,
        copies: Mapping[str, str] | None = None,
        keep: Callable[[datetime], bool] = lambda _: True,
        progress: Callable[[int], None] = lambda _: None,
    ) -> IngestReport:
        """Store the records of a source; for the arguments see `ingestion.ingest`."""
        return ingest(
            self.database,
            records,
            tenant=self.settings.tenant,
            source=source,
            root=str(root.absolute()),
            is_whole=copies is None and self._is_whole(root, source),
            copies=copies,
            keep=keep,
            progress=progress,
        )

    def mirror(self, path: Path, *, source: str, may_shrink: bool = False) -> MirrorReport:
        """Let the notes of a source follow its files; `ingest` stores the records afterwards.

        Raises:
            InvalidParameterError: The path is not all of the source.
            SourceShrankError: Many notes are gone at once, and nobody said that they may be.
        """
        named = self._named(source)
        if named and path.resolve() != named:
            raise InvalidParameterError(
                _("--mirror needs the whole source. Give its folder: {folder}.").format(
                    folder=named
                )
            )
        return mirror(
            self.database,
            self.read(path),
            tenant=self.settings.tenant,
            source=source,
            grace_days=self.settings.mirror_grace,
            may_shrink=may_shrink,
        )

    def has_missing_due(self) -> bool:
        """Whether a note of the mirrored source is to be deleted, as its file is gone."""
        with self.database.transaction() as connection:
            return bool(
                count_due(
                    connection,
                    tenant=self.settings.tenant,
                    source=self.settings.notes_source_name,
                    grace_days=self.settings.mirror_grace,
                )
            )

    def _is_whole(self, path: Path, source: str) -> bool:
        """Whether a path is all that a source has: the folder or file that the settings name."""
        return path.resolve() == self._named(source)

    def _named(self, source: str) -> Path | None:
        """Return the folder or file of a source; None if it is not the one of the settings."""
        named = self.settings.notes_source
        return named.resolve() if named and source == self.settings.notes_source_name else None

    # --- From one database to another

    def export(self, path: Path) -> Counter[str]:
        """Write the notes and deletions to a file; see `ingestion.export`."""
        return export_notes(self.database, path, tenant=self.settings.tenant)

    def export_lines(self, counts: Counter[str]) -> Iterator[bytes]:
        """Yield the lines of that file, and count them by kind."""
        return export_lines(self.database, tenant=self.settings.tenant, counts=counts)

    def read_export(
        self, path: Path, *, progress: Callable[[int], None] = lambda _: None
    ) -> ExportReading:
        """Store the notes and deletions of such a file; repeating it changes nothing."""
        return read_export(self.database, path, tenant=self.settings.tenant, progress=progress)

    # --- Stored notes

    def newest(self, *, limit: int | None = None) -> tuple[list[StoredNote], int]:
        """Return the newest notes, and how many there are without the limit."""
        with self.database.transaction() as connection:
            return list_notes(connection, tenant=self.settings.tenant, limit=limit)

    def frame(self) -> "pd.DataFrame":
        """Return all notes, newest first, as a data frame with the columns `core.frames.NOTES`."""
        return note_frame(self.newest()[0])

    def deleted(self, *, limit: int | None = None) -> tuple[list[Tombstone], int]:
        """Return the latest deletions, and how many there are without the limit."""
        with self.database.transaction() as connection:
            return list_tombstones(connection, tenant=self.settings.tenant, limit=limit)

    def find(self, name: str) -> StoredNote | Tombstone:
        """Return the note with an id or external id; if it was deleted, its tombstone.

        Raises:
            InvalidParameterError: There never was one, or notes of several sources have this name.
        """
        with self.database.transaction() as connection:
            return find_stored(connection, name, tenant=self.settings.tenant)

    def content(self, note_id: UUID) -> Note:
        """Return a note with its content."""
        with self.database.transaction() as connection:
            return fetch_notes(connection, [note_id])[note_id]

    def open(self, note_id: UUID) -> OpenNote | None:
        """Return a note for a reader; None if the tenant has none of this id."""
        with self.database.transaction() as connection:
            row = queries().open_note(connection, note_id=note_id, tenant=self.settings.tenant)
        return OpenNote.model_validate(row) if row else None

    def edit(self, note_id: UUID, changes: Mapping[str, Any]) -> bool:
        """Change metadata of a note, whatever its source says later; None takes a field away.

        Returns:
            False if there is no such note, or it is a section, whose metadata are its document's.
        """
        edits = Jsonb(checked_changes(changes))
        with self.database.transaction() as connection:
            done = queries().edit_note_metadata(
                connection, note_id=note_id, tenant=self.settings.tenant, edits=edits
            )
        return bool(done)

    def origins(self, note_ids: Sequence[UUID]) -> Mapping[UUID, NoteOrigin]:
        """Return where notes come from, by note."""
        with self.database.transaction() as connection:
            rows = queries().list_note_origins(
                connection, note_ids=list(note_ids), tenant=self.settings.tenant
            )
            return {row.id: NoteOrigin(row.document_id, row.source, row.tags) for row in rows}

    def of_document(self, document_id: UUID) -> Sequence[UUID]:
        """Return the first thousand notes that are sections of a document, in its order."""
        with self.database.transaction() as connection:
            rows = queries().list_section_ids(
                connection, document_id=document_id, tenant=self.settings.tenant
            )
            return [row.id for row in rows]

    def tags(self, *, limit: int) -> Sequence[tuple[str, int]]:
        """Return the most used tags with their numbers of notes."""
        with self.database.transaction() as connection:
            rows = queries().list_tags(connection, tenant=self.settings.tenant, row_limit=limit)
            return [(row.tag, row.notes) for row in rows]

    def questions_naming(self, note_ids: Collection[UUID]) -> Mapping[UUID, str]:
        """Return the golden questions with one of these notes among their relevant ones, by id."""
        with self.database.transaction() as connection:
            return questions_naming(connection, note_ids)

    def delete(self, note_ids: Sequence[UUID], *, reason: str = "") -> Sequence[UUID]:
        """Delete notes, all or none, and return the deleted ones; they can be restored."""
        return delete_notes(self.database, note_ids, reason=reason)

    def restore(self, names: Sequence[str]) -> Sequence[Restored]:
        """Restore deleted notes, all or none.

        Raises:
            InvalidParameterError: One cannot be restored; nothing changed.
        """
        return restore_notes(self.database, names, tenant=self.settings.tenant)

    def outside(self, window: TimeWindow, *, limit: int) -> OutsideNotes | None:
        """Return the notes dated outside a window, with some examples; None if there are none."""
        with self.database.transaction() as connection:
            return list_outside(connection, window, limit=limit)

    @property
    def grace_hours(self) -> int:
        """How long an expired note is kept, in hours."""
        return self.settings.expired_grace_hours

    @property
    def deleted_days(self) -> int:
        """How long a deleted note can be restored, in days."""
        return DELETED_GRACE_DAYS

    def purge_expired(self) -> PurgeReport:
        """Delete the notes whose grace period after expiry or deletion is over."""
        return purge(self.database, grace_hours=self.grace_hours)

    # --- What was not read, or not as its author may think

    def rejections(self, *, limit: int | None = None) -> tuple[list[Rejection], int]:
        """Return the records that could not be read, and how many there are without the limit."""
        with self.database.transaction() as connection:
            return list_rejections(connection, limit=limit)

    def file_dated_months(self) -> list[FileDatedMonth]:
        """Return the months in which most notes only have the date of their file."""
        with self.database.transaction() as connection:
            return list_file_dated_months(connection, tenant=self.settings.tenant)

    def undated(self, *, limit: int) -> tuple[list[UndatedNote], int]:
        """Return the notes without a date of their own, and how many there are in all."""
        with self.database.transaction() as connection:
            return list_undated(connection, limit=limit)
