"""Takes the notes that have expired out of the database. Search has not found them since."""

from dataclasses import dataclass

from rag_resources.database.pool import Database
from rag_resources.store.chunks import update_statistics
from rag_resources.store.notes import count_expired, purge_expired

BATCH_NOTES = 100


@dataclass(frozen=True, slots=True)
class PurgeReport:
    """What became of the expired notes.

    Attributes:
        deleted: Gone, with their chunks and vectors.
        left: In another run's hands: they go next time.
    """

    deleted: int
    left: int


def purge(database: Database, *, grace_hours: int) -> PurgeReport:
    """Delete the notes that expired some time ago, a transaction per batch.

    Killed at any moment it leaves every note whole or gone, and the next call does the rest. The
    words of the notes go from the statistics of full-text search, too.

    Args:
        database: Open.
        grace_hours: Time a note stays after it expired, in hours, >= 0.

    Raises:
        DatabaseUnavailableError: The database was lost; what is committed stays.
    """
    deleted = 0
    while batch := _purge_batch(database, grace_hours):
        deleted += batch
    with database.transaction() as connection:
        update_statistics(connection)
        return PurgeReport(deleted, count_expired(connection, grace_hours=grace_hours))


def _purge_batch(database: Database, grace_hours: int) -> int:
    with database.transaction() as connection:
        return len(purge_expired(connection, grace_hours=grace_hours, batch_size=BATCH_NOTES))
