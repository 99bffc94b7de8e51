"""What a database may lack: real cases, each refused in Spanish before anything is written."""

import shutil
import socket
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from rag_resources.core.errors import (
    DatabaseError,
    DatabaseNotReadyError,
    DatabaseUnavailableError,
)
from rag_resources.database import binaries, migrations
from rag_resources.database.migrations import migrate
from rag_resources.database.server import EmbeddedServer

SECRET = "sesamo-S3creto"

CreateDatabase = Callable[..., str]


def refusal(url: str, kind: type[DatabaseError] = DatabaseNotReadyError) -> str:
    """Return the message of a refusal, which never tells the URL nor the password."""
    with pytest.raises(kind) as caught:
        migrate(url)
    shown = "".join(traceback.format_exception(caught.value))
    assert SECRET not in shown
    assert "://" not in shown or "postgresql://usuario:contraseña@" in shown
    return caught.value.message


def execute(url: str, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def is_untouched(url: str) -> bool:
    """Whether a database has neither tables nor an extension of ours."""
    ours = execute(
        url,
        "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace"
        " UNION ALL SELECT extname FROM pg_extension WHERE extname = 'vector'",
    )
    return ours == []


@pytest.fixture
def role(create_database: CreateDatabase) -> Iterator[str]:
    """A user without any rights of its own; its databases are dropped before it."""
    name, url = f"role_{uuid4().hex}", create_database()
    execute(url, f"CREATE ROLE {name} LOGIN PASSWORD '{SECRET}'")
    yield name
    execute(url, f"DROP ROLE {name}")


@pytest.fixture
def server_without_vector() -> Iterator[EmbeddedServer]:
    """A second server, whose installation has no pgvector."""
    folder = Path(tempfile.mkdtemp(prefix="rag-test-", dir="/tmp"))
    folder.chmod(0o755)
    found = binaries.find_binaries(None)
    binaries._copy_installation(found.parent, folder / "copy")
    copy = folder / "copy" / found.parent.parent.name / found.parent.name
    for file in [
        *copy.rglob("vector*.sql"),
        *copy.rglob("vector.control"),
        *copy.rglob("vector.so"),
    ]:
        file.unlink()
    instance = EmbeddedServer(folder / "home", binaries=copy)
    instance.up()
    yield instance
    instance.down()
    shutil.rmtree(folder)


# The way there


@pytest.mark.parametrize(
    "url",
    [
        "no es una URL",
        f"mysql://rag:{SECRET}@localhost/rag",
        f"postgresql://rag:{SECRET}%zz@localhost/rag",
        f"postgresql://rag:a@{SECRET}@localhost/rag",
        f"postgresql://rag:{SECRET}/b@localhost/rag",
        f"postgresql://rag:1/{SECRET}@localhost/rag",
    ],
)
def test_bad_url(url: str) -> None:
    """A URL that is invalid or has an unescaped password is reported but not shown."""
    message = refusal(url, DatabaseUnavailableError)
    assert message.startswith("DATABASE_URL no es válida")


def test_unreachable_server() -> None:
    """Nobody listens on the port: the message says which, and what to check."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        message = refusal(
            f"postgresql://rag:{SECRET}@127.0.0.1:{port}/rag", DatabaseUnavailableError
        )
    assert str(port) in message
    assert "Comprueba que el servidor está en marcha" in message


def test_unknown_host() -> None:
    """A name that does not resolve is in the message."""
    message = refusal(f"postgresql://rag:{SECRET}@servidor.invalid/rag", DatabaseUnavailableError)
    assert "servidor.invalid" in message


def test_wrong_password(server: EmbeddedServer) -> None:
    """The user is named, the password is not."""
    parts = conninfo_to_dict(server.dsn("postgres"))
    url = f"postgresql://rag:{SECRET}@{parts['host']}:{parts['port']}/postgres"
    assert "rechaza el usuario «rag»" in refusal(url, DatabaseUnavailableError)


def test_missing_database(server: EmbeddedServer) -> None:
    """A database that does not exist is named."""
    message = refusal(server.dsn("no_existe"), DatabaseUnavailableError)
    assert "«no_existe»" in message


# The server


def test_old_postgres(create_database: CreateDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    """The version found and the version needed are both in the message."""
    url = create_database()
    monkeypatch.setattr(migrations, "MIN_POSTGRES", 99)
    message = refusal(url)
    assert "hace falta la versión 99" in message
    with psycopg.connect(url) as connection:
        assert f"PostgreSQL {connection.info.server_version // 10_000};" in message
    assert is_untouched(url)


def test_old_pgvector(create_database: CreateDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    """An extension that is too old has to be updated."""
    url = create_database()
    execute(url, "CREATE EXTENSION vector")
    monkeypatch.setattr(migrations, "MIN_PGVECTOR", (0, 99))
    message = refusal(url)
    (installed,) = execute(url, "SELECT extversion FROM pg_extension WHERE extname = 'vector'")[0]
    assert f"pgvector {installed}; hace falta 0.99" in message
    assert "ALTER EXTENSION vector UPDATE" in message


def test_server_without_vector(server_without_vector: EmbeddedServer) -> None:
    """If the server lacks pgvector, the message says so: no database on it can be used."""
    url = server_without_vector.dsn("postgres")
    assert "no tiene la extensión pgvector" in refusal(url)
    assert is_untouched(url)


# The rights


def test_user_who_may_not_create_the_extension(create_database: CreateDatabase, role: str) -> None:
    """An administrator creates the extension once; then the user needs no more rights."""
    url = create_database()
    execute(url, f"GRANT CREATE ON SCHEMA public TO {role}")
    own = make_conninfo(url, user=role, password=SECRET)
    message = refusal(own)
    assert "CREATE EXTENSION vector;" in message
    assert str(conninfo_to_dict(url)["dbname"]) in message
    assert is_untouched(url)

    execute(url, "CREATE EXTENSION vector")
    assert migrate(own) != []
    execute(url, f"DROP OWNED BY {role}")


def test_user_who_may_not_create_tables(create_database: CreateDatabase, role: str) -> None:
    """The command that an administrator has to run is in the message."""
    url = create_database()
    execute(url, "CREATE EXTENSION vector")
    message = refusal(make_conninfo(url, user=role, password=SECRET))
    assert f"GRANT CREATE ON SCHEMA public TO {role};" in message


# The text


def test_database_that_takes_signs_for_letters(create_database: CreateDatabase) -> None:
    """With LC_CTYPE "C" the question "¿qué?" would be the one word "¿qué"."""
    url = create_database("LC_CTYPE 'C'")
    assert "LC_CTYPE 'C.UTF-8' TEMPLATE template0" in refusal(url)
    assert is_untouched(url)


def test_database_of_another_encoding(create_database: CreateDatabase) -> None:
    """What notes hold, emoji for one, cannot be stored in LATIN1."""
    url = create_database("ENCODING 'LATIN1' LOCALE 'C' LOCALE_PROVIDER libc")
    assert "en LATIN1; hace falta UTF8" in refusal(url)
    assert is_untouched(url)
