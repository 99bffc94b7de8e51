"""Notices when statements of a pool wait for the lock of another session, and names that session.

`lock_timeout` bounds the wait, but PostgreSQL's error names nobody. So a thread looks once a
second, and sends a query only while a statement has been running since its previous look.
"""

import threading
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack, closing
from typing import Any

import psycopg
import structlog
from psycopg.pq import TransactionStatus
from psycopg.rows import namedtuple_row

from rag_resources.core.durations import duration
from rag_resources.database.connection import LimitedConnection
from rag_resources.database.queries import queries
from rag_resources.languages.messages import Text, _

LOOK_EVERY_S = 1.0
CONNECT_TIMEOUT_S = 2

_log = structlog.get_logger()


def log_wait(holder: Text) -> None:
    """Log that a statement waits for a lock; for processes without a user at a terminal."""
    _log.warning("waiting_for_lock", **holder.values)


class LockWatch:
    """A thread that watches the connections of one pool.

    Args:
        dsn: `postgresql://…`
        lent: Returns the connections in use.
        tell: Called once for each session that ours wait for, with its description.
    """

    def __init__(
        self,
        dsn: str,
        lent: Callable[[], Collection[LimitedConnection]],
        tell: Callable[[Text], None],
    ) -> None:
        self._dsn, self._lent, self._tell = dsn, lent, tell
        self._told: set[tuple[int, int]] = set()
        self._holders: dict[LimitedConnection, Text] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lock watch", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread, and wait until it has ended."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def holder(self, connection: LimitedConnection) -> Text | None:
        """Return the session that a lent connection was last seen waiting for; None if none was.

        It is kept until the connection is returned: the wait is over before anybody asks.
        """
        return self._holders.get(connection)

    def _run(self) -> None:
        before: set[LimitedConnection] = set()
        with ExitStack() as opened:
            own: psycopg.Connection[Any] | None = None
            while not self._stop.wait(LOOK_EVERY_S):
                lent = set(self._lent())
                running = {c for c in lent if _is_running(c)}
                still, before = running & before, running
                self._holders = {c: held for c, held in self._holders.items() if c in lent}
                try:
                    if not still:
                        opened.close()
                        own = None
                    else:
                        own = own or opened.enter_context(closing(self._connect()))
                        self._look(own, {c.backend_pid: c for c in still})
                except (
                    psycopg.Error
                ):  # As when all connections are taken: the next look tries again.
                    opened.close()
                    own = None

    def _connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(
            self._dsn,
            autocommit=True,
            connect_timeout=CONNECT_TIMEOUT_S,
            row_factory=namedtuple_row,
            application_name="brain-sync-rag lock watch",
        )

    def _look(
        self, connection: psycopg.Connection[Any], by_pid: Mapping[int, LimitedConnection]
    ) -> None:
        rows = list(queries().list_lock_holders(connection, pids=list(by_pid)))
        now = {by_pid[row.waiting_pid]: _described(row) for row in rows}
        self._holders = self._holders | now
        for row in rows:
            pair = (row.waiting_pid, row.holder_pid)
            if pair not in self._told:
                self._told.add(pair)
                self._tell(now[by_pid[row.waiting_pid]])


def _is_running(connection: LimitedConnection) -> bool:
    """Whether a statement has been sent and not yet answered."""
    return connection.pgconn.transaction_status == TransactionStatus.ACTIVE


def _described(row: Any) -> Text:
    return _(
        "“{locked}” is in use by another session, open for {held} (process {pid} of the server, "
        "user “{user}”, program “{program}”)"
    ).format(
        locked=row.locked,
        pid=row.holder_pid,
        user=row.holder_user,
        program=row.holder_program,
        held=duration(row.held_s),
    )
