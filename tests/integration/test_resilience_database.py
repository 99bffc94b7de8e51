"""Retrieval while the database fails partly or fully: the results and messages for the user.

Failures of the models are `test_resilience_models`; many callers, `test_resilience_load`.
"""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from psycopg.conninfo import make_conninfo
from structlog.testing import capture_logs

from rag_resources.core.types import RetrievalResult
from rag_resources.database.migrations import migrate
from rag_resources.database.pool import Database
from rag_resources.database.server import EmbeddedServer
from rag_resources.languages.messages import _
from rag_resources.retrieval.cache import build_caches
from tests.ollama_server import OllamaServer
from tests.retrieval_stand import (
    FAILURES,
    HYBRID,
    MISSING_FULLTEXT,
    MODEL,
    MODELS,
    RESET_S,
    SEMANTIC,
    Stand,
)
from tests.tcp_proxy import TcpProxy
from tests.waiting import wait_until

GENEROUS_MS = 15_000
"""Far more than any deadline here."""
WORDS = "lexeme_statistics"
VECTORS = f"vectors_{MODEL}_chunk"
NOTHING = (_("No results could be retrieved. Please try again."),)
UNREACHABLE = (_("Connection error. Please try again later."),)


@pytest.fixture
def tenant() -> str:
    return "ana"


@pytest.fixture
def stand(database: Database, database_url: str) -> Iterator[Stand]:
    with OllamaServer(embedding_models=dict(MODELS)) as ollama:
        stand = Stand(database, database_url, ollama)
        yield stand
        stand.close()
        assert database.statistics().in_use == 0


def ids(results: tuple[RetrievalResult, ...]) -> list[object]:
    return [result.chunk_id for result in results]


# --- Parts of the database --------------------------------------------------------------------


def test_full_text_that_keeps_failing_is_left_alone_and_tried_once_after_a_while(
    stand: Stand,
) -> None:
    """With the breaker open nobody waits; at its reset one caller of eight does."""
    before, meaning = stand.whole().results, stand.whole(SEMANTIC).results
    with stand.locked(WORDS):
        for __ in range(FAILURES):
            assert stand.ask(deadline_ms=3_000).errors == {"fulltext": "DatabaseTimeoutError"}
        left_alone = stand.ask()
        assert left_alone.response.results == meaning
        assert left_alone.response.messages == MISSING_FULLTEXT
        assert left_alone.errors == {"fulltext": "DependencyOpenError"}

        stand.clock.now += RESET_S
        start = threading.Barrier(8)

        def asking() -> list[object]:
            start.wait()
            return ids(stand.pipeline.retrieve("ascensor", HYBRID, deadline_ms=6_000).results)

        with capture_logs() as logs, ThreadPoolExecutor(8) as executor:
            futures = [executor.submit(asking) for __ in range(8)]
            assert all(future.result() for future in futures)
        errors = [record["error"] for record in logs if record["event"] == "retrieval_degraded"]
        assert sorted(errors) == ["DatabaseTimeoutError", *["DependencyOpenError"] * 7]
    assert stand.ask().errors == {"fulltext": "DependencyOpenError"}
    stand.clock.now += RESET_S
    assert stand.whole().results == before


def test_when_every_search_fails_the_user_is_told_and_nothing_is_left_closed(stand: Stand) -> None:
    """Both breakers are open, but nothing else can serve, so both searches are tried."""
    before = stand.whole().results
    with stand.gone(WORDS), ExitStack() as stack:
        stand.execute(f"ALTER TABLE {VECTORS} RENAME TO hidden_vectors")
        stack.callback(stand.execute, f"ALTER TABLE hidden_vectors RENAME TO {VECTORS}")
        for __ in range(FAILURES + 1):
            asked = stand.ask()
            assert asked.response.results == ()
            assert asked.response.error == _("No results could be retrieved. Please try again.")
            assert asked.response.messages == NOTHING
            assert asked.errors == {"semantic": "UndefinedTable", "fulltext": "UndefinedTable"}
    assert stand.whole().results == before


def test_open_breakers_of_both_models_and_words_do_not_add_up_to_nothing(stand: Stand) -> None:
    """Embeddings failed until they were left alone, then heal as full text breaks down."""
    meaning = stand.whole(SEMANTIC).results
    stand.ollama.stop()
    for __ in range(FAILURES):
        stand.ask()
    assert stand.ask().errors == {"embed": "DependencyOpenError"}
    stand.ollama.start()
    with stand.gone(WORDS):
        asked = stand.ask()
        assert asked.response.results == meaning
        assert asked.response.messages == MISSING_FULLTEXT
    stand.whole()


@pytest.mark.parametrize("table", ["notes", "chunks", "embedding_models"])
@pytest.mark.parametrize("cached", [True, False])
def test_table_that_everything_needs(stand: Stand, table: str, cached: bool) -> None:
    pipeline = stand.new_pipeline(caches=build_caches(None) if cached else None)
    with stand.gone(table):
        asked = stand.ask(pipeline=pipeline)
        assert asked.response.error == _("No results could be retrieved. Please try again.")
        assert asked.response.messages == NOTHING
    stand.whole(pipeline=pipeline)


# --- Diversity --------------------------------------------------------------------------------


# --- Connections ------------------------------------------------------------------------------


@pytest.fixture
def proxied(database_url: str, proxy: TcpProxy) -> Iterator[Database]:
    url = make_conninfo(database_url, host=proxy.host, port=proxy.port)
    with Database(url) as database:
        yield database
        proxy.heal()


def test_refused_connections_are_told_and_end_with_the_outage(
    stand: Stand, proxied: Database, proxy: TcpProxy
) -> None:
    """After some failures nobody waits for it any more, and a while later it is tried again."""
    pipeline = stand.new_pipeline(proxied)
    before = stand.whole(pipeline=pipeline).results
    proxy.refuse()
    proxy.cut()
    for __ in range(FAILURES):
        asked = stand.ask(pipeline=pipeline, deadline_ms=500)
        assert asked.response.messages == UNREACHABLE
        assert asked.response.error == _("Connection error. Please try again later.")
    assert stand.ask(pipeline=pipeline).errors == {"database": "DependencyOpenError"}
    proxy.heal()
    stand.clock.now += RESET_S
    assert stand.whole(pipeline=pipeline).results == before


@pytest.mark.parametrize("deadline_ms", [0.0, -1.0, float("nan"), 1.0, 5.0])
def test_callers_in_a_hurry_close_nothing_to_others(stand: Stand, deadline_ms: float) -> None:
    """Hurried callers may get nothing, but callers with the usual deadline get everything."""
    for __ in range(2 * FAILURES):
        response = stand.ask(deadline_ms=deadline_ms).response
        assert response.results or response.error
    stand.whole()


# --- The server -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def own_server() -> Iterator[EmbeddedServer]:
    """A server that a test may stop, as long as it starts it again."""
    with TemporaryDirectory(prefix="rag-tests-", dir="/tmp") as home:
        Path(home).chmod(0o755)
        server = EmbeddedServer(Path(home))
        server.up()
        server.ensure_database("rag")
        migrate(server.dsn("rag"))
        yield server
        server.down()


def test_stopped_server_is_told_and_a_started_one_answers_as_before(
    own_server: EmbeddedServer,
) -> None:
    url = own_server.dsn("rag")
    with (
        Database(url, min_connections=5) as database,
        OllamaServer(embedding_models=dict(MODELS)) as ollama,
    ):
        stand = Stand(database, url, ollama)
        before = stand.whole().results
        own_server.down()
        asked = stand.ask(deadline_ms=2_000)
        assert asked.response.results == ()
        assert asked.response.messages == UNREACHABLE
        assert asked.response.latency_ms < GENEROUS_MS
        own_server.up()
        wait_until(lambda: not stand.ask().response.error)
        assert stand.whole().results == before
        own_server.down()
        own_server.up()
        assert stand.whole().results == before
        stand.close()
