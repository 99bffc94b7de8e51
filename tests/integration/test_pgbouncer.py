"""Everything works through a real pgbouncer in transaction mode, and nothing stays in a session."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from urllib.parse import urlsplit

import psycopg
import pytest

from rag_resources.core.configuration import RetrievalConfig
from rag_resources.core.deadline import Deadline
from rag_resources.database.pool import (
    APPLICATION_NAME,
    EF_SEARCH,
    LOCK_TIMEOUT,
    STATEMENT_TIMEOUT_MS,
    Access,
    Database,
)
from rag_resources.database.server import EmbeddedServer
from rag_resources.store.vector_indexes import ensure_vector_indexes
from tests.corpus import SMALL, Corpus, Draft
from tests.pgbouncer import SESSIONS, PgBouncer

THREADS = 8
TRANSACTIONS = 30
_SETTINGS = """
    SELECT
        current_user = 'rag_writer' AS writes,
        (SELECT setting::integer FROM pg_settings WHERE name = 'statement_timeout') AS limit_ms,
        current_setting('rag.tenant') AS tenant, current_setting('hnsw.ef_search') AS ef_search,
        current_setting('lock_timeout') AS lock_timeout,
        current_setting('application_name') AS program"""


@pytest.fixture(scope="module")
def pgbouncer(server: EmbeddedServer) -> Iterator[PgBouncer]:
    """Before the session's server."""
    with (
        TemporaryDirectory(prefix="rag-pgbouncer-") as folder,
        PgBouncer(server, Path(folder)) as made,
    ):
        yield made


@pytest.fixture
def pooled_url(pgbouncer: PgBouncer, database_url: str) -> str:
    """The test's database, through it."""
    return pgbouncer.dsn(urlsplit(database_url).path.lstrip("/"))


@pytest.fixture
def pooled(pooled_url: str, database_url: str, tenant: str) -> Iterator[Database]:
    """A pool over that."""
    with Database(pooled_url, direct_dsn=database_url, tenant=tenant) as opened:
        yield opened


def left_behind(pooled_url: str) -> set[tuple[object, ...]]:
    """What the sessions of the server still have of those who used them."""
    with ExitStack() as opened:
        connections = [
            opened.enter_context(psycopg.connect(pooled_url, prepare_threshold=None))
            for _ in range(SESSIONS)
        ]
        return {
            row
            for connection in connections
            for row in connection.execute(
                """
                SELECT
                    current_setting('statement_timeout'), current_setting('lock_timeout'),
                    current_setting('idle_in_transaction_session_timeout'),
                    coalesce(current_setting('rag.tenant', TRUE), ''), current_setting('role'),
                    (SELECT count(*) FROM pg_prepared_statements),
                    (SELECT count(*) FROM pg_class WHERE relpersistence = 't'),
                    (
                        SELECT count(*) FROM pg_locks
                        WHERE pid = pg_backend_pid() AND locktype = 'advisory'
                    )
                """
            )
        }


NOTHING = {("0", "0", "0", "", "none", 0, 0, 0)}


def test_no_transaction_fails_or_runs_under_anothers_settings(
    pooled_url: str, database_url: str
) -> None:
    """Eight threads of two tenants share three sessions; none leaves anything in one."""

    def work(number: int) -> set[tuple[object, ...]]:
        tenant, access = ("ana", Access.WRITER) if number % 2 else ("bea", Access.OWNER)
        limit_ms = 20_000 * (1 + number)
        view = pools[tenant].as_(access)
        found = set()
        for __ in range(TRANSACTIONS):
            deadline = Deadline.after(limit_ms, monotonic) if number < THREADS - 1 else None
            with view.transaction(deadline) as connection:
                [row] = connection.execute(_SETTINGS, prepare=True).fetchall()
                expected = limit_ms if deadline else STATEMENT_TIMEOUT_MS
                assert expected - 10_000 <= row.limit_ms <= expected
                found.add((row.tenant, row.writes, *row[3:]))
        return found

    with ExitStack() as opened, ThreadPoolExecutor(THREADS) as threads:
        pools = {
            tenant: opened.enter_context(
                Database(pooled_url, direct_dsn=database_url, tenant=tenant)
            )
            for tenant in ("ana", "bea")
        }
        results = list(threads.map(work, range(THREADS)))
    for number, found in enumerate(results):
        tenant = "ana" if number % 2 else "bea"
        assert found == {(tenant, tenant == "ana", EF_SEARCH, LOCK_TIMEOUT, APPLICATION_NAME)}
    assert left_behind(pooled_url) == NOTHING


@pytest.mark.parametrize("tenant", ["ana"])
def test_notes_are_indexed_and_found_as_without_it(
    pooled: Database, pooled_url: str, database: Database
) -> None:
    """Chunks, vectors, HNSW indexes and counts of words are made through it; answers are equal."""
    corpus = Corpus(pooled)
    corpus.fill(
        [Draft(f"La gata {n} duerme en el tejado {n % 7}.", state="new") for n in range(90)]
    )
    chunked, embedded, _ = corpus.index(SMALL)
    assert (chunked.notes, embedded.notes) == (90, 90)
    info = corpus.embedder.info
    with ThreadPoolExecutor(2) as threads:
        built = threads.map(lambda _: ensure_vector_indexes(pooled, info, min_rows=10), range(2))
        assert sorted(map(len, built)) == [0, 3]
    through = corpus.pipeline()
    around = Corpus(database).pipeline()
    for question in ("¿Dónde duerme la gata 5?", "tejado 3", "gata"):
        config = RetrievalConfig(model=info.name)
        [one, other] = [p.retrieve(question, config) for p in (through, around)]
        assert [(r.chunk_id, r.score) for r in one.results] == [
            (r.chunk_id, r.score) for r in other.results
        ]
        assert one.results
    assert left_behind(pooled_url) == NOTHING
