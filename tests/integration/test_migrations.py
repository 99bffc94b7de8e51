"""The migrations: on an empty or existing Brain Sync database, concurrent, and interrupted."""

import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from rag_resources.core.errors import DatabaseNotReadyError, DatabaseUnavailableError
from rag_resources.database import migrations
from rag_resources.database.migrations import migrate
from rag_resources.database.queries import SQL, queries

REPOSITORY = Path(__file__).parents[2]
ALL_MIGRATIONS = sorted(path.stem for path in (SQL / "migrations").glob("*.sql"))
DIMENSION = 768
LONG = " ".join(f"canción{number} año" for number in range(20_000))[:300_000]
WEIRD = [
    "😀 emoji 👩‍👩‍👧 🇪🇸",
    "",
    "áéíóú ñ ü ¿qué? ¡olé! «—»",
    "una\r\nlínea\r\n",
    "'; DROP--",
    " ",
    LONG,
]

LEGACY = """
CREATE TABLE notes (
    id uuid PRIMARY KEY, content text, embedding vector(768), created_at timestamptz
)
"""

CreateDatabase = Callable[..., str]
Rows = list[tuple[Any, ...]]

# Everything a migration can make, but yoyo's own tables and what belongs to an extension.
CATALOGUE = {
    "relations": """
        SELECT c.relname, c.relkind, c.relpersistence, c.reloptions, pg_get_partkeydef(c.oid)
        FROM pg_class AS c WHERE c.relnamespace = 'public'::regnamespace
    """,
    "columns": """
        SELECT c.relname, row_number() OVER (PARTITION BY c.oid ORDER BY a.attnum), a.attname,
            format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attgenerated, a.attidentity,
            pg_get_expr(d.adbin, d.adrelid), a.attstorage
        FROM pg_class AS c
        JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        LEFT JOIN pg_attrdef AS d ON d.adrelid = c.oid AND d.adnum = a.attnum
        WHERE c.relnamespace = 'public'::regnamespace
    """,
    "constraints": """
        SELECT conrelid::regclass::text, conname, contype, pg_get_constraintdef(oid)
        FROM pg_constraint WHERE connamespace = 'public'::regnamespace
    """,
    "indexes": "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'",
    "triggers": """
        SELECT tgrelid::regclass::text, tgname, pg_get_triggerdef(oid) FROM pg_trigger
        WHERE NOT tgisinternal
    """,
    "functions": """
        SELECT p.proname, pg_get_functiondef(p.oid) FROM pg_proc AS p
        WHERE p.pronamespace = 'public'::regnamespace AND p.prokind <> 'a' AND NOT EXISTS (
            SELECT FROM pg_depend AS d WHERE d.objid = p.oid AND d.deptype = 'e')
    """,
    "policies": "SELECT tablename, policyname, cmd, qual, with_check FROM pg_policies",
    "row security": """
        SELECT c.oid::regclass::text, c.relrowsecurity, c.relforcerowsecurity FROM pg_class AS c
        WHERE c.relnamespace = 'public'::regnamespace
    """,
    "first row": """
        SELECT 'index_state', to_jsonb(s) - '{refreshed_at,database_id}'::text[]
        FROM index_state AS s
    """,
}


def fetch(url: str, statement: str, *parameters: object) -> Rows:
    """Run one statement on a connection of its own."""
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement, parameters or None)
        return cursor.fetchall() if cursor.description else []


def catalogue(url: str, *, parts: Iterable[str] = CATALOGUE) -> set[str]:
    with psycopg.connect(url, autocommit=True) as connection:
        return {
            f"{part}: {row}"
            for part in parts
            for row in connection.execute(CATALOGUE[part])
            if "yoyo" not in str(row[0])
        }


def relations(url: str) -> set[str]:
    return {row[0] for row in fetch(url, CATALOGUE["relations"])}


def legacy_database(create_database: CreateDatabase, table: str = LEGACY) -> str:
    """Return the URL of a database with an empty legacy table."""
    url = create_database()
    fetch(url, "CREATE EXTENSION vector")
    fetch(url, table)
    return url


def fill(url: str, *, count: int = 300, with_vectors: bool = True) -> None:
    """Write legacy notes: some plain, some weird, some without vector or time."""
    rng = random.Random(7)
    start = datetime(2024, 11, 1, 12, 0, 0, 123456, tzinfo=UTC)
    rows = []
    for number in range(count):
        content = WEIRD[number] if number < len(WEIRD) else f"Nota {number}: reunión del día."
        vector = str([round(rng.uniform(-1, 1), 4) for _ in range(DIMENSION)])
        created_at = start + timedelta(hours=7 * number)
        rows.append(
            (
                UUID(int=rng.getrandbits(128), version=4),
                content,
                vector if with_vectors and number % 10 != 3 else None,
                None if number % 50 == 11 else created_at,
            )
        )
    embedding = ", embedding" if with_vectors else ""
    value = ", %s::vector" if with_vectors else ""
    with psycopg.connect(url, options="-c timezone=UTC") as connection:
        connection.cursor().executemany(
            f"INSERT INTO notes (id, content, created_at{embedding}) VALUES (%s, %s, %s{value})",
            [(i, c, t, v) if with_vectors else (i, c, t) for i, c, v, t in rows],
        )


def contents(url: str) -> dict[UUID, str]:
    return dict(fetch(url, "SELECT id, content FROM notes"))


def times(url: str) -> dict[UUID, datetime]:
    return dict(fetch(url, "SELECT id, created_at FROM notes WHERE created_at IS NOT NULL"))


# From nothing


def test_schema_for_reading_equals_the_migrations(
    create_database: CreateDatabase, database_url: str
) -> None:
    """`sql/schema.sql` makes what the migrations make, to the last default."""
    url = create_database()
    fetch(url, "CREATE EXTENSION vector")
    fetch(url, (SQL / "schema.sql").read_text("utf-8"))
    with psycopg.connect(url, autocommit=True) as connection:
        migrations.isolate_tenants(connection)
    for_reading, migrated = catalogue(url), catalogue(database_url)
    assert sorted(for_reading ^ migrated) == []


def test_empty_database_is_migrated_once(create_database: CreateDatabase) -> None:
    """The first run applies everything, extension included; the second one finds nothing to do."""
    url = create_database()
    assert migrate(url) == ALL_MIGRATIONS
    before = catalogue(url)
    assert migrate(url) == []
    assert catalogue(url) == before


def test_user_with_a_schema_and_a_password_of_signs(create_database: CreateDatabase) -> None:
    """A user without rights in `public` gets all tables in a schema of the user's own."""
    url, role = create_database(), f"role_{uuid4().hex}"
    fetch(url, f"CREATE ROLE {role} LOGIN PASSWORD 'a@b:/?#%%&= ñ'")
    try:
        fetch(url, "CREATE EXTENSION vector")
        fetch(url, f"CREATE SCHEMA {role} AUTHORIZATION {role}")
        password = "a%40b%3A%2F%3F%23%25%25%26%3D%20%C3%B1"
        parts = psycopg.conninfo.conninfo_to_dict(url)
        own = f"postgresql://{role}:{password}@{parts['host']}:{parts['port']}/{parts['dbname']}"
        assert migrate(own) == ALL_MIGRATIONS
        assert fetch(own, "SELECT to_regclass('chunks')::text") == [("chunks",)]
        assert fetch(url, "SELECT to_regclass('public.chunks')") == [(None,)]
    finally:
        fetch(url, f"DROP OWNED BY {role} CASCADE")
        fetch(url, f"DROP ROLE {role}")


# At once


def test_processes_at_once(create_database: CreateDatabase) -> None:
    """Two processes may start on an empty database at the same moment."""
    url = create_database()
    processes = [migrating(url) for _ in range(2)]
    assert [process.communicate(timeout=60)[1] for process in processes] == ["", ""]
    assert [process.returncode for process in processes] == [0, 0]
    assert migrate(url) == []


def test_waiting_for_another_process_ends(
    create_database: CreateDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that gets no turn in time gets an error that says so."""
    monkeypatch.setattr(migrations, "LOCK_TIMEOUT_S", 1)
    url = create_database()
    with psycopg.connect(url, autocommit=True) as other:
        queries().lock_migrations(other)
        with pytest.raises(DatabaseUnavailableError, match="Otro proceso"):
            migrate(url)
    assert migrate(url) == ALL_MIGRATIONS


# Adoption


def test_times_without_zone_are_utc(create_database: CreateDatabase) -> None:
    """A `timestamp` column becomes `timestamptz`, whatever the time zone of the database."""
    url = legacy_database(create_database, LEGACY.replace("timestamptz", "timestamp"))
    fetch(url, f"ALTER DATABASE {database_name(url)} SET timezone = 'America/Bogota'")
    fill(url, count=60)
    before = times(url)
    migrate(url)
    assert times(url).items() >= {n: t.replace(tzinfo=UTC) for n, t in before.items()}.items()


@pytest.mark.parametrize("variant", ["no embedding column", "embeddings all null", "no rows"])
def test_database_without_vectors_is_adopted(create_database: CreateDatabase, variant: str) -> None:
    """There need not be a column of old vectors, nor anything in it."""
    without = variant == "no embedding column"
    table = LEGACY.replace("embedding vector(768),", "") if without else LEGACY
    url = legacy_database(create_database, table)
    fill(url, count=0 if variant == "no rows" else 30, with_vectors=not without)
    if not without:
        fetch(url, "UPDATE notes SET embedding = NULL")
    before = contents(url)
    assert migrate(url) == ALL_MIGRATIONS
    assert contents(url) == before
    assert fetch(url, "SELECT name FROM embedding_models") == []


def test_what_else_the_old_table_has_is_kept(create_database: CreateDatabase) -> None:
    """Unknown columns and indexes, even of a usual name, stay; a null content is empty."""
    url = legacy_database(
        create_database,
        "CREATE TABLE notes (id uuid PRIMARY KEY, content varchar, embedding halfvec(3),"
        " created_at timestamptz, mood text, title text NOT NULL DEFAULT 'x')",
    )
    fetch(url, "CREATE INDEX ON notes (created_at)")
    fetch(url, "CREATE INDEX ON notes USING hnsw (embedding halfvec_cosine_ops)")
    note = uuid4()
    fetch(url, "INSERT INTO notes VALUES (%s, NULL, '[1,2,3]', now(), 'bien', 'Mío')", note)
    before = catalogue(url, parts=["indexes"])
    assert migrate(url) == ALL_MIGRATIONS
    assert catalogue(url, parts=["indexes"]) > before
    assert fetch(url, "SELECT id, content, mood, title FROM notes") == [(note, "", "bien", "Mío")]
    assert fetch(url, "SELECT embedding::text FROM notes") == [("[1,2,3]",)]


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        (LEGACY.replace("uuid", "bigint"), "notes.id: se espera uuid PRIMARY KEY, hay bigint"),
        (LEGACY.replace("uuid", "text"), "notes.id: se espera uuid PRIMARY KEY, hay text"),
        (LEGACY.replace(" PRIMARY KEY", ""), "notes.id: se espera uuid PRIMARY KEY, hay uuid"),
        (LEGACY.replace("content text, ", ""), "notes.content: se espera text, hay nada"),
        (LEGACY.replace("content text", "content jsonb"), "notes.content: se espera text, hay js"),
        (LEGACY.replace(", created_at timestamptz", ""), "notes.created_at: se espera timestamptz"),
        (LEGACY.replace("vector(768)", "real[]"), "notes.embedding: se espera vector, hay real[]"),
        (LEGACY.replace("embedding", "title text, embedding"), "notes.title: se espera text NOT N"),
        (
            LEGACY.replace("content", "section_index int, content"),
            "notes.section_index: se espera -",
        ),
        ("CREATE VIEW notes AS SELECT 1 AS id", "notes: se espera table, hay view notes"),
    ],
)
def test_another_table_of_that_name_is_left_alone(
    create_database: CreateDatabase, table: str, problem: str
) -> None:
    """A table that is not Brain Sync's is refused by name before anything is written."""
    url = create_database()
    if "vector(" in table:
        fetch(url, "CREATE EXTENSION vector")
    fetch(url, table)
    parts = ["relations", "columns", "constraints", "indexes", "triggers"]
    before = (
        catalogue(url, parts=parts),
        relations(url),
        fetch(url, "SELECT extname FROM pg_extension"),
    )
    with pytest.raises(DatabaseNotReadyError) as caught:
        migrate(url)
    assert problem in caught.value.message
    assert "No se ha cambiado nada" in caught.value.message
    after = (
        catalogue(url, parts=parts),
        relations(url),
        fetch(url, "SELECT extname FROM pg_extension"),
    )
    assert after == before


def test_table_of_another_user_is_left_alone(create_database: CreateDatabase) -> None:
    """Only the owner of a table can change it: who the two are is in the message."""
    url, role = legacy_database(create_database), f"role_{uuid4().hex}"
    fetch(url, f"CREATE ROLE {role} LOGIN PASSWORD 'clave'")
    try:
        fetch(url, f"GRANT CREATE ON SCHEMA public TO {role}")
        with pytest.raises(DatabaseNotReadyError, match=f"owner {role}, hay owner rag"):
            migrate(psycopg.conninfo.make_conninfo(url, user=role, password="clave"))
    finally:
        fetch(url, f"DROP OWNED BY {role}")
        fetch(url, f"DROP ROLE {role}")


# Cut short


def test_failure_in_the_middle_leaves_nothing_half_done(create_database: CreateDatabase) -> None:
    """A table in the way stops the migration, which is undone whole and works once it is gone."""
    url = legacy_database(create_database)
    fill(url, count=20)
    fetch(url, "CREATE TABLE chunks (whose integer)")
    parts = ["relations", "columns", "constraints", "indexes", "triggers", "functions"]
    before = catalogue(url, parts=parts)
    with pytest.raises(DatabaseNotReadyError) as caught:
        migrate(url)
    assert "«" in caught.value.message
    assert '"chunks" already exists' in caught.value.message
    assert "No se ha cambiado nada" in caught.value.message
    assert catalogue(url, parts=parts) == before
    fetch(url, "DROP TABLE chunks")
    assert migrate(url) == ALL_MIGRATIONS


def test_data_that_does_not_fit_is_reported(create_database: CreateDatabase) -> None:
    """An unforeseen failure is reported in Spanish with PostgreSQL's message, and rolled back."""
    url = legacy_database(create_database)
    fetch(url, "INSERT INTO notes VALUES (%s, NULL, NULL, now())", uuid4())
    fetch(url, "ALTER TABLE notes ADD CONSTRAINT never_empty CHECK (content <> '')")
    with pytest.raises(DatabaseNotReadyError, match=r"never_empty.*No se ha cambiado nada"):
        migrate(url)
    assert "chunks" not in relations(url)


def test_killed_process_leaves_nothing_half_done(create_database: CreateDatabase) -> None:
    """After a kill in the middle of a migration the next run starts over, without a stale lock."""
    url = legacy_database(create_database)
    fill(url, count=20)
    before = contents(url)
    with psycopg.connect(url) as other:
        other.execute("LOCK TABLE notes IN ACCESS EXCLUSIVE MODE")
        process = migrating(url)
        try:
            wait_until_blocked(url)
        finally:
            process.kill()
            process.communicate(timeout=30)
    assert migrate(url) == ALL_MIGRATIONS
    assert contents(url) == before


def test_stale_lock_of_yoyo_is_no_obstacle(create_database: CreateDatabase) -> None:
    """The lock row of a process that died is taken away: nobody else can be migrating."""
    url = create_database()
    migrate(url)
    fetch(url, "INSERT INTO yoyo_lock (locked, ctime, pid) VALUES (1, now(), 1)")
    assert migrate(url) == []


def database_name(url: str) -> str:
    return str(psycopg.conninfo.conninfo_to_dict(url)["dbname"])


def migrating(url: str) -> subprocess.Popen[str]:
    """Another process that migrates and ends."""
    code = "import sys; from rag_resources.database.migrations import migrate; migrate(sys.argv[1])"
    return subprocess.Popen(
        [sys.executable, "-c", code, url],
        stderr=subprocess.PIPE,
        text=True,
        cwd=REPOSITORY,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
    )


def wait_until_blocked(url: str) -> None:
    """Wait until somebody waits for a lock on the notes."""
    waiting = "SELECT 1 FROM pg_locks WHERE relation = 'notes'::regclass AND NOT granted"
    tick = threading.Event()
    for _ in range(500):
        if fetch(url, waiting):
            return
        tick.wait(0.01)
    pytest.fail("nobody waits for the table")
