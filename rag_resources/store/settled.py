"""Up to when the rows of tables that stamp them with `now()` are complete."""

from datetime import datetime

from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries


def settled_until(connection: Connection) -> datetime:
    """Return the time before which no transaction will add a row any more.

    A row bears the time at which its transaction began, so one that is committed later may be
    older than one that is there already. A reader that remembers how far it came must stop before
    this time, or it misses such a row. Call it before the statement that reads the rows, in a
    transaction that is not a snapshot.
    """
    until: datetime = queries().settled_until(connection)
    return until
