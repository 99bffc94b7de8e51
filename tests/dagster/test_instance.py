"""The instance belongs to the user, and only explicit commands migrate a database."""

import os
from collections.abc import Callable
from pathlib import Path

import dagster as dg
import psycopg
import pytest
from dagster_project import QUIET, Project, definitions, environment

from rag_assets.instance import prepare
from rag_assets.main_job import main_job
from rag_resources.application import open_application
from rag_resources.core.errors import DatabaseError, SchemaMismatchError
from rag_resources.database.schema import schema_version
from rag_resources.languages.messages import _
from rag_resources.packaged import product_version
from rag_resources.settings import load_settings

FUTURE = "9999_future"
OWN = "telemetry:\n  enabled: false\n"


def test_a_dagster_home_of_the_users_own_is_used_as_it_is(
    database_url: str, tmp_path: Path
) -> None:
    """Its file says SQLite, so that is where the runs are; RAG_HOME gets no instance."""
    own, home = tmp_path / "own", tmp_path / "home"
    own.mkdir()
    (own / "dagster.yaml").write_text(OWN, "utf-8")
    with environment(
        RAG_HOME=str(home),
        DAGSTER_HOME=str(own),
        DATABASE_URL=database_url,
        DAGSTER_PG_URL=database_url,
    ):
        for __ in range(2):
            assert prepare(load_settings()) == []
            assert os.environ["DAGSTER_HOME"] == str(own)
        with dg.DagsterInstance.get() as instance:
            assert type(instance.run_storage).__name__ == "SqliteRunStorage"
    assert (own / "dagster.yaml").read_text("utf-8") == OWN
    assert not (home / "dagster").exists()


def become_newer(project: Project) -> str:
    """Pretend that a later version migrated the database; return the expected message."""
    project.query(
        "INSERT INTO _yoyo_migration (migration_hash, migration_id, applied_at_utc)"
        " VALUES (%s, %s, now())",
        FUTURE,
        FUTURE,
    )
    return _(
        "The database has the schema {found}, newer than that of this program (version {product}, "
        "schema {expected}). Nothing was changed: install the version of the program that brought "
        "it up to date, or a later one."
    ).format(found=FUTURE, expected=schema_version(), product=product_version())


@pytest.mark.parametrize("migrating", [False, True], ids=["ui", "run"])
def test_a_newer_schema_is_refused_before_anything_starts(
    project: Project, migrating: bool
) -> None:
    said = become_newer(project)
    with pytest.raises(SchemaMismatchError) as refused:
        prepare(load_settings(), migrating=migrating)
    assert refused.value.message == said


def test_the_ui_migrates_nothing_and_the_main_job_does(
    create_database: Callable[..., str], tmp_path: Path
) -> None:
    """The settings are the same; what differs is who asks."""
    url = create_database()
    storage = create_database()
    with environment(RAG_HOME=str(tmp_path), DATABASE_URL=url, DAGSTER_PG_URL=storage):
        with pytest.raises(SchemaMismatchError) as refused:
            prepare(load_settings())
        assert refused.value.message == _(
            "The database does not have this program's schema yet ({expected}). Nothing was "
            "changed: create it with “rag up” or “make run”."
        ).format(expected=schema_version())
        prepare(load_settings(), migrating=True)
        prepare(load_settings())


def test_a_run_that_finds_a_newer_schema_says_so(project: Project) -> None:
    """The run fails before its first step, and its log has both versions."""
    said = become_newer(project)
    result = (
        definitions()
        .resolve_job_def("purge_expired")
        .execute_in_process(instance=project.instance, raise_on_error=False, run_config=QUIET)
    )
    assert not result.success
    log = "\n".join(
        str(entry.dagster_event.event_specific_data)
        for entry in project.instance.all_logs(result.run_id)
        if entry.dagster_event
    )
    assert said in log


def test_a_full_disk_under_dagsters_own_tables_is_called_that(project: Project) -> None:
    """PostgreSQL refuses a row as it does on a full disk."""
    url = load_settings().dagster_pg_url.get_secret_value().replace("+psycopg2", "")
    with psycopg.connect(url) as connection:
        connection.execute(
            "CREATE FUNCTION is_full() RETURNS trigger LANGUAGE plpgsql AS "
            "$$BEGIN RAISE 'No space left on device' USING ERRCODE = 'disk_full'; END$$"
        )
        connection.execute(
            "CREATE TRIGGER is_full BEFORE INSERT ON runs EXECUTE FUNCTION is_full()"
        )
    settings = load_settings()
    with open_application(settings) as application:
        source = application.notes.source_to_read()
    with pytest.raises(DatabaseError) as told:
        main_job(settings, source)
    assert told.value.message == _(
        "The disk of the database is full. What is stored is safe: free some space and repeat the "
        "command."
    )
