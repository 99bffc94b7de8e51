"""Prepares the Dagster instance of a RAG_HOME: database, home folder and storage."""

import os
from pathlib import Path

import dagster as dg
from filelock import FileLock

from rag_assets.configured import read_configured
from rag_assets.keys import POOLS
from rag_assets.runs.liveness import end_dead_runs
from rag_resources.core.errors import InvalidParameterError
from rag_resources.database.locate import check_dagster_url, dagster_url, direct_url
from rag_resources.database.migrations import connect, migrate
from rag_resources.database.schema import check_schema
from rag_resources.files import PRIVATE, make_private, write_atomically
from rag_resources.languages.messages import _
from rag_resources.packaged import packaged
from rag_resources.resources import TENANT_TAG
from rag_resources.settings import Settings

OURS = ("dagster", "dagster.lock", "reports")
"""What the product keeps in a home besides the server's folder, which has an owner of its own. A
home may hold a user's own files, too."""


WORKSPACE = packaged("rag_assets", "workspace.yaml")


INSTANCE = packaged("rag_assets", "dagster.yaml")
"""The product's own instance file. A copy of it is replaced as long as it has the first line."""


def prepare(settings: Settings, *, migrating: bool = False) -> list[str]:
    """Start everything that webserver, daemon and runs need, and set the environment for it.

    The instance is created here, once, because webserver and daemon that start together on a new
    instance can corrupt its storage.

    Args:
        settings: Of this process and those it starts.
        migrating: Whether to migrate the application's schema; otherwise a schema of another
            version is refused.

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
    provide_instance_file(settings.instance_folder)
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
        end_dead_runs(instance)
    return [
        _("A configuration with an error is left out. {problem}").format(problem=problem)
        for problem in left_out
    ]


def provide_instance_file(folder: Path) -> None:
    """Make sure that a Dagster home has the product's `dagster.yaml`, or one of the user's own.

    Raises:
        InvalidParameterError: The folder cannot be written.
    """
    path, default = folder / "dagster.yaml", INSTANCE.read_bytes()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        own = path.read_bytes() if path.exists() else default.partition(b"\n")[0]
        if own != default and own.startswith(default.partition(b"\n")[0]):
            # Written atomically: a daemon that reads an empty file falls back to SQLite.
            write_atomically(path, default, mode=PRIVATE)
    except OSError as error:
        raise InvalidParameterError(
            _(
                "{path} cannot be written: check the folder, the permissions and the free space."
            ).format(path=path),
            path=path,
        ) from error


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


_BATCH = 100


_ENDED = [
    dg.DagsterRunStatus.SUCCESS,
    dg.DagsterRunStatus.FAILURE,
    dg.DagsterRunStatus.CANCELED,
]


def forget_runs(instance: dg.DagsterInstance, tenant: str) -> int:
    """Delete the runs of a tenant that have ended, with everything that was logged about them.

    Their configuration, metadata and output contain questions, passages and names of files. Their
    materialisations are deleted too; the next run finds the work already done.

    Returns:
        The number of runs deleted.
    """
    ended = dg.RunsFilter(tags={TENANT_TAG: tenant}, statuses=_ENDED)
    deleted = 0
    while runs := instance.get_runs(ended, limit=_BATCH):
        for run in runs:
            instance.compute_log_manager.delete_logs(prefix=[run.run_id])
            instance.delete_run(run.run_id)
            deleted += 1
    return deleted
