"""The archive of old evaluations as a Dagster job, which needs durable files."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import dagster as dg
import pytest
from dagster_project import QUIET, Project, definitions, failure_texts

from rag_resources.database.pool import Database
from rag_resources.evaluation.archive import archive_name
from rag_resources.languages.messages import _
from tests.stored_evaluations import Asked, store_evaluation

QUESTIONS = "SELECT count(*) FROM evaluation_queries"


def archive(project: Project) -> dg.ExecuteInProcessResult:
    result = (
        definitions()
        .resolve_job_def("archive_evaluations")
        .execute_in_process(instance=project.instance, raise_on_error=False, run_config=QUIET)
    )
    assert result.success, failure_texts(result)
    return result


def test_nothing_leaves_a_database_for_a_folder_that_may_not_last(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without FILES_URL the run says what to do; with it the questions are archived there."""
    with Database(project.database_url) as database:
        asked = [Asked(number, [UUID(int=1)], [UUID(int=1)]) for number in range(3)]
        old, __ = (
            store_evaluation(
                database, "una", asked, created_at=datetime.now(UTC) - timedelta(days=days)
            )
            for days in (100, 1)
        )
    result = archive(project)
    told = [entry.user_message for entry in project.instance.all_logs(result.run_id)]
    assert (
        _(
            "Nothing was archived and the questions stay in the database: with a database of your "
            "own (DATABASE_URL) the folder RAG_HOME may not last. Say with FILES_URL where to "
            "keep the files, such as s3://bucket/prefix or file:///lasting/folder."
        )
        in told
    )
    assert project.query(QUESTIONS) == [(6,)]

    monkeypatch.setenv("FILES_URL", (tmp_path / "files").as_uri())
    archive(project)
    assert project.query(QUESTIONS) == [(3,)]
    assert (tmp_path / "files" / archive_name(old)).stat().st_mode & 0o777 == 0o600
