"""The lock that a run holds in PostgreSQL from start to end. A run is alive while it holds it.

The server releases the lock with the session, whether the process, its machine or the network
fails. So any process on any machine can tell whether a run is alive. Claiming work belongs in
`claims`; ending runs that lost their lock is up to whatever launches them.
"""

import select
import threading
from collections.abc import Callable, Iterable, Mapping

import psycopg
from psycopg.conninfo import make_conninfo

from rag_resources.core.errors import DatabaseUnavailableError, RunLostError
from rag_resources.database.faults import first_line
from rag_resources.database.migrations import CONNECT_TIMEOUT_S
from rag_resources.database.queries import queries
from rag_resources.languages.messages import _

# A server that lost its client releases the lock within 20 s; a client notices as quickly.
_SESSION: Mapping[str, str | int] = {
    "keepalives_idle": 5,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
    "connect_timeout": CONNECT_TIMEOUT_S,
    "application_name": "brain-sync-rag run lock",
}


class RunLock:
    """The lock of one run, held by its own session until `release` or the end of the process.

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
                _("Connection error. Please try again later."), reason=first_line(error)
            ) from error

    @property
    def backend_pid(self) -> int:
        """The id of the server process that holds the lock, as in `pg_locks`."""
        return self._connection.info.backend_pid

    @property
    def is_held(self) -> bool:
        """Whether the session still lives, judged by its socket; sends no query."""
        with self._busy:
            pgconn = self._connection.pgconn
            if self._connection.closed:
                return False
            poll = select.poll()
            poll.register(pgconn.socket, select.POLLIN)
            if not poll.poll(0):
                return True
            # The server sent something unasked: the end of the session, or only a notice.
            try:
                pgconn.consume_input()
            except psycopg.OperationalError:
                self._connection.close()
                return False
            return True

    def check(self) -> None:
        """Check that other processes still see this run as alive.

        Raises:
            RunLostError: The lock is lost. The run may have been reported as failed already, and
                another run may have claimed its months.
        """
        if not self.is_held:
            raise RunLostError(
                _(
                    "The run {run_id} lost its control connection to the database and writes "
                    "nothing more. Repeat it: it goes on where it was."
                ).format(run_id=self.run_id),
                run_id=self.run_id,
            )

    def release(self) -> None:
        """End the session, which releases the lock."""
        with self._busy:
            self._connection.close()


_held: dict[str, RunLock] = {}
"""The locks of this process, by run: one, unless the process executes several runs in turn."""


def hold_run_lock(dsn: str, run_id: str) -> RunLock:
    """Take the lock of a run, unless this process holds it already.

    Raises:
        DatabaseUnavailableError: The database cannot be reached.
    """
    if run_id not in _held:
        _held[run_id] = RunLock(dsn, run_id)
    return _held[run_id]


def release_run_lock(run_id: str) -> None:
    """Release the lock of a run, after its end has been stored."""
    lock = _held.pop(run_id, None)
    if lock:
        lock.release()


def run_guard(run_id: str | None) -> Callable[[], None]:
    """Return the check that a run's connection pool makes before it lends a connection.

    Args:
        run_id: None outside a run. Nothing is checked for a run that holds no lock in this
            process, such as one of a test or of a custom executor.
    """
    lock = _held.get(run_id) if run_id else None
    return lock.check if lock else lambda: None


def held_run_locks(dsn: str, run_ids: Iterable[str]) -> frozenset[str]:
    """Return which of the given runs hold their lock.

    Raises:
        DatabaseUnavailableError: The database cannot be reached, so nothing is known of any run.
    """
    try:
        with psycopg.connect(make_conninfo(dsn, **_SESSION), autocommit=True) as connection:
            rows = queries().list_held_run_locks(connection, run_ids=list(run_ids))
            return frozenset(run_id for (run_id,) in rows)
    except psycopg.OperationalError as error:
        raise DatabaseUnavailableError(
            _("Connection error. Please try again later."), reason=first_line(error)
        ) from error
