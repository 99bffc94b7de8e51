"""Finds the application's database: the user's own, or the embedded one, which is then started."""

from collections.abc import Callable
from typing import Any

from rag_resources.core.errors import DatabaseNotReadyError
from rag_resources.database.migrations import connect, migrate, parse_url
from rag_resources.database.pool import Access, Database
from rag_resources.database.readers import Readers
from rag_resources.database.schema import SchemaState, check_schema, read_schema
from rag_resources.database.server import EmbeddedServer
from rag_resources.languages.messages import _
from rag_resources.settings import Settings

APPLICATION_DATABASE = "rag"
DAGSTER_DATABASE = "dagster"
STALENESS_S = 5.0
"""How far a standby may lag behind the primary."""


def embedded_server(settings: Settings) -> EmbeddedServer:
    """Return the embedded server of a home, whether it runs or not; nothing is created.

    Raises:
        InvalidParameterError: The home cannot be a folder.
    """
    settings.check_home()
    return _server(settings)


def require_database(settings: Settings) -> None:
    """Check that a database exists; creates neither folder nor server.

    Raises:
        DatabaseNotReadyError: There is none; the message says where the product looks, and how to
            create one.
    """
    if settings.database_url is None and not embedded_server(settings).exists:
        raise DatabaseNotReadyError(
            _(
                "There is no database in {home} (RAG_HOME) yet, and this command creates nothing. "
                "If your notes are in another folder of state, set its RAG_HOME; the first time, "
                "begin with “rag run”, or create an empty database with “rag up”."
            ).format(home=settings.rag_home),
            home=str(settings.rag_home),
        )


def database_url(settings: Settings) -> str:
    """Return the URL of the application's database; starts the embedded server if it is used."""
    if settings.database_url:
        return settings.database_url.get_secret_value()
    return _embedded_url(settings, APPLICATION_DATABASE)


def direct_url(settings: Settings) -> str:
    """Return the URL of the application's database that bypasses any pooler.

    Session locks and migrations need it, because there each connection has its own session.

    Raises:
        DatabaseUnavailableError: The URL in the settings is invalid.
    """
    if settings.database_direct_url:
        url = settings.database_direct_url.get_secret_value()
        parse_url(url, variable="DATABASE_DIRECT_URL")
        return url
    return database_url(settings)


def database_at(settings: Settings, url: str, **options: Any) -> Database:
    """Return a pool over a database of the settings, not opened yet.

    Args:
        settings: Name the pooler, if any, and the tenant whose rows are read and written.
        url: The database's URL.
        options: See `Database`.
    """
    direct = direct_url(settings) if settings.database_direct_url else None
    return Database(url, direct_dsn=direct, tenant=settings.tenant, **options)


def dagster_url(settings: Settings) -> str:
    """Return the URL of Dagster's own storage, in the form SQLAlchemy wants for psycopg2.

    Raises:
        DatabaseUnavailableError: The URL in the settings is invalid.
    """
    if settings.dagster_pg_url:
        url = settings.dagster_pg_url.get_secret_value()
        place = url.partition("://")[2]
        parse_url(f"postgresql://{place}" if place else "://", variable="DAGSTER_PG_URL")
    else:
        place = _embedded_url(settings, DAGSTER_DATABASE).partition("://")[2]
    return f"postgresql+psycopg2://{place}"


def create_embedded_schema(settings: Settings) -> None:
    """Give the embedded database its schema if it has none; one of another version is left alone.

    Without effect where the settings name a database: who started this process has prepared it.
    """
    if settings.database_url or settings.dagster_pg_url:
        return
    url = database_url(settings)
    with connect(url) as connection:
        missing = read_schema(connection).state is SchemaState.MISSING
    if missing:
        migrate(url)


def check_dagster_url(settings: Settings) -> None:
    """Check that Dagster's own storage can be reached, if the settings name it.

    Dagster itself would retry for 20 seconds, and log each attempt in English.

    Raises:
        DatabaseUnavailableError: It cannot; the message says why.
    """
    if settings.dagster_pg_url:
        place = dagster_url(settings).partition("://")[2]
        connect(f"postgresql://{place}", variable="DAGSTER_PG_URL").close()


def open_database(
    settings: Settings,
    *,
    min_connections: int = 1,
    guard: Callable[[], None] = lambda: None,
    login: str | None = None,
) -> Database:
    """Return an open pool over the application's database; the schema is checked, not migrated.

    Args:
        settings: Which database.
        min_connections: See `Database`.
        guard: See `Database`.
        login: Of the embedded server, which then must run. None: the owner, and it is started
            unless it runs.

    Raises:
        SchemaMismatchError: Its schema is not that of this product version.
        DatabaseError: It cannot be started or reached.
    """
    if login is None or settings.database_url:
        url = database_url(settings)
    else:
        url = embedded_server(settings).dsn(login=login)
    with connect(url) as connection:
        check_schema(connection)
    return database_at(settings, url, min_connections=min_connections, guard=guard).open()


def open_reads(settings: Settings, primary: Database) -> Readers | None:
    """Return the standbys of the settings, watched from now on; None if there are none.

    Args:
        settings: Which standbys.
        primary: Open.

    Raises:
        DatabaseUnavailableError: A URL in the settings is invalid.
    """
    urls = [url.get_secret_value() for url in settings.database_read_url]
    if not urls:
        return None
    for url in urls:
        parse_url(url, variable="DATABASE_READ_URL")
    standbys = [database_at(settings, url).as_(Access.READER) for url in urls]
    primary = primary.as_(Access.READER)
    return Readers(primary, standbys, staleness_s=STALENESS_S).open()


def _server(settings: Settings) -> EmbeddedServer:
    if settings.rag_home.exists():
        settings.ensure_home()  # It exists already; this only reports that it cannot be used.
    return EmbeddedServer(settings.rag_home, binaries=settings.rag_postgres_bin)


def _embedded_url(settings: Settings, name: str) -> str:
    settings.ensure_home()
    server = embedded_server(settings)
    server.up()
    server.ensure_database(name)
    return server.dsn(name)
