"""Nobody waits for ever, and each refusal has its sentence."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from rag_resources.core.errors import (
    DatabaseError,
    DatabaseUnavailableError,
)
from rag_resources.database import pool
from rag_resources.database.migrations import connect
from rag_resources.database.pool import Database
from rag_resources.database.server import EmbeddedServer
from rag_resources.languages.messages import _
from tests.command_line import Outcome, call_rag, isolate

LOCK_TIMEOUT_S = 3
PROGRAM = "somebody else"

Rag = Callable[..., Outcome]


@pytest.fixture
def locked(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """URL of a database whose notes another session has locked; our sessions wait briefly."""
    monkeypatch.setattr(pool, "LOCK_TIMEOUT", f"{LOCK_TIMEOUT_S}s")
    with psycopg.connect(database_url, application_name=PROGRAM) as other:
        other.execute("LOCK TABLE notes IN ACCESS EXCLUSIVE MODE")
        yield database_url
        other.close()


@pytest.fixture
def rag(
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> Rag:
    """Call `rag` on the test's database."""
    isolate(monkeypatch, tmp_path, DATABASE_URL=database_url)

    def call(*arguments: str) -> Outcome:
        return call_rag(monkeypatch, capsys, *arguments)

    return call


@pytest.mark.parametrize("command", [["status"], ["migration", "status"], ["ingest", "."]])
def test_a_command_stops_waiting(locked: str, rag: Rag, tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "nota.md").write_text("Una nota cualquiera.", "utf-8")
    begun = time.monotonic()
    called = rag(*command)
    assert called.code == 1, called.out
    assert "Se ha dejado de esperar" in called.err
    assert time.monotonic() - begun < LOCK_TIMEOUT_S + 20


def test_a_read_only_database_is_called_so(database: Database) -> None:
    def write() -> None:
        with database.transaction() as connection:
            connection.execute("SET TRANSACTION READ ONLY")
            connection.execute("DELETE FROM notes")

    with pytest.raises(DatabaseError) as refused:
        write()
    assert refused.value.message == _(
        "The database is read-only (perhaps it is a standby, or default_transaction_read_only is "
        "on). Nothing was changed: use a server in DATABASE_URL that accepts writes."
    )


def test_a_server_without_free_connections_is_not_said_to_be_down(
    server: EmbeddedServer, database_url: str
) -> None:
    role = "few_connections"
    with psycopg.connect(server.dsn("postgres"), autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'x' CONNECTION LIMIT 1")
        try:
            url = _as_role(database_url, role)
            with closing(psycopg.connect(url)), pytest.raises(DatabaseUnavailableError) as refused:
                connect(url)
            assert refused.value.message == _(
                "The database server runs, but accepts no more connections: all are taken. Close "
                "those that are not needed or raise max_connections, and try again."
            )
            with closing(psycopg.connect(url)), pytest.raises(DatabaseUnavailableError) as refused:
                Database(url).open()
            assert refused.value.message == _(
                "The database server runs, but accepts no more connections: all are taken. Close "
                "those that are not needed or raise max_connections, and try again."
            )
        finally:
            admin.execute(f"DROP ROLE {role}")


def _as_role(url: str, role: str) -> str:
    scheme, _, place = url.partition("://")
    return f"{scheme}://{role}:x@{place.partition('@')[2]}"
