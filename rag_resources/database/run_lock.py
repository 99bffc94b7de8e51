"""The lock that a run holds in PostgreSQL from its start to its end: it is alive while it holds it.

The server frees the lock with the session, however the process, its machine or the network ends it.
So any process on any machine can ask whether a run is alive. What a run may do while it holds its
lock is `claims`; ending runs that have lost theirs is for who launches them.
"""

import select
import threading
from collections.abc import Callable, Iterable, Mapping

import psycopg
from psycopg.conninfo import make_conninfo

from rag_resources.core.errors import DatabaseUnavailableError, RunLostError
from rag_resources.core.messages import Message
from rag_resources.database.migrations import CONNECT_TIMEOUT_S, first_line
from rag_resources.database.queries import queries

# A server that lost its client frees the lock after 20 s at most, and a client notices as soon.
_SESSION: Mapping[str, str | int] = {
    "keepalives_idle": 5,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
    "connect_timeout": CONNECT_TIMEOUT_S,
    "application_name": "brain-sync-rag run lock",
}


class RunLock:
    """The lock of one run, held by a session of its own until `release` or the end of the process.

    Args:
        dsn: Of the application's database, `postgresql://…`.
        run_id: Dagster's id of the run.

    Raises:
        DatabaseUnavailableError: The database cannot be reached.
    """

    def __init__(self, dsn: str, run_id: str) -> None:
        self.run_id = run_id
        self._busy = threading.Lock()
        try:
            self._connection = psycopg.connect(make_conninfo(dsn, **_SESSION), autocommit=True)
            queries().hold_run_lock(self._connection, run_id=run_id)
        except psycopg.OperationalError as error:
            raise DatabaseUnavailableError(
                Message.CONNECTION_ERROR, reason=first_line(error)
            ) from error

    @property
    def backend_pid(self) -> int:
        """The process of the server that holds the lock, as `pg_locks` names it."""
        return self._connection.info.backend_pid

    @property
    def is_held(self) -> bool:
        """Whether the session still lives, as far as its socket tells; asks nobody."""
        with self._busy:
            pgconn = self._connection.pgconn
            if self._connection.closed:
                return False
            poll = select.poll()
            poll.register(pgconn.socket, select.POLLIN)
            if not poll.poll(0):
                return True
            # The server says something unasked: that it ends the session, or a mere notice.
            try:
                pgconn.consume_input()
            except psycopg.OperationalError:
                self._connection.close()
                return False
            return True

    def check(self) -> None:
        """Let a run go on only while it is alive for others.

        Raises:
            RunLostError: The lock is lost: the run may have been reported as failed already, and
                its months claimed by another.
        """
        if not self.is_held:
            raise RunLostError(Message.RUN_LOST.format(run_id=self.run_id), run_id=self.run_id)

    def release(self) -> None:
        """End the session, and the lock with it."""
        with self._busy:
            self._connection.close()


_held: dict[str, RunLock] = {}
"""The locks of this process, by run: one, unless it executes several runs in turn."""


def hold_run_lock(dsn: str, run_id: str) -> RunLock:
    """Take the lock of a run for this process, once.

    Raises:
        DatabaseUnavailableError: The database cannot be reached.
    """
    if run_id not in _held:
        _held[run_id] = RunLock(dsn, run_id)
    return _held[run_id]


def release_run_lock(run_id: str) -> None:
    """Give up the lock of a run that has ended, and been stored as ended."""
    lock = _held.pop(run_id, None)
    if lock:
        lock.release()


def run_guard(run_id: str | None) -> Callable[[], None]:
    """Return what a run's pool of connections asks before it lends one.

    Args:
        run_id: None outside a run. A run that holds no lock here, such as one of a test or of
            somebody's own executor, is asked nothing.
    """
    lock = _held.get(run_id) if run_id else None
    return lock.check if lock else lambda: None


def held_run_locks(dsn: str, run_ids: Iterable[str]) -> frozenset[str]:
    """Return which of the given runs hold their lock.

    Raises:
        DatabaseUnavailableError: The database cannot be reached: nothing is known of any run.
    """
    try:
        with psycopg.connect(make_conninfo(dsn, **_SESSION), autocommit=True) as connection:
            rows = queries().list_held_run_locks(connection, run_ids=list(run_ids))
            return frozenset(run_id for (run_id,) in rows)
    except psycopg.OperationalError as error:
        raise DatabaseUnavailableError(
            Message.CONNECTION_ERROR, reason=first_line(error)
        ) from error
