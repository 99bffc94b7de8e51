"""Questions of old evaluations: what goes to files, what stays, and a process killed in between."""

import gzip
import json
import multiprocessing
import os
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest

from rag_resources.core.errors import InvalidParameterError
from rag_resources.database.pool import Database
from rag_resources.evaluation.archive import archive_questions
from rag_resources.store.evaluations import latest_evaluation
from tests.stored_evaluations import Asked, store_evaluation

ASKED = [Asked(number, [UUID(int=1)], [UUID(int=1)]) for number in range(3)]


def store(database: Database, name: str, days_ago: int) -> UUID:
    """Store an evaluation of some days ago."""
    moment = datetime.now(UTC) - timedelta(days=days_ago)
    return store_evaluation(database, name, ASKED, created_at=moment)


def with_questions(database: Database) -> set[UUID]:
    """The evaluations whose questions are in the database."""
    with database.transaction() as connection:
        rows = connection.execute("SELECT DISTINCT evaluation_id FROM evaluation_queries")
        return {row.evaluation_id for row in rows.fetchall()}


def test_old_questions_go_to_a_file_and_their_means_stay(
    database: Database, tmp_path: Path
) -> None:
    """The newest of each configuration keeps its questions, however old."""
    old, recent, only = (
        store(database, "una", 100),
        store(database, "una", 10),
        store(database, "otra", 400),
    )
    report = archive_questions(database, tmp_path / "a" / "b", keep_days=90)
    assert (report.evaluations, report.questions) == (1, 3)
    assert with_questions(database) == {recent, only}
    with gzip.open(tmp_path / "a" / "b" / f"{old}.jsonl.gz", "rt", encoding="utf-8") as file:
        kept = [json.loads(line) for line in file]
    assert [item["query"] for item in kept] == ["¿pregunta 0?", "¿pregunta 1?", "¿pregunta 2?"]
    assert kept[0]["metrics"]["mrr"] == 1
    assert not {"answer", "unsupported_claims"} & kept[0].keys(), "what quotes notes may be purged"
    with database.transaction() as connection:
        means = connection.execute(
            "SELECT mrr FROM evaluation_results WHERE id = %s", (old,)
        ).fetchone()
        assert means == (1.0,)
        assert latest_evaluation(connection, "una") is not None
    assert archive_questions(database, tmp_path, keep_days=90).evaluations == 0


def test_two_at_once_keep_every_file(database: Database, tmp_path: Path) -> None:
    """What the other one has moved meanwhile is left as it is."""
    old = [store(database, "una", days) for days in (300, 200, 100)]
    store(database, "una", 1)
    other: list[int] = []

    def meanwhile(_: int) -> None:
        if not other:
            other.append(archive_questions(database, tmp_path, keep_days=90).questions)

    own = archive_questions(database, tmp_path, keep_days=90, progress=meanwhile)
    assert (own.questions, other) == (3, [6])
    assert {path.name for path in tmp_path.iterdir()} == {f"{each}.jsonl.gz" for each in old}
    for path in tmp_path.iterdir():
        with gzip.open(path, "rt", encoding="utf-8") as file:
            assert len(file.readlines()) == len(ASKED)


def test_what_is_compared_with_stays(database: Database, tmp_path: Path) -> None:
    """The promoted, and the baseline of a migration."""
    promoted, baseline, other = (store(database, "una", days) for days in (200, 190, 180))
    store(database, "una", 1)
    with database.transaction() as connection:
        connection.execute(
            "INSERT INTO embedding_models (name, dimension, provider, digest, similarity_threshold)"
            " VALUES ('m', 3, 'p', 'd', 0)"
        )
        connection.execute(
            "INSERT INTO promotions (configuration, config, config_hash, model, evaluation_id)"
            " VALUES ('una', '{}', 'h', 'm', %s)",
            (promoted,),
        )
        connection.execute(
            "INSERT INTO migration_batches (model, chunking_hash, run_id, months, finished_at,"
            " config_hash, golden_hash, total_queries, hit_rate_at_10, mrr, latency_p95_ms, found,"
            " missed, baseline_id, level, gate, reason)"
            " VALUES ('m', 'c', 'r', '{}', now(), 'h', 'g', 1, 1, 1, 1, '{}', '{}', %s, 0, 'open',"
            " '')",
            (baseline,),
        )
    archive_questions(database, tmp_path, keep_days=90)
    assert other not in with_questions(database)
    assert {promoted, baseline} <= with_questions(database)


def test_a_folder_that_cannot_be_made_costs_nothing(database: Database, tmp_path: Path) -> None:
    old = store(database, "una", 100)
    store(database, "una", 1)
    (tmp_path / "file").touch()
    with pytest.raises(InvalidParameterError):
        archive_questions(database, tmp_path / "file" / "archive", keep_days=90)
    assert old in with_questions(database)


def _archive_until_killed(database_url: str, folder: Path) -> None:
    with Database(database_url) as database:
        archive_questions(
            database, folder, keep_days=90, progress=lambda _: os.kill(os.getpid(), signal.SIGKILL)
        )


def test_killed_in_between_nothing_is_lost(
    database: Database, database_url: str, tmp_path: Path
) -> None:
    """After each kill every evaluation has its rows or its file, and the last call is done."""
    old = {store(database, "una", days) for days in (300, 200, 100)}
    store(database, "una", 1)
    for killed in (1, 2):
        context = multiprocessing.get_context("spawn")
        process = context.Process(target=_archive_until_killed, args=(database_url, tmp_path))
        process.start()
        process.join(60)
        assert process.exitcode == -signal.SIGKILL
        filed = {UUID(path.name.partition(".")[0]) for path in tmp_path.glob("*.gz")}
        assert len(filed) == killed
        assert old - with_questions(database) == filed
    assert archive_questions(database, tmp_path, keep_days=90).evaluations == 1
    assert old.isdisjoint(with_questions(database))
