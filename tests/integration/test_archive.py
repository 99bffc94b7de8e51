"""The archive of old evaluations: what is moved, what stays, and a process killed meanwhile."""

import gzip
import json
import multiprocessing
import os
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from rag_resources.core.errors import InvalidParameterError, RagError
from rag_resources.database.pool import Database
from rag_resources.evaluation.archive import archive_name, archive_questions
from rag_resources.files import Files, LocalFiles
from rag_resources.store.evaluations import latest_evaluation
from tests.stored_evaluations import Asked, forge, store_evaluation

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


def questions_of(files: Files, evaluation_id: UUID) -> list[dict[str, Any]]:
    """What the file of an evaluation holds."""
    lines = gzip.decompress(files.read(archive_name(evaluation_id))).decode().splitlines()
    return [json.loads(line) for line in lines]


def filed(folder: Path) -> set[UUID]:
    """The evaluations that have a file."""
    found = (folder / "archive" / "evaluations").glob("*")
    return {UUID(path.name.removesuffix(".jsonl.gz")) for path in found}


def test_old_questions_go_to_a_file_and_their_means_stay(
    database: Database, tmp_path: Path
) -> None:
    """The newest of each configuration keeps its questions, however old."""
    old, recent, only = (
        store(database, "una", 100),
        store(database, "una", 10),
        store(database, "otra", 400),
    )
    files = LocalFiles(tmp_path / "a" / "b")
    report = archive_questions(database, files, keep_days=90)
    assert (report.evaluations, report.questions) == (1, 3)
    assert with_questions(database) == {recent, only}
    kept = questions_of(files, old)
    assert [item["query"] for item in kept] == ["¿pregunta 0?", "¿pregunta 1?", "¿pregunta 2?"]
    assert kept[0]["metrics"]["mrr"] == 1
    assert not {"answer", "unsupported_claims"} & kept[0].keys(), "what quotes notes may be purged"
    with database.transaction() as connection:
        means = connection.execute(
            "SELECT mrr FROM evaluation_results WHERE id = %s", (old,)
        ).fetchone()
        assert means == (1.0,)
        assert latest_evaluation(connection, "una") is not None
    assert archive_questions(database, files, keep_days=90).evaluations == 0


def test_two_at_once_keep_every_file(database: Database, tmp_path: Path) -> None:
    """What the other one has moved meanwhile is left as it is."""
    old = [store(database, "una", days) for days in (300, 200, 100)]
    store(database, "una", 1)
    other: list[int] = []
    files = LocalFiles(tmp_path)

    def meanwhile(_: int) -> None:
        if not other:
            other.append(archive_questions(database, files, keep_days=90).questions)

    own = archive_questions(database, files, keep_days=90, progress=meanwhile)
    assert (own.questions, other) == (3, [6])
    assert filed(tmp_path) == set(old)
    for evaluation_id in old:
        assert len(questions_of(files, evaluation_id)) == len(ASKED)


def test_what_is_compared_with_stays(database: Database, tmp_path: Path) -> None:
    """The promoted, and the baseline of a migration."""
    promoted, baseline, other = (store(database, "una", days) for days in (200, 190, 180))
    store(database, "una", 1)
    with database.transaction() as connection:
        connection.execute(
            "INSERT INTO embedding_models (name, dimension, provider, digest, similarity_threshold)"
            " VALUES ('m', 3, 'p', 'd', 0)"
        )
        forge(connection)
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
            " '{}')",
            (baseline,),
        )
    archive_questions(database, LocalFiles(tmp_path), keep_days=90)
    assert other not in with_questions(database)
    assert {promoted, baseline} <= with_questions(database)


def test_a_folder_that_cannot_be_made_costs_nothing(database: Database, tmp_path: Path) -> None:
    old = store(database, "una", 100)
    store(database, "una", 1)
    (tmp_path / "file").touch()
    with pytest.raises(InvalidParameterError):
        archive_questions(database, LocalFiles(tmp_path / "file" / "archive"), keep_days=90)
    assert old in with_questions(database)


class KillsAt(LocalFiles):
    """Files of a process that is killed at some moment of the first one."""

    def __init__(self, folder: Path, moment: str) -> None:
        super().__init__(folder)
        self._moment = moment

    def write(self, name: str, data: bytes) -> None:
        self._pass("before it is written")
        if self._moment == "half written":
            super().write(name, data[: len(data) // 2])
            self._pass("half written")
        super().write(name, data)
        self._pass("written")

    def read(self, name: str) -> bytes:
        data = super().read(name)
        self._pass("read again")
        return data

    def _pass(self, moment: str) -> None:
        if self._moment == moment:
            os.kill(os.getpid(), signal.SIGKILL)


def _archive_until_killed(database_url: str, folder: Path, moment: str) -> None:
    with Database(database_url) as database:
        archive_questions(
            database,
            KillsAt(folder, moment),
            keep_days=90,
            progress=lambda _: os.kill(os.getpid(), signal.SIGKILL),
        )


def kill_at(database_url: str, folder: Path, moment: str) -> None:
    """Archive in another process, which is killed at a moment, or after its first evaluation."""
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=_archive_until_killed, args=(database_url, folder, moment))
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL


def test_killed_between_two_nothing_is_lost(
    database: Database, database_url: str, tmp_path: Path
) -> None:
    """After each kill every evaluation has its rows or its file, and the last call is done."""
    old = {store(database, "una", days) for days in (300, 200, 100)}
    store(database, "una", 1)
    for killed in (1, 2):
        kill_at(database_url, tmp_path, "")
        assert len(filed(tmp_path)) == killed
        assert old - with_questions(database) == filed(tmp_path)
    assert archive_questions(database, LocalFiles(tmp_path), keep_days=90).evaluations == 1
    assert old.isdisjoint(with_questions(database))


def test_killed_at_any_moment_the_rows_stay_and_the_next_call_ends_it(
    database: Database, database_url: str, tmp_path: Path
) -> None:
    """Even after half a file: rows are deleted only when the whole file has been read back."""
    old = store(database, "una", 100)
    store(database, "una", 1)
    for moment in ("before it is written", "half written", "written", "read again"):
        kill_at(database_url, tmp_path, moment)
        assert old in with_questions(database), moment
    files = LocalFiles(tmp_path)
    assert archive_questions(database, files, keep_days=90).questions == len(ASKED)
    assert old not in with_questions(database)
    assert len(questions_of(files, old)) == len(ASKED)
    assert filed(tmp_path) == {old}


class KeepsHalf(LocalFiles):
    """A disk that loses the end of what is written."""

    def write(self, name: str, data: bytes) -> None:
        super().write(name, data[: len(data) // 2])


def test_what_was_not_kept_whole_is_not_deleted(database: Database, tmp_path: Path) -> None:
    old = store(database, "una", 100)
    store(database, "una", 1)
    with pytest.raises(RagError, match="no es lo que se escribió"):
        archive_questions(database, KeepsHalf(tmp_path), keep_days=90)
    assert old in with_questions(database)
    archive_questions(database, LocalFiles(tmp_path), keep_days=90)
    assert old not in with_questions(database)
