"""Migrates the schema of a database: checks the server first, then applies `sql/migrations`."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import psycopg
from psycopg.conninfo import conninfo_to_dict
from yoyo import get_backend, read_migrations

from rag_resources.core.errors import DatabaseNotReadyError, DatabaseUnavailableError
from rag_resources.core.messages import Message
from rag_resources.database.faults import database_fault, first_line
from rag_resources.database.queries import SQL, queries
from rag_resources.database.schema import Schema, SchemaState, check_can_migrate, own_tables

MIN_POSTGRES = 15
MIN_PGVECTOR = (0, 8)
CONNECT_TIMEOUT_S = 5
DEFAULT_PORT = 5432
LOCK_TIMEOUT_S = 60
TABLE_TIMEOUT_S = 10
"""Longest wait for a table: while this waits, later users of the table queue behind it."""

Connection = psycopg.Connection[tuple[Any, ...]]


def migrate(dsn: str) -> list[str]:
    """Apply the missing migrations; safe to run from several processes at once.

    Args:
        dsn: `postgresql://…`

    Returns:
        The ids of the migrations applied now.

    Raises:
        DatabaseUnavailableError: The server does not answer, or another process is migrating.
        SchemaMismatchError: The schema is newer, or from before the baseline.
        DatabaseNotReadyError: The extension, the server version or a privilege is missing, or
            existing tables are in the way; the message says what to do.
    """
    with connect(dsn) as connection:
        try:
            _wait_for_turn(connection)
            schema = check_can_migrate(connection)
            _preflight(connection, schema)
            applied = _apply_missing(dsn, schema)
            isolate_tenants(connection)
        except (
            psycopg.errors.DuplicateTable,
            psycopg.errors.DuplicateFunction,
            psycopg.errors.DuplicateObject,
        ) as error:
            raise DatabaseNotReadyError(
                Message.MIGRATION_NAME_TAKEN.format(
                    database=connection.info.dbname, reason=first_line(error)
                )
            ) from error
        except psycopg.errors.LockNotAvailable as error:
            raise DatabaseUnavailableError(
                Message.MIGRATION_TABLE_IN_USE.format(seconds=TABLE_TIMEOUT_S)
            ) from error
        except psycopg.Error as error:
            raise DatabaseNotReadyError(
                Message.MIGRATION_FAILED.format(reason=first_line(error))
            ) from error
        return applied


def isolate_tenants(connection: Connection) -> None:
    """Put every table of the product that has tenants under row-level security; idempotent."""
    names = list(own_tables())
    queries().isolate_tenants(connection, names=names)
    queries().show_tenants_their_rows(connection, names=names)


def connect(dsn: str, *, variable: str = "DATABASE_URL") -> Connection:
    """Open one connection outside any pool.

    Args:
        dsn: `postgresql://…`
        variable: The environment variable it comes from, for the error.

    Raises:
        DatabaseUnavailableError: The URL is invalid, or the server does not answer or refuses
            the credentials.
    """
    parts = parse_url(dsn, variable=variable)
    try:
        # Through a pooler, a prepared statement may belong to another session than the next one.
        return psycopg.connect(
            dsn, autocommit=True, connect_timeout=CONNECT_TIMEOUT_S, prepare_threshold=None
        )
    except psycopg.OperationalError as error:
        if fault := database_fault(error):
            raise fault from error
        said = str(error)
        if "authentication failed" in said or "no password supplied" in said:
            message = Message.DATABASE_LOGIN_REFUSED.format(
                user=parts.get("user", ""), variable=variable
            )
        elif "database" in said and "does not exist" in said:
            message = Message.DATABASE_MISSING.format(
                database=parts.get("dbname", ""), variable=variable
            )
        else:
            message = Message.DATABASE_UNREACHABLE.format(
                reason=_why_unreachable(error, parts), variable=variable
            )
        raise DatabaseUnavailableError(message) from error


def _why_unreachable(error: psycopg.OperationalError, parts: Mapping[str, Any]) -> str:
    """Say why nothing answers at an address; in the words of the client for a rare reason."""
    said = str(error)
    host, port = parts.get("host", ""), parts.get("port", DEFAULT_PORT)
    for words, message in (
        ("Connection refused", Message.DATABASE_NOBODY_THERE),
        ("timeout expired", Message.DATABASE_NO_ANSWER),
        ("timed out", Message.DATABASE_NO_ANSWER),
        ("resolve host", Message.DATABASE_HOST_UNKNOWN),
        ("translate host name", Message.DATABASE_HOST_UNKNOWN),
    ):
        if host and words in said:
            return message.format(host=host, port=port)
    return first_line(error)


def parse_url(dsn: str, *, variable: str = "DATABASE_URL") -> dict[str, Any]:
    """Return the parts of a database URL.

    Args:
        dsn: The URL.
        variable: The environment variable it comes from, for the error.

    Raises:
        DatabaseUnavailableError: The URL is invalid; the error does not quote it.
    """
    # With an unescaped "@", "/" or "?" part of a password would be read as host, port or name,
    # and end up in messages and logs. Hence the checks; the error has no cause, since that would
    # quote the URL.
    invalid = DatabaseUnavailableError(Message.DATABASE_URL_INVALID.format(variable=variable))
    try:
        parts = conninfo_to_dict(dsn)
    except psycopg.ProgrammingError:
        raise invalid from None
    ports = str(parts.get("port", "")).split(",")
    places = [str(parts.get(name, "")) for name in ("host", "dbname")]
    if any("@" in place for place in places) or any(p and not p.isdigit() for p in ports):
        raise invalid
    return parts


def place(url: str) -> str:
    """Return host and port of a database's URL, without its password."""
    parts = conninfo_to_dict(url)
    return f"{parts.get('host', 'localhost')}:{parts.get('port', DEFAULT_PORT)}"


def _wait_for_turn(connection: Connection) -> None:
    """Take the migration lock, which is released when the connection ends.

    Yoyo's own lock is a row, which a killed process leaves behind for ever.
    """
    queries().set_session(connection, name="lock_timeout", value=f"{LOCK_TIMEOUT_S}s")
    try:
        queries().lock_migrations(connection)
    except psycopg.errors.LockNotAvailable as error:
        raise DatabaseUnavailableError(Message.MIGRATION_LOCKED) from error


def _apply_missing(dsn: str, schema: Schema) -> list[str]:
    # Passed as parameters, so that every form of URL that libpq accepts works.
    uri = "postgresql+psycopg:///?" + urlencode(conninfo_to_dict(dsn))
    with get_backend(uri) as backend:
        backend.break_lock()
        pending = backend.to_apply(read_migrations(str(SQL / "migrations")))
        # All migrations are applied and recorded in one transaction. Yoyo's own loop takes two for
        # each: a process killed between them leaves a database that can never be migrated again.
        # Also, an application that writes notes must not see the table half adopted.
        with backend.transaction():
            queries().set_transaction(
                backend.connection, name="lock_timeout", value=f"{TABLE_TIMEOUT_S}s"
            )
            if schema.state is SchemaState.OLDER:
                queries().hide_tenant_views(backend.connection)
            for migration in pending:
                migration.process_steps(backend, "apply")
                backend.mark_one(migration, log=False)
        return [migration.id for migration in pending]


def _preflight(connection: Connection, schema: Schema) -> None:
    """Check the requirements before anything is written; the last step installs pgvector."""
    version = connection.info.server_version // 10_000
    if version < MIN_POSTGRES:
        raise DatabaseNotReadyError(
            Message.DATABASE_TOO_OLD.format(version=version, minimum=MIN_POSTGRES)
        )
    _check_text(connection)
    if not queries().can_create_tables(connection):
        raise DatabaseNotReadyError(Message.DATABASE_NO_RIGHTS.format(user=connection.info.user))
    if schema.state is SchemaState.MISSING:
        _check_adoption(connection)
    _ensure_vector(connection)


def _check_text(connection: Connection) -> None:
    database = connection.info.dbname
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise DatabaseNotReadyError(
            Message.DATABASE_NOT_UTF8.format(database=database, encoding=encoding)
        )
    if not queries().separates_words(connection):
        raise DatabaseNotReadyError(Message.DATABASE_WITHOUT_LETTERS.format(database=database))


def _check_adoption(connection: Connection) -> None:
    problems = [
        Message.DATABASE_ADOPTION_PROBLEM.format(
            subject=subject, expected=expected, found=found or Message.DATABASE_NOTHING_FOUND
        )
        for subject, expected, found in queries().find_adoption_problems(connection)
    ]
    if problems:
        raise DatabaseNotReadyError(
            Message.DATABASE_NOT_ADOPTABLE.format(
                database=connection.info.dbname, problems="\n  - ".join(["", *problems])
            ),
            problems=problems,
        )


def _ensure_vector(connection: Connection) -> None:
    available, installed = _vector_versions(connection)
    if installed is None and available is None:
        raise DatabaseNotReadyError(Message.VECTOR_NOT_AVAILABLE)
    if installed is None:
        try:
            queries().create_vector_extension(connection)
        except psycopg.errors.InsufficientPrivilege as error:
            raise DatabaseNotReadyError(
                Message.VECTOR_NOT_INSTALLED.format(database=connection.info.dbname)
            ) from error
        available, installed = _vector_versions(connection)
    if installed and tuple(int(part) for part in installed.split(".")[:2]) < MIN_PGVECTOR:
        raise DatabaseNotReadyError(
            Message.VECTOR_TOO_OLD.format(
                version=installed,
                minimum=".".join(map(str, MIN_PGVECTOR)),
                database=connection.info.dbname,
            )
        )


def _vector_versions(
    connection: Connection,
) -> tuple[str | None, str | None]:
    available, installed = queries().vector_versions(connection) or (None, None)
    return available, installed
