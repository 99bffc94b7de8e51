"""The application's connection pool, with its session settings and error translation.

How a connection keeps a deadline is in `connection`; retries are in `resilience.retry`.
"""

import copy
import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache, partial
from threading import get_ident
from typing import Any

import psycopg
from pgvector.psycopg import register_vector
from psycopg import sql
from psycopg.rows import namedtuple_row
from psycopg_pool import ConnectionPool, PoolTimeout

from rag_resources.core.deadline import Deadline
from rag_resources.core.errors import (
    DatabaseLockedError,
    DatabaseTimeoutError,
    DatabaseUnavailableError,
)
from rag_resources.database.connection import LimitedConnection, LimitedCursor, Role, Scope
from rag_resources.database.faults import database_fault, first_line, is_refusal
from rag_resources.database.migrations import CONNECT_TIMEOUT_S, connect, place
from rag_resources.database.queries import queries, statement
from rag_resources.languages.messages import _

Connection = psycopg.Connection[Any]

MAX_CONNECTIONS = 20
IDLE_S = 30.0
ACQUIRE_TIMEOUT_S = 2.0
CHECK_TIMEOUT_MS = 500
"""A pooled connection that takes longer than this to answer a trivial query is replaced."""

STATEMENT_TIMEOUT_MS = 600_000
LOCK_TIMEOUT = "30s"
"""Longest wait of a statement for another session's lock, unless its deadline is earlier."""

APPLICATION_NAME = "brain-sync-rag"
EF_SEARCH = "100"
"""At least the largest LIMIT of an index scan: HNSW returns no more rows than this."""

ITERATIVE_SCAN = "relaxed_order"
"""Lets an index scan go on if a filter after it leaves too few rows."""

IDLE_TIMEOUT = "600s"

_SESSION = {
    "hnsw.ef_search": EF_SEARCH,
    "hnsw.iterative_scan": ITERATIVE_SCAN,
    "idle_in_transaction_session_timeout": IDLE_TIMEOUT,
}

# A host that disappears sends nothing: without these settings a statement without a deadline would
# wait for the kernel's default of two hours.
_KEEPALIVE = {
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}


class Access(StrEnum):
    """The role that a pool's transactions run under; see docs/tenants.md."""

    READER = "rag_reader"
    WRITER = "rag_writer"
    OWNER = "none"
    """The login itself, which migrates, indexes and counts for all tenants."""


LOGIN = Role(Access.OWNER, has_views=False, search_path=None)


@dataclass(frozen=True, slots=True)
class PoolStatistics:
    """The current state of a pool, and counts since it was opened.

    Attributes:
        size: Connections, including those being opened.
        in_use: Connections lent.
        waiting: Callers waiting for a connection.
        requests: Requests for a connection.
        requests_queued: Requests that had to wait.
        requests_failed: Requests that got no connection in time.
        wait_ms_avg: Average time in the queue, over all requests.
        connections_opened: Attempts to connect.
        connections_failed: Attempts that failed.
        connections_lost: Connections found dead, or closed while lent.
    """

    size: int
    in_use: int
    waiting: int
    requests: int
    requests_queued: int
    requests_failed: int
    wait_ms_avg: float
    connections_opened: int
    connections_failed: int
    connections_lost: int


class Database:
    """A pool over one database.

    Args:
        dsn: `postgresql://…`
        direct_dsn: The same database without the pooler that `dsn` goes through. Transactions then
            rely on no session state, and work that needs a session of its own uses this address.
            None: there is no pooler.
        tenant: Whose rows are read and written; named in every transaction.
        min_connections: Connections kept open: 5 in a server, fewer in a run.
        guard: Called before a connection is lent; raises if none may be lent any more, as
            `RunLock.check` does.

    Attributes:
        access: The role that its transactions run under; see `as_`.
    """

    def __init__(
        self,
        dsn: str,
        *,
        direct_dsn: str | None = None,
        tenant: str = "default",
        min_connections: int = 1,
        guard: Callable[[], None] = lambda: None,
    ) -> None:
        self._dsn = dsn
        self._direct_dsn = direct_dsn
        self._guard = guard
        self._min_connections = min_connections
        self._tenant = tenant
        self.access = Access.OWNER
        self._pool = self._new_pool()
        self._lent: set[LimitedConnection] = set()
        # Ids of waiting threads. The pool's own queue would also count callers that gave up, until
        # a connection is returned.
        self._waiting: set[int] = set()

    def _new_pool(self) -> ConnectionPool[LimitedConnection]:
        return ConnectionPool(
            self._dsn,
            connection_class=LimitedConnection,
            min_size=self._min_connections,
            max_size=MAX_CONNECTIONS,
            max_idle=IDLE_S,
            timeout=ACQUIRE_TIMEOUT_S,
            # Otherwise the pauses between attempts grow to minutes and outlast a short outage.
            reconnect_timeout=CONNECT_TIMEOUT_S,
            kwargs={
                "row_factory": namedtuple_row,
                "cursor_factory": LimitedCursor,
                "connect_timeout": CONNECT_TIMEOUT_S,
                "application_name": APPLICATION_NAME,
                # A pooler may give the next transaction a session without the prepared statement.
                **({"prepare_threshold": None} if self._is_shared else {}),
                **_KEEPALIVE,
            },
            configure=self._set_up,
            open=False,
        )

    @property
    def _is_shared(self) -> bool:
        """Whether a pooler may give each transaction another session."""
        return self._direct_dsn is not None

    def direct(self) -> "Database":
        """Return another pool over the same database that bypasses any pooler, not opened yet."""
        return Database(self._direct_dsn or self._dsn, tenant=self._tenant, guard=self._guard)

    def answers(self) -> bool:
        """Return whether the server takes a connection, outside the pool."""
        try:
            psycopg.connect(self._dsn, connect_timeout=CONNECT_TIMEOUT_S).close()
        except psycopg.OperationalError:
            return False
        return True

    @property
    def address(self) -> str:
        """Host and port of the server, without a password."""
        return place(self._dsn)

    def as_(self, access: Access) -> "Database":
        """Return a view of this open pool whose transactions run with another access.

        If the login may not take on the role, they run as the login; `rag status` says so.
        """
        view = copy.copy(self)
        view.access = access
        return view

    def open(self) -> "Database":
        """Open the pool.

        Raises:
            DatabaseUnavailableError: No connection within the time to connect; the message says
                why, if PostgreSQL does.
        """
        try:
            self._pool.open(wait=True, timeout=CONNECT_TIMEOUT_S)
        except PoolTimeout:
            connect(self._dsn).close()  # The pool keeps the reason to itself; this raises it.
            self._open_again()
        return self

    def _open_again(self) -> None:
        """Wait for the same time once more if the server answers, but slowly."""
        self._pool = self._new_pool()
        try:
            self._pool.open(wait=True, timeout=CONNECT_TIMEOUT_S)
        except PoolTimeout as error:
            raise DatabaseUnavailableError(
                _("Connection error. Please try again later.")
            ) from error

    def close(self) -> None:
        """Close every connection."""
        self._pool.close()

    def __enter__(self) -> "Database":
        return self.open()

    def __exit__(self, *_: object) -> None:
        self.close()

    def one_source(self) -> AbstractContextManager[None]:
        """Return a block in which everything is read from one server; here it always is."""
        return nullcontext()

    def transaction(
        self, deadline: Deadline | None = None
    ) -> AbstractContextManager[LimitedConnection]:
        """Lend a connection in a transaction: committed at the end, rolled back on an error.

        Args:
            deadline: For everything, including acquiring the connection and committing. None
                allows each statement `STATEMENT_TIMEOUT_MS`. `LimitedConnection.within` can
                shorten it for some statements.

        Raises:
            DatabaseUnavailableError: No connection in time, or it was lost.
            DatabaseTimeoutError: The deadline passed while a statement ran or while all
                connections were lent; or a statement was cancelled.
            DatabaseLockedError: Another session kept a lock for longer than `LOCK_TIMEOUT`.
            DatabaseError: The disk of the database is full, or the database is read-only.
            psycopg.Error: PostgreSQL refused what was to be written.
        """
        return self._lend(deadline)

    @contextmanager
    def _lend(
        self,
        deadline: Deadline | None,
        *,
        autocommit: bool = False,
        isolation: psycopg.IsolationLevel | None = None,
    ) -> Iterator[LimitedConnection]:
        """Lend a connection; see `transaction`."""
        try:
            connection = self._acquire(deadline, autocommit=autocommit, isolation=isolation)
            try:
                # Checked after the wait for a connection: the server may have been down meanwhile.
                self._guard()
                with connection:
                    yield connection
            except psycopg.errors.LockNotAvailable as error:
                raise DatabaseLockedError(
                    _(
                        "Waiting was given up: another session uses what is needed. Nothing was "
                        "changed in this transaction: end the other one, or wait until it ends, "
                        "and repeat the command."
                    )
                ) from error
            finally:
                self._return(connection)
        except (
            psycopg.OperationalError,
            psycopg.errors.IdleInTransactionSessionTimeout,
            psycopg.errors.ReadOnlySqlTransaction,
        ) as error:
            if is_refusal(error):
                raise
            raise database_fault(error) or DatabaseUnavailableError(
                _("Connection error. Please try again later."), reason=first_line(error)
            ) from error

    @contextmanager
    def bulk(self) -> Iterator[Connection]:
        """Lend a connection for bulk ingestion: a server crash may lose the last commits.

        A rerun repeats the lost work; no transaction is left half done.
        """
        with self.transaction() as connection:
            queries().set_transaction(connection, name="synchronous_commit", value="off")
            yield connection

    @contextmanager
    def snapshot(self, deadline: Deadline | None = None) -> Iterator[LimitedConnection]:
        """Lend a read-only connection that sees one snapshot of the database throughout.

        Args:
            deadline: See `transaction`.
        """
        isolation = psycopg.IsolationLevel.REPEATABLE_READ
        with self._lend(deadline, isolation=isolation) as connection:
            yield connection
            # What was read is valid even if this last message does not reach the server. With a
            # rollback psycopg would discard all its prepared statements.
            with suppress(psycopg.OperationalError, DatabaseTimeoutError):
                connection.commit()

    @contextmanager
    def autocommit(self, deadline: Deadline | None = None) -> Iterator[LimitedConnection]:
        """Lend a connection outside any transaction, for one short or one very long statement.

        With the access of a reader or writer it is in a transaction all the same, because only a
        transaction has a tenant and a role. Through a pooler, a short statement is in a transaction
        too, and a long one bypasses the pooler.

        Args:
            deadline: See `transaction`; None sets no limit, for `CREATE INDEX CONCURRENTLY`.
        """
        if self.access is not Access.OWNER or (self._is_shared and deadline):
            with self.transaction(deadline) as connection:
                yield connection
            return
        if self._is_shared:
            with self.direct() as direct, direct.autocommit() as connection:
                yield connection
            return
        with self._lend(deadline, autocommit=True) as connection:
            if deadline is None:
                queries().set_session(connection, name="statement_timeout", value="0")
            yield connection

    def statistics(self) -> PoolStatistics:
        """Return the pool's statistics."""
        # psycopg leaves out counters that are still 0.
        counts = defaultdict(int, self._pool.get_stats())
        return PoolStatistics(
            size=counts["pool_size"],
            in_use=len(self._lent),
            waiting=len(self._waiting),
            requests=counts["requests_num"],
            requests_queued=counts["requests_queued"],
            requests_failed=counts["requests_errors"],
            wait_ms_avg=counts["requests_wait_ms"] / max(1, counts["requests_num"]),
            connections_opened=counts["connections_num"],
            connections_failed=counts["connections_errors"],
            connections_lost=counts["returns_bad"],
        )

    def _acquire(
        self,
        deadline: Deadline | None,
        *,
        autocommit: bool,
        isolation: psycopg.IsolationLevel | None,
    ) -> LimitedConnection:
        """Take a connection that answers from the pool; dead ones are replaced."""
        limit = Deadline.after(ACQUIRE_TIMEOUT_S * 1000, time.monotonic)
        if deadline:
            if deadline.expired:
                raise DatabaseTimeoutError(
                    _("There is no time left for this part of the search."), begun=False
                )
            limit = deadline.within(ACQUIRE_TIMEOUT_S * 1000)
        while True:
            connection = self._take(limit, deadline)
            with suppress(psycopg.OperationalError, DatabaseTimeoutError):
                self._prepare(
                    connection, limit, deadline, autocommit=autocommit, isolation=isolation
                )
                return connection

    def _take(self, limit: Deadline, deadline: Deadline | None) -> LimitedConnection:
        self._waiting.add(get_ident())
        try:
            connection = self._pool.getconn(timeout=limit.remaining_s)
        except PoolTimeout as error:
            if deadline and deadline.expired and len(self._lent) >= MAX_CONNECTIONS:
                raise DatabaseTimeoutError(
                    _("There is no time left for this part of the search."), begun=False
                ) from error
            raise DatabaseUnavailableError(
                _("Connection error. Please try again later.")
            ) from error
        finally:
            self._waiting.discard(get_ident())
        self._lent.add(connection)
        return connection

    def _prepare(
        self,
        connection: LimitedConnection,
        limit: Deadline,
        deadline: Deadline | None,
        *,
        autocommit: bool,
        isolation: psycopg.IsolationLevel | None,
    ) -> None:
        limit_ms = STATEMENT_TIMEOUT_MS
        if deadline:
            limit_ms = min(limit_ms, math.ceil(deadline.remaining_ms))
        try:
            connection.deadline = limit.within(CHECK_TIMEOUT_MS)
            scope = self._scope(connection.roles.get(self.access, LOGIN))
            connection.lend(limit_ms, autocommit=autocommit, isolation=isolation, scope=scope)
            # Kept when the connection is returned, so that the pool's own rollback is bounded too.
            connection.deadline = deadline
        except BaseException:
            connection.close()
            self._return(connection)
            raise

    def _return(self, connection: LimitedConnection) -> None:
        self._lent.discard(connection)
        self._pool.putconn(connection)

    def _set_up(self, connection: LimitedConnection) -> None:
        _configure(connection, is_shared=self._is_shared)

    def _scope(self, role: Role) -> Scope:
        return partial(_shared_scope if self._is_shared else _scope, self._tenant, role)


@lru_cache(maxsize=4096)
def _scope(tenant: str, role: Role, limit_ms: int) -> bytes:
    return statement(
        "scope_transaction",
        tenant=sql.Literal(tenant),
        role=sql.Literal(role.name),
        search_path=sql.Literal(role.search_path),
        limit_ms=sql.Literal(str(limit_ms)),
    ).as_bytes(None)


@lru_cache(maxsize=4096)
def _shared_scope(tenant: str, role: Role, limit_ms: int) -> bytes:
    return statement(
        "scope_shared_transaction",
        tenant=sql.Literal(tenant),
        role=sql.Literal(role.name),
        search_path=sql.Literal(role.search_path),
        limit_ms=sql.Literal(str(limit_ms)),
        lock_timeout=sql.Literal(LOCK_TIMEOUT),
        ef_search=sql.Literal(EF_SEARCH),
        iterative_scan=sql.Literal(ITERATIVE_SCAN),
        idle_timeout=sql.Literal(IDLE_TIMEOUT),
    ).as_bytes(None)


def _configure(connection: LimitedConnection, *, is_shared: bool) -> None:
    """Set up a new connection, or fail within the connection timeout."""
    connection.deadline = Deadline.after(CONNECT_TIMEOUT_S * 1000, time.monotonic)
    connection.autocommit = True
    if not is_shared:
        for name, value in _SESSION.items():
            queries().set_session(connection, name=name, value=value)
        queries().limit_lock_waits(connection, value=LOCK_TIMEOUT)
    connection.roles = {row.name: Role(*row) for row in queries().assumable_roles(connection)}
    register_vector(connection)
