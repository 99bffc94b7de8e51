"""Row-level security: what the transactions of a tenant see and do, whatever their SQL."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from rag_resources.api.tenants import Tenants
from rag_resources.database.migrations import migrate
from rag_resources.database.pool import Access, Database
from rag_resources.database.server import API_LOGIN, EmbeddedServer
from rag_resources.settings import load_settings
from rag_resources.store.status import Isolation, read_status
from tests.api_server import api_login
from tests.corpus import Corpus, Draft

SECRET = "El código de la caja fuerte de Blas es zarapito."
OWN = "El ascensor de la escalera no funciona desde el lunes."
CORPUS = [Draft(OWN), Draft("Lola hizo mermelada de naranja amarga."), Draft(SECRET, tenant="blas")]

NOBODYS = {
    "embedding_models": "the models of all",
    "graph_parts": "which parts of the graph are made",
    "embedding_work": "how fast vectors are made",
    "index_state": "which database this is",
    "migration_holds": "whether the migration may go on",
}
"""Tables that hold nothing of anybody's. A new table is either listed here or has a tenant_id."""

Writer = psycopg.Connection[Any]


class Isolated(NamedTuple):
    """A corpus of two tenants, and who may log in to its database."""

    corpus: Corpus
    superuser_url: str
    owner_url: str


@pytest.fixture
def tenant() -> str:
    return "ana"


@pytest.fixture
def corpus(database: Database) -> Corpus:
    made = Corpus(database)
    made.fill(CORPUS)
    made.cut()
    return made


@pytest.fixture
def without_superuser(
    create_database: Callable[..., str], database_url: str, tenant: str
) -> Iterator[Isolated]:
    """The same corpus, migrated by a login with CREATEROLE only."""
    login = f"login_{uuid4().hex}"
    with psycopg.connect(database_url, autocommit=True) as superuser:
        superuser.execute(f"CREATE ROLE {login} LOGIN CREATEROLE PASSWORD 'clave'")
        superuser.execute(f"GRANT rag_reader, rag_writer TO {login}")
    url = create_database(f"OWNER {login}")
    with psycopg.connect(url, autocommit=True) as superuser:
        superuser.execute("CREATE EXTENSION vector")
    own = psycopg.conninfo.make_conninfo(url, user=login, password="clave")
    try:
        migrate(own)
        with Database(own, tenant=tenant) as database:
            made = Corpus(database)
            made.fill(CORPUS)
            made.cut()
            yield Isolated(made, url, own)
    finally:
        with psycopg.connect(url, autocommit=True) as superuser:
            superuser.execute(f"REASSIGN OWNED BY {login} TO CURRENT_USER")
            superuser.execute(f"DROP OWNED BY {login}")
            superuser.execute(f"ALTER DATABASE {superuser.info.dbname} OWNER TO CURRENT_USER")
            superuser.execute(f"DROP ROLE {login}")


@pytest.fixture(params=["a superuser migrated", "no superuser migrated"])
def isolated(request: pytest.FixtureRequest) -> Isolated:
    """The corpus on either kind of server."""
    if request.param == "no superuser migrated":
        found: Isolated = request.getfixturevalue("without_superuser")
        return found
    url = request.getfixturevalue("database_url")
    return Isolated(request.getfixturevalue("corpus"), url, url)


@pytest.fixture
def log_in(corpus: Corpus, database_url: str) -> Iterator[Callable[[str], Writer]]:
    """Connect as a login of one's own that is a member of one of the roles, and of nothing else."""
    opened: list[Writer] = []
    logins: list[str] = []

    def connected(role: str) -> Writer:
        login = f"login_{uuid4().hex}"
        logins.append(login)
        with psycopg.connect(database_url, autocommit=True) as owner:
            owner.execute(f"CREATE ROLE {login} LOGIN PASSWORD 'clave' IN ROLE {role}")
        own = psycopg.conninfo.make_conninfo(database_url, user=login, password="clave")
        opened.append(psycopg.connect(own, autocommit=True))
        return opened[-1]

    yield connected
    for connection in opened:
        connection.close()
    with psycopg.connect(database_url, autocommit=True) as owner:
        for login in logins:
            owner.execute(f"DROP OWNED BY {login}")
            owner.execute(f"DROP ROLE {login}")


def tables(connection: Writer) -> list[tuple[str, bool, bool, bool, bool]]:
    """Every table: its name, whether it has a tenant_id, a policy and forced row security."""
    return connection.execute(
        """
        SELECT
            c.relname,
            (SELECT bool_or(a.attname = 'tenant_id') FROM pg_attribute a WHERE a.attrelid = c.oid),
            EXISTS (SELECT FROM pg_policy AS p WHERE p.polrelid = c.oid AND p.polname = 'tenant'),
            c.relrowsecurity AND c.relforcerowsecurity,
            has_table_privilege('rag_reader', c.oid, 'SELECT')
        FROM pg_class AS c
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
            AND c.relname NOT LIKE '%yoyo%'
        ORDER BY c.relname
        """
    ).fetchall()


def test_every_table_is_isolated_or_nobodys(corpus: Corpus, database_url: str) -> None:
    """Partitions too; whoever adds a table to the schema has to decide."""
    with psycopg.connect(database_url) as connection:
        found = tables(connection)
    assert {"vectors_openai_hash_chunk", "vectors_openai_hash_window"} <= {row[0] for row in found}
    open_tables = {name for name, has_tenant, has_policy, forced, _ in found if not has_tenant}
    assert open_tables == set(NOBODYS)
    assert [
        name for name, has_tenant, *isolated, _ in found if has_tenant and not all(isolated)
    ] == []


def test_foreign_keys_lead_within_a_tenant(corpus: Corpus, database_url: str) -> None:
    """Row-level security does not apply to them. A span's page is of its document, which is."""
    with psycopg.connect(database_url) as connection:
        crossing = connection.execute(
            """
            SELECT k.conrelid::regclass::text, k.conname FROM pg_constraint AS k
            INNER JOIN pg_attribute AS a ON a.attrelid = k.conrelid AND a.attname = 'tenant_id'
            INNER JOIN pg_attribute AS p ON p.attrelid = k.confrelid AND p.attname = 'tenant_id'
            WHERE k.contype = 'f' AND NOT a.attnum = ANY(k.conkey)
            """
        ).fetchall()
    assert crossing == [("note_spans", "note_spans_document_id_page_number_fkey")]


@pytest.mark.parametrize("role", ["rag_reader", "rag_writer"])
def test_property_50_without_a_tenant_nothing_is_visible_and_with_one_only_its_own(
    corpus: Corpus, log_in: Callable[[str], Writer], role: str
) -> None:
    """In no table, partitions and statistics included, by any name of a tenant."""
    connection = log_in(role)
    readable = [
        name for name, has_tenant, *_, readable in tables(connection) if has_tenant and readable
    ]
    assert {"notes", "chunks", "lexeme_statistics", "golden_history"} <= set(readable)
    for tenant in (None, "", "nadie", "%", "ana' OR '1'='1"):
        with connection.transaction():
            if tenant is not None:
                connection.execute("SELECT set_config('rag.tenant', %s, TRUE)", [tenant])
            for name in readable:
                query = sql.SQL("SELECT count(*) FROM {} WHERE tenant_id <> ''")
                counted = connection.execute(query.format(sql.Identifier(name))).fetchone()
                assert counted == (0,), (name, tenant)
    with connection.transaction():
        connection.execute("SELECT set_config('rag.tenant', 'ana', TRUE)")
        for name in readable:
            query = sql.SQL("SELECT count(*) FROM {} WHERE tenant_id NOT IN ('', 'ana')")
            assert connection.execute(query.format(sql.Identifier(name))).fetchone() == (0,), name
        assert connection.execute("SELECT count(*) FROM notes").fetchone() == (2,)
        words = connection.execute("SELECT lexeme FROM lexeme_statistics").fetchall()
        assert ("ascensor",) in words
        assert ("zarapit",) not in words


ATTACKS = {
    "another role": "SET ROLE rag_writer",
    "the owner": "SELECT set_config('role', (SELECT tableowner FROM pg_tables LIMIT 1), TRUE)",
    "no row security": "SET LOCAL row_security = off; SELECT * FROM notes",
    "a policy dropped": "DROP POLICY tenant ON notes",
    "row security switched off": "ALTER TABLE notes DISABLE ROW LEVEL SECURITY",
    "a write": "UPDATE notes SET content = 'x'",
    "a deletion": "DELETE FROM chunks",
    "emptying": "TRUNCATE notes CASCADE",
    "the keys": "SELECT * FROM api_keys",
    "what months hold": "SELECT note_ids FROM month_contents",
}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS.keys())
def test_a_reader_cannot_become_anybody_else_nor_write(
    log_in: Callable[[str], Writer], attack: str
) -> None:
    connection = log_in("rag_reader")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute(f"SET rag.tenant = 'ana'; {attack}")


def test_the_login_of_the_api_cannot_become_the_owner(
    server: EmbeddedServer, corpus: Corpus, database_url: str
) -> None:
    """It is no superuser, and sees and writes what a tenant may that a transaction names."""
    with psycopg.connect(api_login(database_url), autocommit=True) as connection:
        assert connection.execute("SELECT count(*) FROM notes").fetchone() == (0,)
        for attack in (
            ATTACKS["the owner"],
            ATTACKS["a policy dropped"],
            ATTACKS["emptying"],
            ATTACKS["no row security"],
            "RESET ROLE; DROP TABLE notes",
            "INSERT INTO api_keys VALUES ('a')",
            "ALTER ROLE rag_api SUPERUSER",
            "COPY (SELECT 1) TO PROGRAM 'true'",
            "SELECT pg_read_file('PG_VERSION')",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(f"SET rag.tenant = 'ana'; {attack}")
    server.ensure_database("rag")
    migrate(server.dsn("rag"))
    tenants = Tenants(load_settings(rag_home=server.status().data_dir.parents[2]))
    with tenants.of("ana") as app, app.database.transaction() as own:
        assert app.indexing.pending() == {}
        row = own.execute("SELECT session_user, current_user, count(*) FROM notes").fetchone()
    tenants.close()
    assert row == (API_LOGIN, API_LOGIN, 0)


LEAKS = {
    "a cast": "SELECT * FROM notes WHERE content::integer = 1",
    "a division": "SELECT * FROM notes WHERE 1 / strpos(content, 'qq') = 1",
    "a cast of words": "SELECT * FROM chunks WHERE tsv::text::integer = 1",
    "a partition": "SELECT * FROM vectors_openai_hash_window WHERE embedding::text::integer = 1",
}


@pytest.mark.parametrize("leak", LEAKS.values(), ids=LEAKS.keys())
def test_no_error_tells_of_a_foreign_row(log_in: Callable[[str], Writer], leak: str) -> None:
    """A condition that fails on a row is not asked of a foreign one, in whatever plan."""
    connection = log_in("rag_reader")
    for planner in ("enable_seqscan", "enable_indexscan"):
        with connection.transaction(force_rollback=True):
            connection.execute(f"SET LOCAL {planner} = off")
            connection.execute("SELECT set_config('rag.tenant', 'nadie', TRUE)")
            assert connection.execute(leak).fetchall() == []  # type: ignore[call-overload]


def test_a_writer_writes_the_rows_of_its_tenant_only(
    corpus: Corpus, log_in: Callable[[str], Writer]
) -> None:
    """Nothing is moved to another tenant, nor hung on another's note; what exists is not told."""
    (foreign,) = corpus.fetch("SELECT id FROM notes WHERE tenant_id = 'blas'")
    connection = log_in("rag_writer")

    def as_ana(statement: str, *values: object) -> int:
        with connection.transaction():
            connection.execute("SELECT set_config('rag.tenant', 'ana', TRUE)")
            return connection.execute(statement, values or None).rowcount  # type: ignore[call-overload]

    for refused in (
        "UPDATE notes SET tenant_id = 'blas'",
        "INSERT INTO notes (tenant_id, content) VALUES ('blas', 'Intrusa.')",
        "INSERT INTO notes (tenant_id, content) VALUES ('default', 'Intrusa.')",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            as_ana(refused)
    told = []
    for note in (foreign.id, uuid4()):
        with pytest.raises(psycopg.errors.ForeignKeyViolation) as error:
            as_ana(
                "INSERT INTO chunks (id, note_id, content, chunk_index, start_char, end_char)"
                " VALUES (gen_random_uuid(), %s, 'x', 9, 0, 1)",
                note,
            )
        told.append(str(error.value).replace(str(note), ""))
    assert told[0] == told[1]
    assert as_ana("UPDATE notes SET title = 'x' WHERE id = %s", foreign.id) == 0
    assert as_ana("DELETE FROM notes") == 2
    assert corpus.fetch("SELECT content FROM notes") == [(SECRET,)]
    with connection.transaction():  # as an application that knows of no tenants
        connection.execute("INSERT INTO notes (content) VALUES ('De nadie.')")
    assert corpus.fetch("SELECT tenant_id FROM notes WHERE content = 'De nadie.'") == [("default",)]


def test_a_connection_keeps_nothing_of_its_last_user(corpus: Corpus) -> None:
    """Neither after an error, nor after a commit in between, nor outside a transaction."""
    database = corpus.database
    reader = database.as_(Access.READER)
    who = "SELECT current_user, current_setting('rag.tenant', TRUE), count(*) FROM notes"

    def fail() -> None:
        with reader.transaction() as connection:
            assert connection.execute(who).fetchone() == ("rag_reader", "ana", 2)
            connection.execute("SELECT 1 / 0")

    with pytest.raises(psycopg.errors.DivisionByZero):
        fail()
    with database.autocommit() as connection:
        user, tenant, notes = connection.execute(who).fetchone()
        assert (user != "rag_reader", tenant or "", notes) == (True, "", 3)
    with reader.transaction() as connection:
        connection.execute("SET LOCAL ROLE NONE")
        connection.commit()
        assert connection.execute(who).fetchone() == ("rag_reader", "ana", 2)
        connection.rollback()
        with connection.transaction():
            assert connection.execute(who).fetchone() == ("rag_reader", "ana", 2)
    with reader.snapshot() as connection, connection.pipeline():
        assert connection.execute(who).fetchone() == ("rag_reader", "ana", 2)
    with reader.autocommit() as connection:
        assert connection.execute(who).fetchone() == ("rag_reader", "ana", 2)
    assert reader.statistics().size <= 2


def plan(database: Database, url: str, query: str) -> str:
    """Explain a statement as if the indexes by tenant, which a few rows always take, were not."""
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute(
            "UPDATE pg_index SET indisvalid = FALSE WHERE indexrelid::regclass::text = ANY(%s)",
            [["chunks_tenant_key", "notes_tenant_key", "notes_external_key", "notes_expiry_idx"]],
        )
    with database.transaction() as connection:
        connection.execute("SET LOCAL enable_seqscan = off")
        connection.execute("SET LOCAL enable_sort = off")
        rows = connection.execute(f"EXPLAIN {query}").fetchall()  # type: ignore[call-overload]
        return "\n".join(row[0] for row in rows)


def test_the_reader_searches_by_the_indexes(isolated: Isolated) -> None:
    """GIN and HNSW: row-level security stops operators that could leak from using one."""
    corpus, database_url, _ = isolated
    with corpus.database.transaction() as connection:
        dimension = corpus.embedder.info.dimension
        connection.execute(
            "CREATE INDEX tested_hnsw ON vectors_openai_hash_chunk USING hnsw"
            f" ((embedding::halfvec({dimension})) halfvec_cosine_ops)"
        )
    reader = corpus.database.as_(Access.READER)
    words = "SELECT c.id FROM chunks AS c WHERE c.tsv @@ 'ascensor'::tsquery"
    assert "chunks_tsv_idx" in plan(reader, database_url, words)
    assert "notes_tags_idx" in plan(
        reader, database_url, "SELECT id FROM notes WHERE tags @> '{a}'"
    )
    vector = str([1.0] * dimension)
    assert "tested_hnsw" in plan(
        reader,
        database_url,
        f"SELECT chunk_id FROM vectors_openai_hash_chunk"
        f" ORDER BY embedding::halfvec({dimension}) <=> '{vector}'::halfvec({dimension}) LIMIT 5",
    )


def test_where_no_superuser_migrates_views_show_a_tenant_its_rows(
    without_superuser: Isolated,
) -> None:
    """Of the tables with GIN indexes, in the role that may only read; who names none sees none."""
    corpus, url, _ = without_superuser
    seen = """
        SELECT current_user, to_regclass('notes') <> to_regclass('public.notes') AS is_view,
            count(*) AS notes, count(*) FILTER (WHERE tenant_id <> 'ana') AS foreign_notes
        FROM notes"""
    with corpus.database.as_(Access.READER).transaction() as connection:
        assert connection.execute(seen).fetchone() == ("rag_reader", True, 2, 0)
        assert read_status(connection).isolation is Isolation.VIEWS
        for name in views(url):
            other = sql.SQL("SELECT count(*) FROM {} WHERE tenant_id <> 'ana'")
            assert connection.execute(other.format(sql.Identifier(name))).fetchone() == (0,)
        connection.execute("SELECT set_config('rag.tenant', '', TRUE)")
        assert connection.execute(seen).fetchone() == ("rag_reader", True, 0, 0)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("DELETE FROM notes")
    with corpus.database.as_(Access.WRITER).transaction() as connection:
        assert connection.execute(seen).fetchone() == ("rag_writer", False, 2, 0)
    with corpus.database.transaction() as connection:
        user, is_view, notes, foreign = connection.execute(seen).fetchone()
        assert (user != "rag_reader", is_view, notes, foreign) == (True, False, 3, 1)
    assert {"notes", "chunks", "answers"} == set(views(url))


def views(url: str) -> list[str]:
    """The tables that are seen through views."""
    with psycopg.connect(url) as connection:
        found = connection.execute(
            "SELECT viewname FROM pg_views WHERE schemaname = 'public_of_tenant'"
        ).fetchall()
    return [name for (name,) in found]


def test_without_the_roles_the_login_searches(database_url: str) -> None:
    """On a server whose superuser never migrated and whose owner may make no roles."""
    login = f"login_{uuid4().hex}"
    with psycopg.connect(database_url, autocommit=True) as superuser:
        superuser.execute(f"CREATE ROLE {login} LOGIN PASSWORD 'clave'")
    own = psycopg.conninfo.make_conninfo(database_url, user=login, password="clave")
    try:
        with (
            Database(own) as database,
            database.as_(Access.READER).transaction() as connection,
        ):
            row = connection.execute("SELECT current_user = session_user").fetchone()
            assert row == (True,)
            assert connection.roles == {}
    finally:
        with psycopg.connect(database_url, autocommit=True) as superuser:
            superuser.execute(f"DROP ROLE {login}")
