"""The jobs run through a real pgbouncer in transaction mode."""

from pathlib import Path

import pytest
from dagster_project import (
    CANDIDATE,
    CHUNKS,
    EMBEDDINGS,
    GOLDEN,
    MONTHS,
    NOTE_EMBEDDINGS,
    NOTES,
    Corpus,
    failure_texts,
    opened,
)

from rag_assets.runs.liveness import alive
from rag_resources.database.run_lock import held_run_locks
from rag_resources.database.server import EmbeddedServer
from rag_resources.settings import load_settings
from rag_resources.store import vector_indexes
from tests.databases import cloned
from tests.pgbouncer import PgBouncer


def test_the_months_are_indexed_and_evaluated_through_pgbouncer(
    server: EmbeddedServer,
    template_database: str,
    dagster_template: str,
    corpus: Corpus,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ingestion, indexing, the same months one by one, evaluation; locks of runs go around it."""
    monkeypatch.setattr(vector_indexes, "MIN_ROWS", 1)
    folder = tmp_path / "pgbouncer"
    folder.mkdir()
    own = corpus.copy(tmp_path)
    with (
        PgBouncer(server, folder) as pgbouncer,
        cloned(server, template_database, dagster_template) as (database, dagster),
    ):
        url, direct_url = pgbouncer.dsn(database), server.dsn(database)
        others = {"DATABASE_DIRECT_URL": direct_url}
        with opened(tmp_path / "home", url, server.dsn(dagster), own, **others) as project:
            keys = (NOTES, NOTE_EMBEDDINGS, CHUNKS, EMBEDDINGS)
            for months in (MONTHS, *([month] for month in MONTHS)):
                result = project.run(*keys, months=months)
                assert result.success, failure_texts(result)
            for key in (GOLDEN, CANDIDATE):
                result = project.run(key)
                assert result.success, failure_texts(result)
            [(asked,)] = project.query("SELECT total_queries FROM evaluation_results")
            assert asked == len(project.corpus.questions())
            with alive("a run", load_settings()):
                assert held_run_locks(direct_url, ["a run"]) == {"a run"}
            assert held_run_locks(direct_url, ["a run"]) == frozenset()
