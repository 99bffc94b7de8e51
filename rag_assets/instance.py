"""Prepares the Dagster instance of a RAG_HOME: database, home folder and storage."""

import os

import dagster as dg
from filelock import FileLock

from rag_assets.configured import read_configured
from rag_assets.instance_file import provide_instance_file
from rag_assets.runs.liveness import end_dead_runs
from rag_assets.runs.pools import POOLS
from rag_resources.database.locate import check_dagster_url, dagster_url, direct_url
from rag_resources.database.migrations import connect, migrate
from rag_resources.database.schema import check_schema
from rag_resources.files import PRIVATE, make_private
from rag_resources.languages.messages import _
from rag_resources.packaged import packaged
from rag_resources.settings import Settings

OURS = ("dagster", "dagster.default", "dagster.lock", "reports")
"""What the product keeps in a home besides the server's folder, which has an owner of its own. A
home may hold a user's own files, too."""
WORKSPACE = packaged("rag_assets", "workspace.yaml")


def prepare(
    settings: Settings, *, migrating: bool = False, ends_dead_runs: bool = True
) -> list[str]:
    """Start everything that webserver, daemon and runs need, and set the environment for it.

    The instance is created here, once, because webserver and daemon that start together on a new
    instance can corrupt its storage.

    Args:
        settings: Of this process and those it starts.
        migrating: Whether to migrate the application's schema; otherwise a schema of another
            version is refused.
        ends_dead_runs: Whether to end runs that no process executes. Only those who know the
            launcher of the runs can tell; a worker may not.

    Returns:
        Messages for the user, in Spanish.

    Raises:
        SchemaMismatchError: The schema has another version than this product needs.
        RagError: A model is unknown, the home or its instance file cannot be used, or the database
            cannot be started or reached.
    """
    left_out = read_configured(settings).configurations.problems
    home = settings.ensure_home()
    _check_database(direct_url(settings), migrating=migrating)
    check_dagster_url(settings)
    notices = provide_instance_file(settings.instance_folder, home=home)
    for name in OURS:
        make_private(home / name)
    os.environ["RAG_HOME"] = str(home)
    os.environ["DAGSTER_HOME"] = str(settings.instance_folder)
    os.environ["DAGSTER_PG_URL"] = dagster_url(settings)
    if settings.celery_broker_url:
        os.environ["CELERY_BROKER_URL"] = settings.celery_broker_url.get_secret_value()
    with (
        FileLock(home / "dagster.lock", timeout=120, mode=PRIVATE),
        dg.DagsterInstance.get() as instance,
    ):
        _initialise_pools(instance)
        if ends_dead_runs:
            end_dead_runs(instance)
    told = (
        _("A configuration with an error is left out. {problem}").format(problem=problem)
        for problem in left_out
    )
    return [*notices, *told]


def _check_database(url: str, *, migrating: bool) -> None:
    if migrating:
        migrate(url)
        return
    with connect(url) as connection:
        check_schema(connection)


def _initialise_pools(instance: dg.DagsterInstance) -> None:
    """Set the default limit of new pools; the daemon would do so only after its first run."""
    storage = instance.event_log_storage
    if not storage.supports_global_concurrency_limits:
        return
    for pool in set(POOLS) - {limited.name for limited in storage.get_pool_limits()}:
        storage.initialize_concurrency_limit_to_default(pool)
