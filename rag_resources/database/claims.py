"""Waiting for what another run has in hand: it finishes, or it dies and PostgreSQL lets go of it.

What is claimed, and how, is said by the queries: rows or advisory locks, each held by a transaction
or a session of whoever works on them, and so never left behind by one that is gone.
"""

import time
from collections.abc import Callable

import psycopg

from rag_resources.core.deadline import Deadline
from rag_resources.core.errors import IndexingError
from rag_resources.core.messages import Message
from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries

POLL_S = 0.1
PATIENCE_S = 900.0
"""More than the server gives a session that idles in a transaction: it frees what that had."""

LOCK_TIMEOUT_MS = 100
"""A small part of a retrieval's deadline, and of PostgreSQL's `deadlock_timeout` of a second."""


def until_none_is_left(take: Callable[[], int], *, patience_s: float = PATIENCE_S) -> None:
    """Take what is free, and again once others let go of what they have, until nothing is left.

    Nothing is held while waiting, so that nobody can wait for us: there is no deadlock.

    Args:
        take: Does all that nobody else has in hand; returns how much others have.
        patience_s: How long that may stay the same before it is given up.

    Raises:
        IndexingError: Others have had the rest in hand for too long.
    """
    patience_ms = patience_s * 1000
    before, deadline = 0, Deadline.after(patience_ms, time.monotonic)
    while left := take():
        if left != before:
            before, deadline = left, Deadline.after(patience_ms, time.monotonic)
        elif deadline.expired:
            raise IndexingError(Message.IN_OTHER_HANDS.format(count=left), left=left)
        time.sleep(POLL_S)


def with_brief_locks(
    connection: Connection, work: Callable[[], None], *, patience_s: float = PATIENCE_S
) -> None:
    """Do quick work that locks tables, in the caller's transaction, without holding others up.

    Whoever waits for a table has everybody wait who asks for it afterwards, readers included. So no
    lock is waited for longer than `LOCK_TIMEOUT_MS`: then all are given up, with what was done, and
    it is tried again. As PostgreSQL looks for deadlocks only among those who have waited longer
    than that, it is never somebody else who fails because of us.

    Args:
        connection: In a transaction that has locked nothing yet.
        work: May be done several times.
        patience_s: How long to go on trying.

    Raises:
        IndexingError: Others did not let go of the tables.
    """

    def attempt() -> int:
        try:
            with connection.transaction():
                limit = f"{LOCK_TIMEOUT_MS}ms"
                queries().set_transaction(connection, name="lock_timeout", value=limit)
                work()
                queries().lift_lock_timeout(connection)
        except psycopg.errors.LockNotAvailable:
            return 1
        return 0

    until_none_is_left(attempt, patience_s=patience_s)
