"""What Dagster keeps of a tenant's runs goes when the tenant leaves; other tenants' runs stay."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import dagster as dg
import psycopg
import pytest
from dagster_project import Project

from rag_assets.instance import forget_runs
from rag_assets.jobs import retrieve_job
from rag_resources.core.types import NoteRecord
from rag_resources.database.pool import Database
from rag_resources.ingestion.ingest import ingest
from rag_resources.resources import RagResource
from rag_resources.settings import load_settings
from tests.corpus import START

SECRET = "zarapito"


@pytest.fixture
def ask(project: Project) -> Callable[[str], str]:
    """Run the retrieval job as a tenant, which has a note; return the run."""

    def run(tenant: str) -> str:
        with Database(project.database_url, tenant=tenant) as database:
            note = NoteRecord("n", "Una nota", f"El {SECRET} de {tenant} canta.", START)
            ingest(database, [note], tenant=tenant, source="notes")
        question = {"question": f"¿Qué hace el {SECRET} de {tenant}?", "configuration": "fulltext"}
        done = retrieve_job.execute_in_process(
            instance=project.instance,
            resources={"rag": RagResource(settings=load_settings(tenant=tenant))},
            run_config={"ops": {"retrieve_passages": {"config": question}}},
        )
        assert done.success
        return done.run_id

    return run


def quoting(project: Project, url: str, tenant: str) -> set[str]:
    """Return the tables of Dagster's and the files that quote what a tenant asked or has."""
    words = f"%{SECRET} de {tenant}%"
    found = set()
    with psycopg.connect(url) as connection:
        names = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
        ).fetchall()
        for (name,) in names:
            query = f"SELECT FROM {name} AS t WHERE t::text LIKE %s LIMIT 1"
            if connection.execute(query, [words]).fetchall():  # type: ignore[call-overload]
                found.add(name)
    for path in Path(project.instance.root_directory).rglob("*"):
        if path.is_file() and words.strip("%").encode() in path.read_bytes():
            found.add(path.suffix)
    return found


def test_the_runs_of_a_tenant_are_forgotten(project: Project, ask: Callable[[str], str]) -> None:
    """By the command that deletes a tenant: no table and no file quotes it any more."""
    theirs, kept = ask("blas"), ask("ana")
    url = os.environ["DAGSTER_PG_URL"].replace("+psycopg2", "")
    assert quoting(project, url, "blas") >= {"runs", "event_logs"}
    own = quoting(project, url, "ana")
    command = [sys.executable, "-m", "rag_resources.cli", "tenant", "delete", "blas", "--yes"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert "Borrada 1 ejecución de blas" in done.stderr
    assert quoting(project, url, "blas") == set()
    assert quoting(project, url, "ana") == own
    assert [run.run_id for run in project.instance.get_runs()] == [kept]
    assert list(Path(project.instance.root_directory).rglob(f"*{theirs}*")) == []
    assert forget_runs(project.instance, "blas") == 0


def test_a_run_in_progress_is_not_forgotten(project: Project, ask: Callable[[str], str]) -> None:
    run = project.instance.get_run_by_id(ask("blas"))
    assert isinstance(run, dg.DagsterRun)
    going_on = run._replace(run_id="1" * 32, status=dg.DagsterRunStatus.STARTED)
    project.instance.add_run(going_on)
    assert forget_runs(project.instance, "blas") == 1
    assert [run.run_id for run in project.instance.get_runs()] == ["1" * 32]
