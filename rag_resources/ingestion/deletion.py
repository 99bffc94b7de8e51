"""Finds, deletes and restores single notes for a person. Expired notes are purged elsewhere."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import TypeVar
from uuid import UUID

from rag_resources.core.errors import ConflictError, InvalidParameterError
from rag_resources.core.golden_places import could_name_a_note
from rag_resources.core.quoting import shown
from rag_resources.database.pool import Connection, Database
from rag_resources.languages.messages import _
from rag_resources.store.chunks import update_statistics
from rag_resources.store.notes import StoredNote, list_notes
from rag_resources.store.tombstones import (
    Deletion,
    Tombstone,
    bury_notes,
    lift_tombstone,
    list_tombstones,
    lock_deletions,
)

Found = TypeVar("Found", StoredNote, Tombstone)


class Restoration(StrEnum):
    """What restoring a note did."""

    RESTORED = "restored"
    """The note is back."""

    EXPIRED = "expired"
    """The note is back, but it has expired: no question finds it."""

    LIFTED = "lifted"
    """Nothing of it was kept; its source may bring it back."""

    NOT_DELETED = "not_deleted"
    """There is nothing to restore."""


@dataclass(frozen=True, slots=True)
class Restored:
    """The outcome for one note."""

    note_id: UUID
    external_id: str
    outcome: Restoration


def find_stored(connection: Connection, name: str, *, tenant: str) -> StoredNote | Tombstone:
    """Return the note with this id or external id; if there is none, its latest tombstone.

    Raises:
        InvalidParameterError: There never was one, or notes of several sources have this name.
    """
    _check(name)
    notes, _ = list_notes(connection, tenant=tenant, name=name)
    if notes:
        return _only(notes, name)
    return _latest(connection, name, tenant=tenant)


def delete_notes(database: Database, note_ids: Sequence[UUID], *, reason: str) -> list[UUID]:
    """Delete notes with everything derived from them, all or none; they can be restored.

    Args:
        database: Open.
        note_ids: Notes that are already gone are skipped.
        reason: The person's reason; may be empty.

    Returns:
        The deleted notes.
    """
    with database.transaction() as connection:
        lock_deletions(connection)
        deleted = bury_notes(connection, note_ids, kind=Deletion.DELETED, reason=reason, keep=True)
    with database.transaction() as connection:
        update_statistics(connection)
    return deleted


def restore_notes(database: Database, names: Sequence[str], *, tenant: str) -> list[Restored]:
    """Restore deleted notes, all or none, so that their sources may bring them again.

    Args:
        database: Open.
        names: Ids or external ids. If a note was deleted several times, the last one is undone.
        tenant: The owner.

    Raises:
        InvalidParameterError: A name is unknown or ambiguous; nothing changed.
        ConflictError: There is another version of a note by now; nothing changed.
    """
    with database.transaction() as connection:
        lock_deletions(connection)
        return [_restore(connection, name, tenant=tenant) for name in dict.fromkeys(names)]


def _restore(connection: Connection, name: str, *, tenant: str) -> Restored:
    _check(name)
    notes, __ = list_notes(connection, tenant=tenant, name=name)
    tombstones, __ = list_tombstones(connection, tenant=tenant, name=name)
    if notes and not tombstones:
        note = _only(notes, name)
        return Restored(note.note_id, note.external_id, Restoration.NOT_DELETED)
    tombstone = _latest(connection, name, tenant=tenant)
    if tombstone.note is None:
        lift_tombstone(connection, tombstone)
        return Restored(tombstone.note_id, tombstone.external_id, Restoration.LIFTED)
    if any(
        note.note_id == tombstone.note_id
        or (note.source, note.external_id) == (tombstone.source, tombstone.external_id)
        for note in notes
    ):
        raise ConflictError(
            _(
                "The note “{name}” is there again, with another content; nothing was changed. "
                "This command does not bring the deleted version back: write its text into the "
                "file of the note."
            ).format(name=shown(name)),
            name=name,
        )
    lift_tombstone(connection, tombstone)
    (note,), __ = list_notes(connection, tenant=tenant, name=str(tombstone.note_id))
    has_expired = note.expires_at is not None and note.expires_at <= datetime.now(UTC)
    outcome = Restoration.EXPIRED if has_expired else Restoration.RESTORED
    return Restored(note.note_id, note.external_id, outcome)


def _latest(connection: Connection, name: str, *, tenant: str) -> Tombstone:
    tombstones, _ = list_tombstones(connection, tenant=tenant, name=name)
    if not tombstones:
        raise _unknown(name)
    latest = {tombstone.source: tombstone for tombstone in reversed(tombstones)}
    return _only(list(latest.values()), name)


def _check(name: str) -> None:
    if not could_name_a_note(name):
        raise _unknown(name)


def _unknown(name: str) -> InvalidParameterError:
    return InvalidParameterError(
        _(
            "There is and was no note “{name}”. See them with “rag notes list”, and the deleted "
            "ones with “rag notes list --deleted”."
        ).format(name=shown(name)),
        name=name,
    )


def _only(found: Sequence[Found], name: str) -> Found:
    """Return the only match; a note with this id is preferred to notes with this external id."""
    exact = [each for each in found if str(each.note_id) == name.strip().lower()] or found
    if len(exact) > 1:
        sources = ", ".join(f"{each.source}: {each.note_id}" for each in exact)
        raise InvalidParameterError(
            _(
                "There are several notes “{name}”, of different sources. Give the identifier of "
                "one ({notes})."
            ).format(name=shown(name), notes=sources),
            name=name,
        )
    return exact[0]
