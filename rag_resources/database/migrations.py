"""Migrates the schema of a database: checks the server first, then applies `sql/migrations`."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import psycopg
from psycopg.conninfo import conninfo_to_dict

from rag_resources.core.errors import DatabaseNotReadyError, DatabaseUnavailableError
from rag_resources.database.faults import database_fault, first_line
from rag_resources.database.queries import SQL, queries
from rag_resources.database.schema import Schema, SchemaState, check_can_migrate, own_tables
from rag_resources.languages.messages import _

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
                _(
                    "The schema could not be created: the database “{database}” already has "
                    "something with a name that is needed ({reason}). Nothing was changed. Rename "
                    "it or use another database in DATABASE_URL."
                ).format(database=connection.info.dbname, reason=first_line(error))
            ) from error
        except psycopg.errors.LockNotAvailable as error:
            raise DatabaseUnavailableError(
                _(
                    "Another session has been using a table for more than {seconds} s, and while "
                    "it is waited for nobody else can use it. Nothing was changed: end the open "
                    "transactions of the other application and try again."
                ).format(seconds=TABLE_TIMEOUT_S)
            ) from error
        except psycopg.Error as error:
            raise DatabaseNotReadyError(
                _(
                    "The schema of the database could not be updated: {reason}. Nothing was "
                    "changed: mend the cause and try again."
                ).format(reason=first_line(error))
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
            message = _(
                "The database server rejects the user “{user}” or the password. Check {variable}."
            ).format(user=parts.get("user", ""), variable=variable)
        elif "database" in said and "does not exist" in said:
            message = _(
                "The server has no database “{database}”. Create it (CREATE DATABASE) or correct "
                "{variable}."
            ).format(database=parts.get("dbname", ""), variable=variable)
        else:
            message = _(
                "The database cannot be reached: {reason}. Check that the server is started and "
                "that {variable} is right."
            ).format(reason=_why_unreachable(error, parts), variable=variable)
        raise DatabaseUnavailableError(message) from error


def _why_unreachable(error: psycopg.OperationalError, parts: Mapping[str, Any]) -> str:
    """Say why nothing answers at an address; in the words of the client for a rare reason."""
    said = str(error)
    host, port = parts.get("host", ""), parts.get("port", DEFAULT_PORT)
    for words, message in (
        ("Connection refused", _("no server answers at {host}, port {port}")),
        ("timeout expired", _("{host}, port {port}, does not answer in time")),
        ("timed out", _("{host}, port {port}, does not answer in time")),
        ("resolve host", _("no machine “{host}” is known")),
        ("translate host name", _("no machine “{host}” is known")),
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
    invalid = DatabaseUnavailableError(
        _(
            "{variable} is not valid. It must have the form "
            "postgresql://user:password@server:port/database; the signs @ : / ? # % of the "
            "password are written %40 %3A %2F %3F %23 %25."
        ).format(variable=variable)
    )
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
        raise DatabaseUnavailableError(
            _(
                "Another process is updating the schema of the database. Wait until it ends and "
                "try again."
            )
        ) from error


def _apply_missing(dsn: str, schema: Schema) -> list[str]:
    from yoyo import get_backend, read_migrations  # loads slowly

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
            _("The server is PostgreSQL {version}; version {minimum} or later is needed.").format(
                version=version, minimum=MIN_POSTGRES
            )
        )
    _check_text(connection)
    if not queries().can_create_tables(connection):
        raise DatabaseNotReadyError(
            _(
                "The user {user} cannot create tables in this schema. An administrator must run: "
                "GRANT CREATE ON SCHEMA public TO {user};"
            ).format(user=connection.info.user)
        )
    if schema.state is SchemaState.MISSING:
        _check_adoption(connection)
    _ensure_vector(connection)


def _check_text(connection: Connection) -> None:
    database = connection.info.dbname
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise DatabaseNotReadyError(
            _(
                "The database “{database}” stores text in {encoding}; UTF8 is needed. Create "
                "another one and copy the data into it: CREATE DATABASE … ENCODING 'UTF8' "
                "TEMPLATE template0;"
            ).format(database=database, encoding=encoding)
        )
    if not queries().separates_words(connection):
        raise DatabaseNotReadyError(
            _(
                "The database “{database}” does not tell letters from signs (“¿qué” would be one "
                "word) because its LC_CTYPE is not UTF-8. Create another one and copy the data "
                "into it: CREATE DATABASE … LC_CTYPE 'C.UTF-8' TEMPLATE template0;"
            ).format(database=database)
        )


def _check_adoption(connection: Connection) -> None:
    problems = [
        _("{subject}: {expected} is expected, there is {found}").format(
            subject=subject, expected=expected, found=found or _("nothing")
        )
        for subject, expected, found in queries().find_adoption_problems(connection)
    ]
    if problems:
        raise DatabaseNotReadyError(
            _(
                "The table “notes” of the database “{database}” does not have the expected form. "
                "Nothing was changed. Correct what is named, or rename the table (ALTER TABLE "
                "notes RENAME TO …) or use another database:{problems}"
            ).format(database=connection.info.dbname, problems="\n  - ".join(["", *problems])),
            problems=problems,
        )


def _ensure_vector(connection: Connection) -> None:
    available, installed = _vector_versions(connection)
    if installed is None and available is None:
        raise DatabaseNotReadyError(
            _(
                "The server lacks the extension pgvector. Install it there (in Debian the package "
                "postgresql-<version>-pgvector) and try again."
            )
        )
    if installed is None:
        try:
            queries().create_vector_extension(connection)
        except psycopg.errors.InsufficientPrivilege as error:
            raise DatabaseNotReadyError(
                _(
                    "The database “{database}” lacks the extension “vector” and this user cannot "
                    "create it. An administrator must run once in it: CREATE EXTENSION vector;"
                ).format(database=connection.info.dbname)
            ) from error
        available, installed = _vector_versions(connection)
    if installed and tuple(int(part) for part in installed.split(".")[:2]) < MIN_PGVECTOR:
        raise DatabaseNotReadyError(
            _(
                "The database “{database}” has pgvector {version}; {minimum} or later is needed. "
                "Update the package and run: ALTER EXTENSION vector UPDATE;"
            ).format(
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
