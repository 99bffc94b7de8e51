"""Waits for work that other runs have claimed, until they finish or PostgreSQL releases the claim.

The queries define the claims: row locks or advisory locks, held by a transaction or session of the
run that does the work. So no claim outlives its run.
"""

import time
from collections.abc import Callable

import psycopg

from rag_resources.core.deadline import Deadline
from rag_resources.core.errors import IndexingError
from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries
from rag_resources.languages.messages import _

POLL_S = 0.1
PATIENCE_S = 900.0
"""Longer than the server lets a session idle in a transaction before it releases its locks."""

LOCK_TIMEOUT_MS = 100
"""Much less than a retrieval's deadline and than PostgreSQL's `deadlock_timeout` of a second."""


def until_none_is_left(take: Callable[[], int], *, patience_s: float = PATIENCE_S) -> None:
    """Do the unclaimed work, then wait for what others have claimed, until nothing is left.

    No lock is held while waiting, so there is no deadlock.

    Args:
        take: Does all unclaimed work; returns how much others have claimed.
        patience_s: How long that amount may stay the same before this gives up.

    Raises:
        IndexingError: Others have held their claims for too long.
    """
    patience_ms = patience_s * 1000
    before, deadline = 0, Deadline.after(patience_ms, time.monotonic)
    while left := take():
        if left != before:
            before, deadline = left, Deadline.after(patience_ms, time.monotonic)
        elif deadline.expired:
            raise IndexingError(
                _(
                    "Another run holds what is missing ({count}) and makes no progress. Check "
                    "whether it is alive and, when it has ended, repeat this one."
                ).format(count=left),
                left=left,
            )
        time.sleep(POLL_S)


def with_brief_locks(
    connection: Connection, work: Callable[[], None], *, patience_s: float = PATIENCE_S
) -> None:
    """Do quick work that locks tables, in the caller's transaction, without blocking others.

    A session that waits for a table lock blocks everybody who asks for the table later, readers
    included. So no lock is waited for longer than `LOCK_TIMEOUT_MS`: the work is then rolled back,
    its locks are released, and it is tried again. PostgreSQL only checks sessions for deadlock
    that have waited longer than that, so it never cancels another session because of this one.

    Args:
        connection: In a transaction that has locked nothing yet.
        work: May be called several times.
        patience_s: How long to keep trying.

    Raises:
        IndexingError: Others did not release the tables in time.
    """

    def attempt() -> int:
        try:
            with connection.transaction():
                before = queries().lock_timeout(connection)
                limit = f"{LOCK_TIMEOUT_MS}ms"
                queries().set_transaction(connection, name="lock_timeout", value=limit)
                work()
                queries().set_transaction(connection, name="lock_timeout", value=before)
        except psycopg.errors.LockNotAvailable:
            return 1
        return 0

    until_none_is_left(attempt, patience_s=patience_s)
