"""Connections of the application: a pool with our session settings, and errors of ours."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from pgvector.psycopg import register_vector
from psycopg.rows import namedtuple_row
from psycopg_pool import ConnectionPool, PoolTimeout

from rag_resources.core.errors import DatabaseError, DatabaseUnavailableError
from rag_resources.core.messages import Message
from rag_resources.database.migrations import CONNECT_TIMEOUT_S, first_line
from rag_resources.database.queries import queries

Connection = psycopg.Connection[Any]

MAX_CONNECTIONS = 20
IDLE_S = 30.0
ACQUIRE_TIMEOUT_S = 2.0

_SESSION = {
    # At least the largest LIMIT over an index: HNSW returns no more rows than this.
    "hnsw.ef_search": "100",
    # A filter after the index scan must not starve the result.
    "hnsw.iterative_scan": "relaxed_order",
    "statement_timeout": "600s",
    "idle_in_transaction_session_timeout": "600s",
    "application_name": "brain-sync-rag",
}


class Database:
    """A pool over one database.

    Args:
        dsn: `postgresql://…`
        min_connections: Kept open: 5 in a server, fewer in a run.
    """

    def __init__(self, dsn: str, *, min_connections: int = 1) -> None:
        self._pool = ConnectionPool(
            dsn,
            min_size=min_connections,
            max_size=MAX_CONNECTIONS,
            max_idle=IDLE_S,
            timeout=ACQUIRE_TIMEOUT_S,
            kwargs={"row_factory": namedtuple_row, "connect_timeout": CONNECT_TIMEOUT_S},
            configure=_configure,
            check=ConnectionPool.check_connection,
            open=False,
        )

    def open(self) -> "Database":
        """Open the pool.

        Raises:
            DatabaseUnavailableError: No connection within the time to connect.
        """
        try:
            self._pool.open(wait=True, timeout=CONNECT_TIMEOUT_S)
        except PoolTimeout as error:
            self._pool.close()
            raise DatabaseUnavailableError(Message.CONNECTION_ERROR) from error
        return self

    def close(self) -> None:
        """Close every connection."""
        self._pool.close()

    def __enter__(self) -> "Database":
        return self.open()

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Lend a connection: committed at the end, rolled back on an error.

        Raises:
            DatabaseUnavailableError: No connection in time, or it was lost.
            DatabaseError: The disk of the database is full.
        """
        try:
            with self._pool.connection() as connection:
                yield connection
        except PoolTimeout as error:
            raise DatabaseUnavailableError(Message.CONNECTION_ERROR) from error
        except psycopg.errors.DiskFull as error:
            raise DatabaseError(Message.DATABASE_DISK_FULL) from error
        except psycopg.OperationalError as error:
            raise DatabaseUnavailableError(
                Message.CONNECTION_ERROR, reason=first_line(error)
            ) from error

    @contextmanager
    def bulk(self) -> Iterator[Connection]:
        """Lend a connection for bulk ingestion: a crash of the server may lose its last commits.

        Whatever is lost is done again by a rerun: nothing is left half done.
        """
        with self.transaction() as connection:
            queries().set_transaction(connection, name="synchronous_commit", value="off")
            yield connection

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """Lend a connection that sees one state of the database throughout, and writes nothing."""
        with self.transaction() as connection:
            connection.rollback()
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            try:
                yield connection
            finally:
                connection.rollback()
                connection.isolation_level = None

    @contextmanager
    def autocommit(self) -> Iterator[Connection]:
        """Lend a connection outside any transaction, for `CREATE INDEX CONCURRENTLY`."""
        with self.transaction() as connection:
            connection.commit()
            connection.autocommit = True
            # An index may take as long as it takes.
            queries().set_session(connection, name="statement_timeout", value="0")
            try:
                yield connection
            finally:
                limit = _SESSION["statement_timeout"]
                queries().set_session(connection, name="statement_timeout", value=limit)
                connection.autocommit = False


def _configure(connection: Connection) -> None:
    for name, value in _SESSION.items():
        queries().set_session(connection, name=name, value=value)
    register_vector(connection)
    connection.commit()
