"""A connection that finishes by a deadline, whatever the server or the network does.

There are two limits. The server's limit is `statement_timeout`, set to the time that is left when a
transaction begins, and again when a later statement of it has less. So the server cancels a slow
statement, and the connection stays usable. The client's limit is a little later, in case the
server's answer does not arrive. `psycopg.Connection.wait`, through which psycopg sends and receives
everything, then gives up and closes the connection. No statement is left running, since the server
keeps its own limit.

The alternatives are worse. A watchdog needs a thread, and must not interrupt a connection that was
lent to somebody else meanwhile. A cancel request does not get through a stalled network.
`tcp_user_timeout` does not notice a peer that acknowledges bytes and never answers. Lending
connections belongs in `pool`.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Self, TypeVar

import psycopg
from psycopg import generators, sql
from psycopg.abc import PQGen
from psycopg.pq import ExecStatus, Format, TransactionStatus
from psycopg.pq.abc import PGresult

from rag_resources.core.deadline import Deadline
from rag_resources.core.errors import DatabaseTimeoutError
from rag_resources.database.queries import statement
from rag_resources.languages.messages import _

LAG_MS = 20
"""How much later than the deadline the server's limit may be, so that short transactions set it
only once."""

GRACE_MS = 100
"""How long after the deadline to wait for the server's late answer or its cancellation."""

_Result = TypeVar("_Result")

Scope = Callable[[int], bytes]


@dataclass(frozen=True, slots=True)
class Role:
    """One of the product's roles that a login can take on.

    Attributes:
        has_views: Whether it reads some tables through views of its tenant's rows, because with
            row-level security their indexes would not be used.
        search_path: Its search path for tables; None: the login's.
    """

    name: str
    has_views: bool
    search_path: str | None


class LimitedConnection(psycopg.Connection[Any]):
    """A connection whose exchanges with the server end by `deadline`.

    A statement in a transaction raises `DatabaseTimeoutError` when its time is up. If the server
    cancelled it, the transaction is aborted and the connection stays usable; otherwise the
    connection is closed. COPY and executemany keep the server limit of the statement before them.

    Every transaction begins with a tenant and a role, which end with it. So neither passes to the
    next user of the connection, whatever ended the transaction.

    Attributes:
        deadline: None: only the limit given to `lend` applies.
        roles: The product's roles that the login can take on, by name.
        scope: Returns the statement that every transaction begins with, given the longest time of a
            statement; None for none.
    """

    deadline: Deadline | None = None
    roles: Mapping[str, Role] = MappingProxyType({})
    scope: Scope | None = None
    _longest_ms = 0
    _limit_ms = 0

    def lend(
        self,
        limit_ms: int,
        *,
        autocommit: bool = False,
        isolation: psycopg.IsolationLevel | None = None,
        scope: Scope | None = None,
    ) -> None:
        """Prepare an idle connection for its next user, in one round trip.

        The round trip begins a transaction or, outside transactions, sets the session's limit. It
        also shows that the server answers.

        Args:
            limit_ms: Longest time of a statement, unless the deadline is earlier; >= 1.
            autocommit: Whether the user wants no transaction.
            isolation: The transaction's isolation level; None: the server's default.
            scope: See `LimitedConnection`.

        Raises:
            psycopg.OperationalError: The connection is lost.
            DatabaseTimeoutError: No answer by the deadline.
        """
        # A limit shorter than the lag could cancel the statement that raises it again.
        self._limit_ms = self._longest_ms = max(limit_ms, LAG_MS)
        self.scope = scope
        # Each of these is an exchange of psycopg with itself, even if nothing changes.
        if self.autocommit != autocommit:
            self.autocommit = autocommit
        if self.isolation_level != isolation:
            self.isolation_level = isolation
        if autocommit:
            self._set_limit("limit_session")
        else:
            with self.lock:
                self.wait(self._start_query())

    @contextmanager
    def within(self, deadline: Deadline) -> Iterator[None]:
        """Apply `deadline` to the block, if it is earlier than the connection's.

        Raises:
            DatabaseTimeoutError: The deadline passed. The transaction can only be rolled back.
        """
        outer = self.deadline
        if outer is None or deadline.remaining_ms < outer.remaining_ms:
            self.deadline = deadline
        try:
            yield
        finally:
            self.deadline = outer

    def limit_next_statement(self) -> None:
        """Make the server cancel the next statement when its time is up.

        Raises:
            DatabaseTimeoutError: The time is up already; nothing was sent.
        """
        if self.autocommit:
            return
        limit_ms = self._longest_ms
        if self.deadline:
            limit_ms = min(limit_ms, math.ceil(self.deadline.remaining_ms))
        if limit_ms == 0:
            raise DatabaseTimeoutError(_("There is no time left for this part of the search."))
        if self.pgconn.transaction_status == TransactionStatus.IDLE:
            # The limit of the last transaction ended with it. A scope sets that of the next.
            self._limit_ms = limit_ms if self.scope else 0
        if not limit_ms <= self._limit_ms <= limit_ms + LAG_MS:
            self._limit_ms = limit_ms
            self._set_limit("limit_transaction")

    def wait(
        self, gen: PQGen[_Result], interval: float = 0.1, timeout: float | None = None
    ) -> _Result:
        """Send and receive as psycopg does, but give up at the deadline.

        Raises:
            DatabaseTimeoutError: The server cancelled the statement, or it did not answer in time
                and the connection was closed.
        """
        if self.deadline is None or timeout is not None:
            return super().wait(gen, interval, timeout)
        try:
            return super().wait(gen, interval, self.deadline.remaining_s + GRACE_MS / 1000)
        except psycopg.errors.QueryCanceled as error:
            raise DatabaseTimeoutError(
                _("There is no time left for this part of the search.")
            ) from error
        except psycopg.OperationalError as error:
            if self.pgconn.transaction_status != TransactionStatus.ACTIVE:
                raise
            # The answer may still arrive, and would be read as that of the next statement.
            self.close()
            raise DatabaseTimeoutError(
                _("There is no time left for this part of the search.")
            ) from error

    def _exec_command(self, command: Any, result_format: Format = Format.TEXT) -> PQGen[Any]:
        if not self.scope or command != self._begin_statement:
            return (yield from super()._exec_command(command, result_format))
        scope = self.scope(self._limit_ms)
        if self._pipeline:
            yield from super()._exec_command(command)
            return (yield from super()._exec_command(scope))
        return (yield from self._exec_both(command, scope))[0]

    def _exec_both(self, *commands: bytes) -> PQGen[list[PGresult]]:
        """Send commands together; psycopg's own method takes one alone."""
        self._check_connection_ok()
        self.pgconn.send_query(b"; ".join(commands))
        results: list[PGresult] = yield from generators.execute(self.pgconn)
        for result in results:
            if result.status == ExecStatus.FATAL_ERROR:
                raise psycopg.errors.error_from_result(result, encoding=self.info.encoding)
        return results

    def _set_limit(self, query: str) -> None:
        # A plain cursor, since a `LimitedCursor` would try to set the limit first.
        psycopg.Cursor(self).execute(_limit_statement(query, self._limit_ms), prepare=False)


@lru_cache(maxsize=4096)
def _limit_statement(query: str, limit_ms: int) -> bytes:
    return statement(query, limit_ms=sql.Literal(limit_ms)).as_bytes(None)


class LimitedCursor(psycopg.Cursor[Any]):
    """A cursor of a `LimitedConnection`."""

    def execute(self, *args: Any, **kwargs: Any) -> Self:
        """Execute a statement within the time left to the connection."""
        connection: LimitedConnection = self.connection  # type: ignore[assignment]
        connection.limit_next_statement()
        return super().execute(*args, **kwargs)


class LimitedRawCursor(psycopg.RawCursor[Any]):
    """A `LimitedCursor` for statements with PostgreSQL's own placeholders: $1, $2 and so on.

    psycopg sends them unchanged. Other statements are parsed at every execution if they are long.
    """

    def execute(self, *args: Any, **kwargs: Any) -> Self:
        """Execute a statement within the time left to the connection."""
        connection: LimitedConnection = self.connection  # type: ignore[assignment]
        connection.limit_next_statement()
        return super().execute(*args, **kwargs)
