"""Deletes expired notes, and the kept rows of deleted ones. Search does not find either before."""

from dataclasses import dataclass

from rag_resources.database.pool import Database
from rag_resources.store.chunks import update_statistics
from rag_resources.store.notes import claim_expired, count_expired
from rag_resources.store.tombstones import (
    Deletion,
    bury_notes,
    forget_deleted,
    forget_expired,
    lock_deletions,
)

BATCH_NOTES = 100


@dataclass(frozen=True, slots=True)
class PurgeReport:
    """How many expired notes were deleted.

    Attributes:
        deleted: Deleted with their chunks and vectors.
        left: Claimed by another run; the next purge deletes them.
    """

    deleted: int
    left: int


DELETED_GRACE_DAYS = 7
"""How long a note that a person deleted can be restored."""


def purge(
    database: Database, *, grace_hours: int, deleted_days: int = DELETED_GRACE_DAYS
) -> PurgeReport:
    """Delete the notes whose grace period after expiry is over, one transaction per batch.

    If killed, every note is either whole or gone, and the next call deletes the rest. A purged note
    leaves only a tombstone without its text, which keeps its source from bringing it back. The
    words of deleted notes are also removed from the full-text statistics.

    Args:
        database: Open.
        grace_hours: How long an expired note is kept, in hours, >= 0.
        deleted_days: How long a note that a person deleted can be restored, in days, >= 0.

    Raises:
        DatabaseUnavailableError: The connection was lost; what was committed stays.
    """
    deleted = 0
    while batch := _purge_batch(database, grace_hours):
        deleted += batch
    with database.transaction() as connection:
        forget_expired(connection, grace_hours=grace_hours)
        forget_deleted(connection, days=deleted_days)
        update_statistics(connection, forgetting=deleted > 0)
        return PurgeReport(deleted, count_expired(connection, grace_hours=grace_hours))


def _purge_batch(database: Database, grace_hours: int) -> int:
    with database.transaction() as connection:
        lock_deletions(connection)
        expired = claim_expired(connection, grace_hours=grace_hours, batch_size=BATCH_NOTES)
        return len(bury_notes(connection, expired, kind=Deletion.PURGED))
