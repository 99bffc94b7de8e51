"""A connection that is done by a deadline, whatever the server or the network does.

There are two limits. The server's is `statement_timeout`: what remains when a statement starts, so
that a slow one is cancelled where it runs and its connection lives on. Ours is a little later, for
when the server's answer cannot arrive: `psycopg.Connection.wait`, through which psycopg sends and
receives everything, gives up and the connection is closed. Nothing is left running then either,
since the server keeps its own limit.

This needs no thread. A watchdog that cancels and shuts sockets down from outside would, and must
not hit a connection that has passed on to somebody else; a cancel request cannot get through a
network that stalls; `tcp_user_timeout` does not see a peer that acknowledges bytes and never
answers. Lending connections is `pool`.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Self, TypeVar

import psycopg
from psycopg import sql
from psycopg.abc import PQGen
from psycopg.pq import TransactionStatus

from rag_resources.core.deadline import Deadline
from rag_resources.core.errors import DatabaseTimeoutError
from rag_resources.core.messages import Message
from rag_resources.database.queries import statement

LAG_MS = 20
"""How far the server's limit may end after the deadline: a quick transaction sets it only once."""

GRACE_MS = 100
"""How long after the deadline the server's answer, late or cancelled, is waited for."""

_Result = TypeVar("_Result")


class LimitedConnection(psycopg.Connection[Any]):
    """A connection whose exchanges with the server end by `deadline`.

    Statements in a transaction raise `DatabaseTimeoutError` when their time is up. If the server
    cancelled them, the transaction is aborted and the connection good; else the connection is
    closed. COPY and executemany keep the server's limit of the statement before them.

    Attributes:
        deadline: None for the limit the session was lent with.
    """

    deadline: Deadline | None = None
    _session_limit_ms = 0
    _limit_ms = 0

    def lend(self, limit_ms: int) -> None:
        """Make an idle connection ready for its next user, in one round trip.

        The user before may have left it in autocommit or at another isolation level; that setting
        the limit works shows that the server answers.

        Args:
            limit_ms: What a statement may take, unless the deadline is earlier; >= 1.

        Raises:
            psycopg.OperationalError: The connection is lost.
            DatabaseTimeoutError: No answer by the deadline.
        """
        self.autocommit = True
        # A limit shorter than the lag might cancel the very statement that lifts it.
        self._limit_ms = self._session_limit_ms = max(limit_ms, LAG_MS)
        self._set_limit("limit_session")
        self.autocommit = False
        self.isolation_level = None

    @contextmanager
    def within(self, deadline: Deadline) -> Iterator[None]:
        """Give what is done inside less time: until `deadline`, if that is the earlier one.

        Raises:
            DatabaseTimeoutError: The time was up. The transaction can only be rolled back.
        """
        outer = self.deadline
        if outer is None or deadline.remaining_ms < outer.remaining_ms:
            self.deadline = deadline
        try:
            yield
        finally:
            self.deadline = outer

    def limit_next_statement(self) -> None:
        """Have the server cancel the next statement when its time is up.

        Raises:
            DatabaseTimeoutError: It is up already; nothing was sent.
        """
        if self.autocommit:
            return
        if self.pgconn.transaction_status == TransactionStatus.IDLE:
            # The end of a transaction undid its limit.
            self._limit_ms = self._session_limit_ms
        limit_ms = self._session_limit_ms
        if self.deadline:
            limit_ms = min(limit_ms, math.ceil(self.deadline.remaining_ms))
        if limit_ms == 0:
            raise DatabaseTimeoutError(Message.TIME_IS_UP)
        if not limit_ms <= self._limit_ms <= limit_ms + LAG_MS:
            self._limit_ms = limit_ms
            self._set_limit("limit_transaction")

    def wait(
        self, gen: PQGen[_Result], interval: float = 0.1, timeout: float | None = None
    ) -> _Result:
        """Exchange with the server as psycopg does, but no longer than until the deadline.

        Raises:
            DatabaseTimeoutError: The server cancelled the statement, or did not answer in time, in
                which case the connection is closed.
        """
        if self.deadline is None or timeout is not None:
            return super().wait(gen, interval, timeout)
        try:
            return super().wait(gen, interval, self.deadline.remaining_s + GRACE_MS / 1000)
        except psycopg.errors.QueryCanceled as error:
            raise DatabaseTimeoutError(Message.TIME_IS_UP) from error
        except psycopg.OperationalError as error:
            if self.pgconn.transaction_status != TransactionStatus.ACTIVE:
                raise
            # The answer may come yet, and would be taken for that of the next statement.
            self.close()
            raise DatabaseTimeoutError(Message.TIME_IS_UP) from error

    def _set_limit(self, query: str) -> None:
        # A plain cursor: ours would want to set the limit first.
        psycopg.Cursor(self).execute(_limit_statement(query, self._limit_ms), prepare=False)


@lru_cache(maxsize=4096)
def _limit_statement(query: str, limit_ms: int) -> bytes:
    return statement(query, limit_ms=sql.Literal(limit_ms)).as_bytes(None)


class LimitedCursor(psycopg.Cursor[Any]):
    """A cursor of a `LimitedConnection`."""

    def execute(self, *args: Any, **kwargs: Any) -> Self:
        """Execute a statement under what remains of the connection's time."""
        connection: LimitedConnection = self.connection  # type: ignore[assignment]
        connection.limit_next_statement()
        return super().execute(*args, **kwargs)
