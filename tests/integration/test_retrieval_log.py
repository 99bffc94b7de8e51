"""The log of the questions: what it keeps, for how long, and that no question depends on it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import dagster as dg
import psycopg
import pytest
from structlog.testing import capture_logs
from structlog.typing import EventDict

from rag_assets.serving.retrieval_log import history_metadata, retrieval_log
from rag_resources.core.configuration import RetrievalConfig
from rag_resources.core.types import RetrievalResponse
from rag_resources.database.background import BATCH, WAITING
from rag_resources.database.pool import Database
from rag_resources.languages.labels import label
from rag_resources.resources import RagResource
from rag_resources.retrieval.cache import build_caches
from rag_resources.retrieval.log import RetrievalLog
from rag_resources.retrieval.pipeline import RetrievalPipeline
from rag_resources.settings import load_settings
from rag_resources.store.retrieval_log import read_retrievals
from tests.corpus import GENEROUS_MS, Corpus, Draft
from tests.waiting import wait_until

QUESTION = "¿Dónde duerme la gata negra?"
CONFIG = RetrievalConfig(strategy="fulltext")
RESPONSE = RetrievalResponse((), QUESTION, "fulltext", "e5_small", 12.5, {"search": 8.0})


def build(database: Database, **changes: Any) -> RetrievalLog:
    options: dict[str, Any] = {
        "tenant": "ana",
        "write_ms": GENEROUS_MS,
    }
    return RetrievalLog(database, **{"caches": build_caches(None)} | options | changes)


def written(database: Database) -> list[str]:
    """Every row as text."""
    with database.transaction() as connection:
        rows = connection.execute("SELECT r::text FROM retrieval_log AS r ORDER BY r.id")
        return [row[0] for row in rows]


def test_a_question_leaves_its_cost_and_not_its_text(database: Database) -> None:
    corpus = Corpus(database)
    corpus.fill([Draft("La gata negra duerme en la cocina.")])
    caches = build_caches(None)
    pipeline = RetrievalPipeline(
        database,
        embedder=lambda _: corpus.embedder,
        tenant="ana",
        caches=caches,
    )
    log = build(database, caches=caches)
    with capture_logs() as logs:
        for _ in range(2):
            log.record(CONFIG, pipeline.retrieve(QUESTION, CONFIG))
    log.close()

    rows = written(database)
    assert len(rows) == 2
    said = f"{rows}{[entry for entry in logs if entry['log_level'] != 'debug']}"
    assert not [word for word in ("gata", "cocina", "Dónde") if word in said]
    assert "gata" in str(logs), "records of DEBUG have it"
    assert [entry["cached"] for entry in logs if entry["event"] == "retrieval"] == [False, True]
    with database.snapshot() as connection:
        history = read_retrievals(connection, "ana", days=30)
        assert read_retrievals(connection, "blas", days=30).days == ()
    (day,) = history.days
    assert (day.questions, day.cached, day.degraded, day.failed) == (2, 1, 0, 0)
    assert 0 < day.p50_ms <= day.p95_ms
    assert "search" in {stage.stage for stage in history.stages}
    assert history.caches["answers"] == (1, 1)
    assert history.pools[0]["size"] >= 1

    shown = history_metadata(history)
    assert (shown["questions"], shown["cached_share"]) == (2, 0.5)
    assert f"| {day.day} | 2 | 1 | 0 | 0 |" in shown["days"].value
    assert "| answers | 1 | 1 | 50% |" in shown["caches"].value
    assert "| búsqueda | 1 |" in shown["stages"].value


def test_the_asset_shows_the_questions_or_that_there_are_none(
    database: Database, database_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in {"DATABASE_URL": database_url, "TENANT": "ana"}.items():
        monkeypatch.setenv(name, value)
    rag = RagResource(settings=load_settings())

    def shown() -> object:
        with dg.DagsterInstance.ephemeral() as instance:
            run = dg.materialize([retrieval_log], resources={"rag": rag}, instance=instance)
            (made,) = run.asset_materializations_for_node("retrieval_log")
            return made.metadata[label("questions")].value

    assert shown() == 0
    log = build(database)
    log.record(CONFIG, RESPONSE)
    log.close()
    assert shown() == 1


def test_old_questions_are_deleted(database: Database) -> None:
    with database.transaction() as connection:
        connection.execute(
            "INSERT INTO retrieval_log (tenant_id, answered_at, process, config_hash, strategy,"
            " model, latency_ms, stage_latencies, results, degraded, failed, cached, caches, pool)"
            " SELECT 'ana', now() - make_interval(days => age), gen_random_uuid(), 'old', 's',"
            " 'm', 1, '{}', 0, '{}', false, false, '{}', '{}' FROM unnest(ARRAY[29, 31]) AS age"
        )
    log = build(database)
    log.record(CONFIG, RESPONSE)
    log.close()
    rows = written(database)
    assert sum(",old," in row for row in rows) == 1
    assert len(rows) == 2


def skipped(logs: list[EventDict]) -> list[EventDict]:
    return [entry for entry in logs if entry["event"] == "retrieval_log_skipped"]


def locked(url: str) -> psycopg.Connection[Any]:
    holder = psycopg.connect(url)
    holder.execute("LOCK TABLE retrieval_log IN ACCESS EXCLUSIVE MODE")
    return holder


def test_a_locked_table_loses_the_records_of_that_time_only(
    database: Database, database_url: str
) -> None:
    log, later = build(database, write_ms=300), build(database)
    with capture_logs() as logs:
        with locked(database_url):
            log.record(CONFIG, RESPONSE)
            wait_until(lambda: skipped(logs))
        later.record(CONFIG, RESPONSE)
        later.close()
    assert len(written(database)) == 1
    assert [entry["records"] for entry in skipped(logs)] == [1]


def read_only(url: str) -> str:
    return f"{url}{'&' if '?' in url else '?'}options=-c%20default_transaction_read_only%3Don"


@pytest.mark.parametrize("broken", [read_only, lambda url: url])
def test_a_database_that_cannot_be_written_fails_no_question(
    database: Database, database_url: str, broken: Callable[[str], str]
) -> None:
    """It is read-only, or its pool is closed already."""
    with Database(broken(database_url)) as unwritable, capture_logs() as logs:
        if broken is not read_only:
            unwritable.close()
        log = build(unwritable)
        log.record(CONFIG, RESPONSE)
        log.close()
    assert [entry["event"] for entry in logs if entry["log_level"] == "warning"] == [
        "retrieval_log_skipped"
    ]
    assert written(database) == []


def commits(url: str) -> int:
    """How many transactions have written to the log."""
    with psycopg.connect(url) as connection:
        found = connection.execute("SELECT count(DISTINCT xmin::text) FROM retrieval_log")
        return int(next(found)[0])


def test_questions_of_a_moment_are_written_together(database: Database, database_url: str) -> None:
    """A question costs no transaction of its own; what waits is written when the log is closed."""
    log = build(database)
    for _ in range(2 * BATCH + 1):
        log.record(CONFIG, RESPONSE)
    log.close()
    assert len(written(database)) == 2 * BATCH + 1
    assert commits(database_url) <= 3 + 1, "the first record may have been alone"
    log.record(CONFIG, RESPONSE)
    wait_until(lambda: len(written(database)) == 2 * BATCH + 2)
    log.close()


def build_counting(database: Database) -> tuple[RetrievalLog, list[int]]:
    """A log, and the numbers of records that it reports as lost."""
    lost: list[int] = []
    return build(database, on_lost=lambda _, records: lost.append(records)), lost


def is_waiting(url: str) -> bool:
    """Whether a session waits for the table."""
    with psycopg.connect(url) as connection:
        found = connection.execute(
            "SELECT EXISTS (SELECT FROM pg_locks"
            " WHERE NOT granted AND relation = 'retrieval_log'::regclass)"
        )
        return bool(next(found)[0])


def test_a_question_that_cannot_be_stored_loses_no_other(database: Database) -> None:
    log, lost = build_counting(database)
    with capture_logs() as logs:
        for strategy in ("fulltext", "nul\0", "semantic", "surrogate\ud800", "hybrid"):
            response = replace(RESPONSE, stages={strategy: 1.0})
            log.record(CONFIG, response)
        log.close()
    assert len(written(database)) == 3
    assert sum(entry["records"] for entry in skipped(logs)) == sum(lost) == 2


def test_more_than_can_wait_loses_the_oldest_and_says_how_many(
    database: Database, database_url: str
) -> None:
    log, lost = build_counting(database)
    with capture_logs() as logs:
        with locked(database_url):
            log.record(CONFIG, replace(RESPONSE, latency_ms=-1.0))
            wait_until(lambda: is_waiting(database_url))
            for number in range(WAITING + 7):
                log.record(CONFIG, replace(RESPONSE, latency_ms=float(number)))
        log.close()
    with database.transaction() as connection:
        rows = connection.execute("SELECT latency_ms FROM retrieval_log ORDER BY latency_ms")
        assert [row[0] for row in rows] == [-1, *range(7, WAITING + 7)]
    dropped = [entry["records"] for entry in logs if entry["event"] == "retrieval_log_dropped"]
    assert sum(dropped) == sum(lost) == 7
