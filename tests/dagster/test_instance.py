"""The instance belongs to the user, and only explicit commands migrate a database."""

import os
from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pytest
from dagster_project import Project, environment

from rag_assets.instance import prepare
from rag_resources.core.errors import SchemaMismatchError
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
