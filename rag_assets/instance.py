"""Makes the Dagster instance of a RAG_HOME ready: database up, home written, storage created."""

import os

import dagster as dg
from filelock import FileLock

from rag_assets.configured import check_models
from rag_assets.instance_file import provide_instance_file
from rag_assets.runs.liveness import end_dead_runs
from rag_assets.runs.pools import POOLS
from rag_resources.database.locate import dagster_url, database_url
from rag_resources.database.migrations import connect, migrate
from rag_resources.database.schema import check_schema
from rag_resources.packaged import packaged
from rag_resources.settings import Settings

WORKSPACE = packaged("rag_assets", "workspace.yaml")


def prepare(settings: Settings, *, migrating: bool = False) -> list[str]:
    """Bring everything up that webserver, daemon and runs need, and point the environment at it.

    Webserver and daemon started together on a fresh instance can corrupt its storage: hence the
    instance is created here, once, before either.

    Args:
        settings: Of this process and those it starts.
        migrating: Bring the schema of the application's database up to date, instead of refusing
            one that is not.

    Returns:
        What to tell the user; in Spanish.

    Raises:
        SchemaMismatchError: The schema is not the one of this product.
        RagError: A model has no such name, the home or its instance file cannot be used, or the
            database cannot be started or reached.
    """
    check_models(settings)
    home = settings.ensure_home()
    _check_database(database_url(settings), migrating=migrating)
    notices = provide_instance_file(settings.instance_folder, home=home)
    os.environ["RAG_HOME"] = str(home)
    os.environ["DAGSTER_HOME"] = str(settings.instance_folder)
    os.environ["DAGSTER_PG_URL"] = dagster_url(settings)
    with FileLock(home / "dagster.lock", timeout=120), dg.DagsterInstance.get() as instance:
        _initialise_pools(instance)
        end_dead_runs(instance)
    return notices


def _check_database(url: str, *, migrating: bool) -> None:
    if migrating:
        migrate(url)
        return
    with connect(url) as connection:
        check_schema(connection)


def _initialise_pools(instance: dg.DagsterInstance) -> None:
    """Give each new pool its default limit; the daemon does so only after it has launched a run."""
    storage = instance.event_log_storage
    if not storage.supports_global_concurrency_limits:
        return
    for pool in set(POOLS) - {limited.name for limited in storage.get_pool_limits()}:
        storage.initialize_concurrency_limit_to_default(pool)
