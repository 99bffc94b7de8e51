"""A database with another schema version: programs that only use it change nothing."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from rag_resources.database.queries import SQL
from rag_resources.database.schema import schema_version
from rag_resources.languages.messages import _
from rag_resources.packaged import product_version
from tests.command_line import Outcome, call_rag, isolate

FUTURE = "9999_future"
LATER = "9999_later"
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


def later_product(folder: Path) -> None:
    """Put a later version of the product, with one migration more, into a folder."""
    (folder / "sql").mkdir(parents=True)
    for path in SQL.parent.iterdir():
        if path.name != "sql":
            (folder / path.name).symlink_to(path)
    for path in SQL.iterdir():
        if path.name != "migrations":
            (folder / "sql" / path.name).symlink_to(path)
    shutil.copytree(SQL / "migrations", folder / "sql" / "migrations")
    (folder / "sql" / "migrations" / f"{LATER}.sql").write_text("CREATE TABLE later (id int);")


@pytest.fixture
def rag(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Callable[..., Outcome]:
    """Call the command line on a database, in a folder with notes."""
    isolate(monkeypatch, tmp_path)
    (tmp_path / "notas").mkdir()
    (tmp_path / "notas" / "una.md").write_text("El ascensor no funciona desde el lunes.", "utf-8")

    def call(url: str, *arguments: str) -> Outcome:
        monkeypatch.setenv("DATABASE_URL", url)
        return call_rag(monkeypatch, capsys, *arguments)

    return call


Rag = Callable[..., Outcome]


def test_a_newer_schema_is_refused_by_the_names_of_both_versions(
    rag: Rag, database_url: str
) -> None:
    """By every command, `rag up` included; `rag status` says it too."""
    become_newer(database_url)
    before = state(database_url)
    said = _(
        "The database has the schema {found}, newer than that of this program (version {product}, "
        "schema {expected}). Nothing was changed: install the version of the program that brought "
        "it up to date, or a later one."
    ).format(found=FUTURE, expected=schema_version(), product=product_version())
    assert FUTURE in said
    assert schema_version() in said
    for arguments in (*READERS, ("up",)):
        done = rag(database_url, *arguments)
        assert (done.code, done.err.strip()) == (1, f"Error: {said}"), arguments
    assert said in rag(database_url, "status").out
    assert state(database_url) == before


def test_an_older_schema_is_migrated_by_who_asks_for_it_only(
    rag: Rag, database_url: str, tmp_path: Path
) -> None:
    """Until then nothing of the database is changed, and both versions are named."""
    later_product(tmp_path / "rag_resources")

    def later_rag(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "rag_resources.cli", *arguments],
            cwd=tmp_path,
            env={**os.environ, "DATABASE_URL": database_url},
            capture_output=True,
            text=True,
            check=False,
        )

    before = state(database_url)
    refused = later_rag("ingest", "notas")
    assert refused.returncode == 1
    assert f"tiene el esquema {schema_version()} y este programa" in refused.stderr
    assert f"usa el {LATER}; faltan: {LATER}." in refused.stderr
    status = later_rag("migration", "status", "--json")
    assert json.loads(status.stdout)["database"] == "schemaOlder"
    assert state(database_url) == before
    assert later_rag("up").returncode == 0
    done = later_rag("ingest", "notas")
    assert done.returncode == 0, done.stderr
    assert rag(database_url, "ingest", "notas").code == 1


def test_a_schema_from_before_the_baseline_is_refused(rag: Rag, database_url: str) -> None:
    """In one sentence, which says how its notes get into a new database."""
    execute(database_url, "UPDATE _yoyo_migration SET migration_id = '0066_faster_words'")
    before = state(database_url)
    said = _(
        "The database has the schema {found}, from before the first release: export it with “rag "
        "notes export” of the program that made it, and read the file with “rag ingest” into a "
        "new database."
    ).format(found="0066_faster_words")
    for arguments in (("ingest", "notas"), ("up",)):
        done = rag(database_url, *arguments)
        assert (done.code, done.err.strip()) == (1, f"Error: {said}"), arguments
    assert state(database_url) == before


def test_a_database_without_schema_gets_none_by_being_read(
    rag: Rag, create_database: Callable[..., str]
) -> None:
    """It is created by `rag up`, after which the commands work."""
    url = create_database()
    for arguments in READERS:
        done = rag(url, *arguments)
        assert done.code == 1, arguments
        assert (
            _(
                "The database does not have this program's schema yet ({expected}). Nothing was "
                "changed: create it with “rag up” or “make run”."
            ).format(expected=schema_version())
            in done.err
        )
    assert state(url) == ([], [])
    assert rag(url, "up").code == 0
    done = rag(url, "ingest", "notas")
    assert done.code == 0, done.err
