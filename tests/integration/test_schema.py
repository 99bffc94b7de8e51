"""A database with another schema version: programs that only use it change nothing."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from rag_resources.core.errors import SchemaMismatchError
from rag_resources.core.messages import Message
from rag_resources.database.locate import open_database
from rag_resources.database.migrations import migrate
from rag_resources.database.schema import known_migrations, schema_version
from rag_resources.packaged import product_version
from rag_resources.settings import load_settings

FUTURE = "9999_future"
READERS = (
    ("retrieve", "¿Qué pasó con el ascensor?"),
    ("ingest", "notas"),
    ("golden", "list"),
    ("report",),
)


def execute(url: str, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def state(url: str) -> tuple[list[object], list[object]]:
    """Every relation of a database, and the migrations it has had."""
    relations = execute(url, "SELECT relname FROM pg_class WHERE relnamespace = 2200 ORDER BY 1")
    has_log = ("_yoyo_migration",) in relations
    applied = execute(url, "SELECT * FROM _yoyo_migration ORDER BY 1") if has_log else []
    return list(relations), list(applied)


def become_newer(url: str) -> None:
    """Let a later version of the product have migrated a database."""
    execute(
        url,
        "INSERT INTO _yoyo_migration (migration_hash, migration_id, applied_at_utc)"
        f" VALUES ('{FUTURE}', '{FUTURE}', now())",
    )


def become_older(url: str) -> None:
    """Let the latest migration not have been applied."""
    execute(url, f"DELETE FROM _yoyo_migration WHERE migration_id = '{schema_version()}'")


@pytest.fixture
def rag(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Call the command line in a process of its own, on a database."""
    (tmp_path / "notas").mkdir()
    (tmp_path / "notas" / "una.md").write_text("El ascensor no funciona desde el lunes.", "utf-8")

    def call(url: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "rag_resources.cli", *arguments],
            cwd=tmp_path,
            env={**os.environ, "DATABASE_URL": url, "RAG_HOME": str(tmp_path / "home")},
            capture_output=True,
            text=True,
            check=False,
        )

    return call


Rag = Callable[..., subprocess.CompletedProcess[str]]


def test_a_newer_schema_is_refused_by_the_names_of_both_versions(
    rag: Rag, database_url: str
) -> None:
    """By every command, `rag up` included; `rag status` says it too."""
    become_newer(database_url)
    before = state(database_url)
    said = Message.SCHEMA_NEWER.format(
        found=FUTURE, expected=schema_version(), product=product_version()
    )
    assert FUTURE in said
    assert schema_version() in said
    for arguments in (*READERS, ("up",)):
        done = rag(database_url, *arguments)
        assert (done.returncode, done.stderr.strip()) == (1, f"Error: {said}"), arguments
    assert said in rag(database_url, "status").stdout
    assert state(database_url) == before


def test_an_older_schema_is_migrated_by_who_asks_for_it_only(
    rag: Rag, create_database: Callable[..., str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    url = create_database()
    migrate(url)
    become_older(url)
    before = state(url)
    expected = known_migrations()
    for arguments in READERS:
        done = rag(url, *arguments)
        assert done.returncode == 1, arguments
        assert f"tiene el esquema {expected[-2]} y este programa" in done.stderr
        assert f"usa el {expected[-1]}; faltan: {expected[-1]}." in done.stderr
        assert "rag up" in done.stderr
    monkeypatch.setenv("DATABASE_URL", url)
    monkeypatch.setenv("RAG_HOME", str(tmp_path / "home"))
    with pytest.raises(SchemaMismatchError) as refused:
        open_database(load_settings())
    assert refused.value.context == {"found": expected[-2], "expected": expected[-1]}
    assert state(url) == before


def test_a_database_without_schema_gets_none_by_being_read(
    rag: Rag, create_database: Callable[..., str]
) -> None:
    """It is created by `rag up`, after which the commands work."""
    url = create_database()
    for arguments in READERS:
        done = rag(url, *arguments)
        assert done.returncode == 1, arguments
        assert Message.SCHEMA_MISSING.format(expected=schema_version()) in done.stderr
    assert state(url) == ([], [])
    assert rag(url, "up").returncode == 0
    done = rag(url, "ingest", "notas")
    assert done.returncode == 0, done.stderr
