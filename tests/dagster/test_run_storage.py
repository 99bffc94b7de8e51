"""A run keeps its connections to Dagster's storage, and survives the end of one."""

import dagster as dg
import pytest
from dagster_project import Project
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from rag_assets.runs.storage import keep_connections


def session(instance: dg.DagsterInstance) -> int:
    """Return the server process that the run storage talks to."""
    with instance.run_storage.connect() as connection:
        return int(connection.execute(text("SELECT pg_backend_pid()")).scalar_one())


def test_statements_share_a_connection_that_is_replaced_when_it_was_ended(
    project: Project,
) -> None:
    """One statement fails: of a run whose database was restarted, which has lost its lock, too."""
    with dg.DagsterInstance.get() as instance, dg.DagsterInstance.get() as other:
        assert len({session(instance) for _ in range(3)}) == 3
        keep_connections(instance)
        (kept,) = {session(instance) for _ in range(3)}
        with other.run_storage.connect() as connection:
            connection.execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": kept})
        with pytest.raises(OperationalError):
            session(instance)
        assert session(instance) != kept
        instance.run_storage.dispose()
