"""The version of the index: what changes it, what does not, and that no cached answer is stale."""

import os
import signal
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rag_resources.core.configuration import ChunkingConfig
from rag_resources.core.retrievers import VectorKind
from rag_resources.core.types import NoteRecord, TimeWindow
from rag_resources.database.migrations import migrate
from rag_resources.database.pool import Database
from rag_resources.database.server import EmbeddedServer
from rag_resources.indexing.chunk import chunk_window
from rag_resources.indexing.embed import embed_chunks, embed_notes
from rag_resources.ingestion.ingest import ingest
from rag_resources.store.chunks import refresh_statistics
from rag_resources.store.index_state import (
    IndexVersion,
    read_index_version,
)
from rag_resources.store.models import register_model
from rag_resources.store.vector_indexes import ensure_vector_indexes
from tests.embedders import HashEmbedder
from tests.waiting import wait_until

ALWAYS = TimeWindow(datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC))
SMALL = ChunkingConfig(max_tokens=24, overlap_tokens=0, min_tokens=0)
TEXTS = [
    "El ascensor de la escalera no funciona. Lola hizo mermelada de naranja amarga con azúcar.",
    "Vera tiene fiebre y el pediatra dice que es un virus. Ensayamos el réquiem de Fauré.",
]

Writer = psycopg.Connection[Any]


def look(database: Database, tenant: str = "ana") -> IndexVersion:
    """The version, as a retrieval reads it."""
    with database.transaction() as connection:
        return read_index_version(connection, tenant)


def execute(database: Database, *statements: str) -> None:
    """Run statements in one transaction."""
    with database.transaction() as connection:
        for statement in statements:
            connection.execute(statement)  # type: ignore[call-overload]


def index(database: Database) -> None:
    """Everything that an indexing run does."""
    embedder = HashEmbedder()
    records = [
        NoteRecord(str(n), "", text, datetime(2025, 1, 1 + n, tzinfo=UTC))
        for n, text in enumerate(TEXTS)
    ]
    ingest(database, records, tenant="ana", source="diario")
    with database.transaction() as connection:
        register_model(
            connection, embedder.info, {VectorKind.CHUNK, VectorKind.CONTEXTUAL, VectorKind.NOTE}
        )
    embed_notes(database, embedder, ALWAYS)
    if chunk_window(database, ALWAYS, SMALL).notes:
        with database.transaction() as connection:
            refresh_statistics(connection)
    embed_chunks(database, embedder, ALWAYS)
    ensure_vector_indexes(database, embedder.info, min_rows=100)


@pytest.fixture
def indexed(database: Database) -> Database:
    """A database with two indexed notes."""
    index(database)
    return database


@pytest.fixture
def writer(database_url: str) -> Iterator[Writer]:
    """A connection of somebody else, in transactions."""
    with psycopg.connect(database_url) as connection:
        yield connection


# --- What moves it ----------------------------------------------------------------------------

CHANGES = {
    "old application": """
        INSERT INTO notes (id, content, created_at, tenant_id)
        VALUES (gen_random_uuid(), 'x', now(), 'ana')
    """,
    "edit": "UPDATE notes SET content = 'otra cosa'",
    "tags": "UPDATE notes SET tags = '{a}'",
    "expiry": "UPDATE notes SET expires_at = now()",
    "deletion": "DELETE FROM notes",
    "truncation": "TRUNCATE notes CASCADE",
    "chunk edit": "UPDATE chunks SET context = 'otro'",
    "chunk deletion": "DELETE FROM chunks WHERE chunk_index = 0",
    "vector edit": "UPDATE vectors SET embedding = embedding + embedding",
    "vector deletion": "DELETE FROM vectors WHERE kind <> 'note'",
    "vector truncation": "TRUNCATE vectors",
    "note vector deletion": "DELETE FROM vectors WHERE kind = 'note'",
    "lexemes": "DELETE FROM lexeme_statistics",
    "corpus statistics": "UPDATE corpus_statistics SET chunk_count = 1",
    "threshold": "UPDATE embedding_models SET similarity_threshold = 0.5",
    "retired model": "UPDATE embedding_models SET retired_at = now()",
    "upsert": """
        INSERT INTO lexeme_statistics (tenant_id, lexeme, document_count)
        SELECT tenant_id, lexeme, document_count + 1 FROM lexeme_statistics
        ON CONFLICT (tenant_id, lexeme) DO UPDATE SET document_count = excluded.document_count
    """,
    "merge": """
        MERGE INTO notes AS n USING (SELECT id FROM notes LIMIT 1) AS m ON m.id = n.id
        WHEN MATCHED THEN DELETE
    """,
}

NO_CHANGES = {
    "nothing edited": "UPDATE notes SET content = 'x' WHERE id IS NULL",
    "nothing deleted": "DELETE FROM chunks WHERE id IS NULL",
    "nothing inserted": "INSERT INTO notes (content) SELECT 'x' WHERE FALSE",
    "conflict left alone": """
        INSERT INTO lexeme_statistics (tenant_id, lexeme, document_count)
        SELECT tenant_id, lexeme, document_count + 1 FROM lexeme_statistics
        ON CONFLICT (tenant_id, lexeme) DO NOTHING
    """,
    "upsert of the same": """
        INSERT INTO lexeme_statistics AS l (tenant_id, lexeme, document_count)
        SELECT tenant_id, lexeme, document_count FROM lexeme_statistics
        ON CONFLICT (tenant_id, lexeme) DO UPDATE SET document_count = excluded.document_count
        WHERE l.document_count <> excluded.document_count
    """,
    "queue": """
        INSERT INTO pending_vectors (model, note_id, tenant_id)
        SELECT 'openai_hash', id, tenant_id FROM notes
    """,
    "locked rows": "SELECT * FROM notes FOR UPDATE",
    "another table": """
        INSERT INTO golden_dataset
            (query, normalized_query, relevant_note_ids, expected_answer, category, difficulty)
        SELECT 'q', 'q', array_agg(id), 'a', 'factual', 1 FROM notes
    """,
}


@pytest.mark.parametrize("statement", CHANGES.values(), ids=CHANGES.keys())
def test_every_change_of_what_is_searched_gives_a_new_version(
    indexed: Database, statement: str
) -> None:
    before = look(indexed)
    execute(indexed, statement)
    after = look(indexed)
    assert after.number > before.number
    assert after.lineage == before.lineage


@pytest.mark.parametrize("statement", NO_CHANGES.values(), ids=NO_CHANGES.keys())
def test_a_statement_that_changes_nothing_searched_keeps_the_version(
    indexed: Database, writer: Writer, statement: str
) -> None:
    """Its open transaction does not prevent answers from being cached, either."""
    before = look(indexed)
    writer.execute(statement)  # type: ignore[call-overload]
    assert look(indexed) == before
    writer.commit()
    assert look(indexed) == before


# --- Writers at work --------------------------------------------------------------------------


def test_a_change_counts_once_it_is_committed(indexed: Database, writer: Writer) -> None:
    """Until then nobody finds it, nor asks for another version."""
    before = look(indexed)
    for end in (writer.rollback, writer.commit):
        writer.execute("UPDATE notes SET title = title")
        assert look(indexed) == before
        end()
    assert look(indexed).number > before.number


def test_changes_are_folded_without_the_number_falling(indexed: Database, writer: Writer) -> None:
    """Also by transactions that are rolled back, and beside others that fold."""
    writer.autocommit = True
    last = look(indexed).number
    for number in range(400):
        writer.execute("BEGIN")
        writer.execute("UPDATE notes SET title = title")
        writer.execute("ROLLBACK" if number % 5 == 4 else "COMMIT")
        if number % 20 == 0:
            now = look(indexed).number
            assert now > last
            last = now
    commits = count(320)

    def is_folded() -> bool:
        """Whether there are fewer rows than commits, after one more. Old transactions delay it."""
        writer.execute("UPDATE notes SET title = title")
        (rows,) = writer.execute("SELECT count(*) FROM index_changes").fetchone() or ()
        return bool(rows < next(commits))

    wait_until(is_folded)


# --- Whose version it is ----------------------------------------------------------------------

OF_BLAS = {
    "note": "INSERT INTO notes (tenant_id, content) VALUES ('blas', 'Otra.')",
    "edit": "UPDATE notes SET content = 'x' WHERE tenant_id = 'blas'",
    "deletion": "DELETE FROM notes WHERE tenant_id = 'blas'",
    "words": "INSERT INTO lexeme_statistics VALUES ('x', 1, 'blas')",
}


@pytest.mark.parametrize("statement", OF_BLAS.values(), ids=OF_BLAS.keys())
def test_a_write_of_one_tenant_keeps_the_version_of_another(
    indexed: Database, statement: str
) -> None:
    execute(indexed, OF_BLAS["note"])
    before, others = look(indexed), look(indexed, "blas")
    execute(indexed, statement)
    assert look(indexed) == before
    assert look(indexed, "blas").number > others.number


def test_a_change_of_the_models_is_everybodys(indexed: Database) -> None:
    before = look(indexed, "nobody")
    execute(indexed, CHANGES["threshold"])
    assert look(indexed, "nobody").number > before.number


# --- What else it is made of ------------------------------------------------------------------


def test_a_note_that_expires_ends_the_version(indexed: Database, writer: Writer) -> None:
    """Without any write; a note of another tenant, or one long expired, is nothing to this one."""
    execute(
        indexed,
        "INSERT INTO notes (tenant_id, content, expires_at) VALUES"
        " ('ana', 'Vieja.', now() - interval '1 day'), ('blas', 'x', now() + interval '1 minute'),"
        " ('ana', 'Hoy.', now() + interval '1 day')",
    )
    before = look(indexed)
    (expiry,) = writer.execute("SELECT max(expires_at) FROM notes").fetchone() or ()
    assert before.next_expiry == expiry
    assert look(indexed) == before

    execute(
        indexed,
        "INSERT INTO notes (tenant_id, content, expires_at)"
        " VALUES ('ana', 'Breve.', clock_timestamp() + interval '0.2 s')",
    )
    brief = look(indexed)
    wait_until(lambda: look(indexed) != brief)
    assert look(indexed).number == brief.number
    assert look(indexed).next_expiry == expiry


@pytest.fixture
def own_server() -> Iterator[EmbeddedServer]:
    """A server of this test's, to be killed."""
    with tempfile.TemporaryDirectory(prefix="rag-tests-") as home:
        Path(home).chmod(0o755)
        started = EmbeddedServer(Path(home))
        started.up()
        yield started
        started.down()


def test_a_crash_begins_a_lineage(own_server: EmbeddedServer) -> None:
    """A killed backend takes the whole server through recovery, though it does not start anew.

    Numbers may be given a second time then; a restart does the same.
    """
    own_server.ensure_database("rag")
    migrate(own_server.dsn())

    def lineage() -> str | None:
        try:
            with psycopg.connect(own_server.dsn()) as connection:
                return read_index_version(connection, "ana").lineage
        except psycopg.OperationalError:
            return None

    first = lineage()
    assert first
    postmaster = own_server.status().pid
    with psycopg.connect(own_server.dsn()) as victim:
        os.kill(victim.info.backend_pid, signal.SIGKILL)
        wait_until(lambda: lineage() not in (None, first))
    assert own_server.status().pid == postmaster
    second = lineage()
    own_server.down()
    own_server.up()
    assert lineage() not in (None, first, second)


# --- That nothing kept is stale ---------------------------------------------------------------

Answer = tuple[tuple[Any, ...], ...]


def answer(database: Database) -> Answer:
    """Return a value that depends on everything in the database, in one snapshot."""
    return searched(database)[0]


def searched(database: Database) -> tuple[Answer, IndexVersion]:
    """The same, and the version of that snapshot."""
    with database.snapshot() as connection:
        rows = connection.execute(
            "SELECT id::text, content, title FROM notes UNION ALL"
            " SELECT lexeme, document_count::text, '' FROM lexeme_statistics ORDER BY 1"
        )
        return tuple(map(tuple, rows)), read_index_version(connection, "ana")


@dataclass
class Reader:
    """A retrieval that can be paused between any two of its steps.

    Attributes:
        kept: The cache, shared by all readers.
        states: What there was after each commit.
    """

    database: Database
    kept: dict[str, tuple[Answer, IndexVersion]]
    states: list[Answer]
    _steps: Iterator[None] = field(init=False)

    def __post_init__(self) -> None:
        self._steps = self._retrieve()

    def step(self) -> None:
        """Go on; the end of a retrieval is the beginning of the next."""
        next(self._steps)

    def _retrieve(self) -> Iterator[None]:
        while True:
            since = len(self.states) - 1
            found = self.kept.get("question")
            yield
            if found is not None:
                version = look(self.database)
                yield
                if found[1] == version:
                    # Fresh at some moment since the retrieval began.
                    assert found[0] in self.states[since:]
                    yield
                    continue
            found = searched(self.database)
            yield
            self.kept["question"] = found
            yield


WRITES = {
    "insert": "INSERT INTO notes (tenant_id, source, content) VALUES ('ana', %(me)s, 'Nueva.')",
    "edit": "UPDATE notes SET content = content || '!' WHERE source = %(me)s",
    "nothing": "UPDATE notes SET content = 'x' WHERE source = %(me)s AND FALSE",
    "delete": "DELETE FROM notes WHERE source = %(me)s",
    "count": "INSERT INTO lexeme_statistics AS l VALUES (%(me)s, 1, 'ana')"
    " ON CONFLICT (tenant_id, lexeme) DO UPDATE SET document_count = l.document_count + 1",
    "commit": "COMMIT",
    "rollback": "ROLLBACK",
    "save": "SAVEPOINT here",
    "back": "ROLLBACK TO here",
}
STEPS = st.one_of(
    st.tuples(st.sampled_from(["reader 1", "reader 2"]), st.just("step")),
    st.tuples(st.sampled_from(["writer 1", "writer 2"]), st.sampled_from(list(WRITES))),
)


class Writers:
    """Two connections that write separate rows, in transactions."""

    def __init__(self, url: str) -> None:
        self._connections = {
            name: psycopg.connect(url, autocommit=True) for name in ("writer 1", "writer 2")
        }

    def write(self, name: str, action: str) -> None:
        """Run a statement in a transaction that stays open until it is ended."""
        connection = self._connections[name]
        idle = connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        if idle and action in ("commit", "rollback", "back"):
            return
        if idle:
            connection.execute("BEGIN")
            connection.execute("SAVEPOINT here")
        connection.execute(WRITES[action], {"me": name})  # type: ignore[call-overload]

    def reset(self) -> None:
        """Roll back what is open."""
        for connection in self._connections.values():
            connection.rollback()

    def close(self) -> None:
        """Close both."""
        for connection in self._connections.values():
            connection.close()


@pytest.fixture
def writers(database_url: str) -> Iterator[Writers]:
    """Two writers."""
    opened = Writers(database_url)
    yield opened
    opened.close()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(
    # A change between the search and the keeping of its answer.
    [("reader 1", "step")] * 2
    + [("writer 1", "insert"), ("writer 1", "commit")]
    + [("reader 1", "step")] * 3
    + [("reader 2", "step")] * 5
)
@example(
    # A change that is not yet to be seen.
    [("writer 1", "insert")]
    + [("reader 1", "step")] * 5
    + [("writer 1", "commit")]
    + [("reader 2", "step")] * 5
)
@given(st.lists(STEPS, max_size=30))
def test_no_interleaving_of_readers_and_writers_keeps_a_stale_answer(
    database: Database, writers: Writers, steps: list[tuple[str, str]]
) -> None:
    """A cached answer is one that some search since the request would have given."""
    writers.reset()
    execute(database, "DELETE FROM notes", "DELETE FROM lexeme_statistics")
    states = [answer(database)]
    kept: dict[str, tuple[Answer, IndexVersion]] = {}
    readers = {name: Reader(database, kept, states) for name in ("reader 1", "reader 2")}
    for actor, action in steps:
        if actor in readers:
            readers[actor].step()
        else:
            writers.write(actor, action)
            states.append(answer(database))
    writers.reset()
    now, version = searched(database)
    if "question" in kept and kept["question"][1] == version:
        assert kept["question"][0] == now
