"""Makes the notes of a source follow its files: renames, copies, and what is gone.

It decides before anything is ingested, and writes in one transaction, so that a killed run leaves
all of it or nothing, and the next one goes on. The records themselves are written by `ingest`.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import PurePosixPath
from typing import NamedTuple
from uuid import UUID

from rag_resources.core.errors import InvalidInputError
from rag_resources.core.text import content_sha256
from rag_resources.core.types import NoteRecord, RejectedRecord
from rag_resources.database.pool import Database
from rag_resources.ingestion.source_file import is_conflict_copy
from rag_resources.languages.messages import Text, _
from rag_resources.store.chunks import update_statistics
from rag_resources.store.mirror import (
    MirrorChanges,
    MirroredNote,
    list_mirrored,
    lock_mirror,
    write_mirror,
)
from rag_resources.store.tombstones import Deletion, bury_notes, lock_deletions

GONE_SHARE = 0.3
"""Share of a source's notes above which a person is asked before they count as gone."""
NAMED = 5
"""Most notes that a sentence names."""


class SourceShrankError(InvalidInputError):
    """So many notes of a mirrored source are gone at once that a person must say that it is so."""


class Seen(NamedTuple):
    """A record of the source.

    Attributes:
        content_sha256: Hash of its content.
        twin: What another file must have in common to be a copy of it; None for one of many
            records in a file, which has no copies.
    """

    content_sha256: bytes
    twin: tuple[object, ...] | None


class Move(NamedTuple):
    """A note whose file has another name now."""

    before: str
    now: str


@dataclass(frozen=True, slots=True)
class MirrorReport:
    """What a source's files say of its notes.

    Attributes:
        moved: Notes that have followed their renamed file.
        copies: Other files with the content of a note, and that note's name.
        missing: Notes whose file is gone, and when each is deleted.
        deleted: Notes that were deleted, because their file was gone long enough.
    """

    moved: Sequence[Move] = ()
    copies: Mapping[str, str] = field(default_factory=dict)
    missing: Mapping[str, datetime] = field(default_factory=dict)
    deleted: Sequence[str] = ()

    def sentences(self) -> list[Text]:
        """Tell what happened, one sentence a kind."""
        told: list[Text] = []
        if self.moved:
            named = _named([f"{own.before} → {own.now}" for own in self.moved])
            told.append(
                _("Renamed, and still the same notes: {count} ({notes}).").format(
                    count=len(self.moved), notes=named
                )
            )
        if self.copies:
            named = _named([f"{own} = {main}" for own, main in self.copies.items()])
            told.append(
                _("Identical copies, each one note with several names: {count} ({notes}).").format(
                    count=len(self.copies), notes=named
                )
            )
        if self.missing:
            named = _named([f"{own}: {at:%Y-%m-%d}" for own, at in self.missing.items()])
            told.append(
                _(
                    "Notes whose file is gone: {count}. Each is found until it is deleted, and "
                    "stays if its file comes back ({notes})."
                ).format(count=len(self.missing), notes=named)
            )
        if self.deleted:
            told.append(
                _(
                    "Deleted, because their file was gone for long enough: {count} ({notes}). "
                    "“rag notes restore NOTE” brings one back."
                ).format(count=len(self.deleted), notes=_named(self.deleted))
            )
        return told


def mirror(
    database: Database,
    records: Iterable[NoteRecord | RejectedRecord],
    *,
    tenant: str,
    source: str,
    grace_days: int,
    may_shrink: bool = False,
) -> MirrorReport:
    """Let the notes of a source follow its files; call it before each ingestion.

    Args:
        database: Open.
        records: All records of the source, from `iter_source`.
        tenant: Owner of the notes.
        source: Name of the source.
        grace_days: How long a note whose file is gone is kept, in days, >= 0.
        may_shrink: Whether a person said that any number of notes may be gone.

    Raises:
        SourceShrankError: More than `GONE_SHARE` of the notes are gone; nothing is changed.

    Properties: 60.
    """
    seen, unread = _read(records)
    with database.transaction() as connection:
        lock_mirror(connection, tenant=tenant, source=source)
        lock_deletions(connection)
        stored = list_mirrored(connection, tenant=tenant, source=source)
        changes, copies, gone = plan(stored, seen, unread)
        newly = [own for own in gone if own.missing_since is None]
        if not may_shrink and len(newly) > GONE_SHARE * len(stored):
            raise _shrank(newly, len(stored))
        now = write_mirror(connection, changes, tenant=tenant, source=source)
        grace = timedelta(days=grace_days)
        due = {own.external_id: (own.missing_since or now) + grace for own in gone}
        over = [own for own in gone if due[own.external_id] <= now]
        bury_notes(connection, [own.id for own in over], kind=Deletion.ABSENT, keep=True)
    if over:
        with database.transaction() as connection:
            update_statistics(connection)
    return MirrorReport(
        [Move(before, now) for _id, before, now in changes.moves],
        copies,
        {name: at for name, at in due.items() if at > now},
        [own.external_id for own in over],
    )


def plan(
    stored: Sequence[MirroredNote], seen: Mapping[str, Seen], unread: Collection[str] = ()
) -> tuple[MirrorChanges, dict[str, str], list[MirroredNote]]:
    """Decide which notes follow their files.

    A note whose file is gone takes the name of a file with its content: a new one of the same file
    name rather than another, and else one whose note no golden question names.

    Args:
        stored: The notes of the source.
        seen: Its records, by external id.
        unread: Files and folders that could not be read: their notes are not gone.

    Returns:
        The changes, the copies with the name of their note, and the notes without a file.
    """
    known = {own.external_id: own for own in stored}
    copies, dropped = _copies(known, seen)
    gone = {
        own.external_id: own
        for own in stored
        if own.external_id not in seen and not _is_unread(own.external_id, unread)
    }
    files = defaultdict(list)
    for name, record in sorted(seen.items()):
        if record.twin is not None and name not in copies:
            files[record.content_sha256].append(name)
    moves = []
    for note in sorted(gone.values(), key=lambda own: (not own.is_golden, own.external_id)):
        places = [
            name
            for name in files[note.content_sha256]
            if name not in known or not (known[name].is_golden or known[name].id in dropped)
        ]
        if not places:
            continue
        stem = note.external_id.rpartition("/")[2]
        place = min(places, key=lambda own: (own in known, own.rpartition("/")[2] != stem, own))
        files[note.content_sha256].remove(place)
        if place in known:
            dropped.add(known[place].id)
        moves.append((note.id, note.external_id, place))
        del gone[note.external_id]
    changes = MirrorChanges(moves, sorted(dropped), [own.id for own in gone.values()])
    return changes, copies, list(gone.values())


def _copies(
    known: Mapping[str, MirroredNote], seen: Mapping[str, Seen]
) -> tuple[dict[str, str], set[UUID]]:
    """Return the copies with their note's name, and stored notes that are copies of others."""
    twins = defaultdict(list)
    for name, record in seen.items():
        if record.twin is not None:
            twins[record.content_sha256, record.twin].append(name)
    copies: dict[str, str] = {}
    dropped: set[UUID] = set()
    for names in twins.values():
        names.sort(key=lambda own: (_worth(known.get(own)), is_conflict_copy(own), len(own), own))
        main, *others = names
        for name in others:
            note = known.get(name)
            if note and note.is_golden:
                continue
            copies[name] = main
            if note:
                dropped.add(note.id)
    return copies, dropped


def _worth(note: MirroredNote | None) -> int:
    """Order notes by what would be lost without them."""
    return 2 if note is None else 0 if note.is_golden else 1


def _read(records: Iterable[NoteRecord | RejectedRecord]) -> tuple[dict[str, Seen], list[str]]:
    """Return the records by external id, and the files and folders that could not be read."""
    seen, unread = {}, []
    for record in records:
        if isinstance(record, RejectedRecord):
            unread.append(record.location)
            continue
        is_file = not record.location.rpartition(":")[2].isdigit()
        has_date = record.date_source not in {"git", "file_modified"}
        twin = (record.tags, record.created_at if has_date else None) if is_file else None
        seen[record.external_id] = Seen(content_sha256(record.content), twin)
    return seen, unread


def _is_unread(name: str, unread: Collection[str]) -> bool:
    """Whether a note is of a file or folder that could not be read."""
    return any(
        name == PurePosixPath(own).with_suffix("").as_posix() or name.startswith(f"{own}/")
        for own in unread
    )


def _named(names: Sequence[str]) -> str:
    return ", ".join([*names[:NAMED], *(["…"] if len(names) > NAMED else [])])


def _shrank(gone: Sequence[MirroredNote], stored: int) -> SourceShrankError:
    return SourceShrankError(
        _(
            "The files of {gone} of {stored} notes are gone at once ({notes}); nothing was "
            "changed. Is the folder complete? Count them as gone? (y/N; “rag ingest FOLDER "
            "--mirror --yes” says yes)"
        ).format(gone=len(gone), stored=stored, notes=_named([own.external_id for own in gone])),
        gone=len(gone),
    )
