"""Brings a database up to date: checks what the server offers, then applies `sql/migrations`."""

from typing import Any
from urllib.parse import urlencode

import psycopg
from psycopg.conninfo import conninfo_to_dict
from yoyo import get_backend, read_migrations

from rag_resources.core.errors import DatabaseNotReadyError, DatabaseUnavailableError
from rag_resources.core.messages import Message
from rag_resources.database.queries import SQL, queries
from rag_resources.database.schema import check_can_migrate

MIN_POSTGRES = 15
MIN_PGVECTOR = (0, 8)
CONNECT_TIMEOUT_S = 5
LOCK_TIMEOUT_S = 60
TABLE_TIMEOUT_S = 10
"""Whoever uses a table after us waits behind us, as long as we wait for it."""

Connection = psycopg.Connection[tuple[Any, ...]]


def migrate(dsn: str) -> list[str]:
    """Apply the migrations that are missing; safe to run at once from several processes.

    Args:
        dsn: `postgresql://…`

    Returns:
        The ids of those applied now.

    Raises:
        DatabaseUnavailableError: The server does not answer, or another process is migrating.
        SchemaMismatchError: A newer version of the product has migrated it.
        DatabaseNotReadyError: It lacks the extension, the version or the rights, or has tables in
            our way; the message says what to do.
    """
    with connect(dsn) as connection:
        try:
            _wait_for_turn(connection)
            check_can_migrate(connection)
            _preflight(connection)
            return _apply_missing(dsn)
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


def connect(dsn: str) -> Connection:
    """Open one connection outside any pool.

    Raises:
        DatabaseUnavailableError: The URL is no URL, or the server does not answer or refuses the
            credentials.
    """
    parts = parse_url(dsn)
    try:
        return psycopg.connect(dsn, autocommit=True, connect_timeout=CONNECT_TIMEOUT_S)
    except psycopg.OperationalError as error:
        said = str(error)
        if "authentication failed" in said or "no password supplied" in said:
            message = Message.DATABASE_LOGIN_REFUSED.format(user=parts.get("user", ""))
        elif "database" in said and "does not exist" in said:
            message = Message.DATABASE_MISSING.format(database=parts.get("dbname", ""))
        else:
            message = Message.DATABASE_UNREACHABLE.format(reason=first_line(error))
        raise DatabaseUnavailableError(message) from error


def first_line(error: psycopg.Error) -> str:
    """Return the first line of what PostgreSQL said; never the statement, never credentials."""
    text = (error.diag.message_primary or str(error)).strip()
    return text.splitlines()[0] if text else type(error).__name__


def parse_url(dsn: str, *, variable: str = "DATABASE_URL") -> dict[str, Any]:
    """Return the parts of the address of a database.

    Args:
        dsn: The address.
        variable: Where it comes from, for the error.

    Raises:
        DatabaseUnavailableError: It is none; what it says is not told.
    """
    # A password with "@", "/" or "?" as they are ends up in the host, the port or the name, and
    # from there in messages and logs: hence the checks, and no cause, which quotes the URL.
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


def _wait_for_turn(connection: Connection) -> None:
    """Take the lock of migrations, which ends with the connection.

    Yoyo's own lock is a row that a killed process leaves behind for ever.
    """
    queries().set_session(connection, name="lock_timeout", value=f"{LOCK_TIMEOUT_S}s")
    try:
        queries().lock_migrations(connection)
    except psycopg.errors.LockNotAvailable as error:
        raise DatabaseUnavailableError(Message.MIGRATION_LOCKED) from error


def _apply_missing(dsn: str) -> list[str]:
    # As parameters, so that every form of URL that PostgreSQL's own library takes will do.
    uri = "postgresql+psycopg:///?" + urlencode(conninfo_to_dict(dsn))
    with get_backend(uri) as backend:
        backend.break_lock()
        pending = backend.to_apply(read_migrations(str(SQL / "migrations")))
        # Applied and recorded in one transaction, all of them. Yoyo's own loop takes two of each: a
        # process killed between them leaves a database that can never be migrated again. And an
        # application that writes to the notes must not meet them half adopted.
        with backend.transaction():
            queries().set_transaction(
                backend.connection, name="lock_timeout", value=f"{TABLE_TIMEOUT_S}s"
            )
            queries().lock_legacy_notes(backend.connection)
            for migration in pending:
                migration.process_steps(backend, "apply")
                backend.mark_one(migration, log=False)
        return [migration.id for migration in pending]


def _preflight(connection: Connection) -> None:
    """Check what we need before anything is written; the last step installs pgvector."""
    version = connection.info.server_version // 10_000
    if version < MIN_POSTGRES:
        raise DatabaseNotReadyError(
            Message.DATABASE_TOO_OLD.format(version=version, minimum=MIN_POSTGRES)
        )
    _check_text(connection)
    if not queries().can_create_tables(connection):
        raise DatabaseNotReadyError(Message.DATABASE_NO_RIGHTS.format(user=connection.info.user))
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
