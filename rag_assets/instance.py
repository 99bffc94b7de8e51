"""Makes the Dagster instance of a RAG_HOME ready: database up, home written, storage created."""

import os
from pathlib import Path

import dagster as dg
from filelock import FileLock

from rag_assets.configured import check_models
from rag_assets.runs.pools import POOLS
from rag_resources.database.locate import dagster_url, database_url
from rag_resources.database.migrations import migrate
from rag_resources.files import write_atomically
from rag_resources.settings import Settings

ROOT = Path(__file__).resolve().parent.parent
WORKSPACE = ROOT / "workspace.yaml"


def prepare(settings: Settings) -> None:
    """Bring everything up that webserver, daemon and runs need, and point the environment at it.

    Webserver and daemon started together on a fresh instance can corrupt its storage: hence the
    instance is created here, once, before either.

    Raises:
        RagError: A model has no such name, the home cannot be written, or the database cannot be
            started or reached.
    """
    check_models(settings)
    home = settings.ensure_home()
    migrate(database_url(settings))
    settings.dagster_home.mkdir(exist_ok=True)
    _write_instance_file(settings.dagster_home / "dagster.yaml")
    os.environ["RAG_HOME"] = str(home)
    os.environ["DAGSTER_HOME"] = str(settings.dagster_home)
    os.environ["DAGSTER_PG_URL"] = dagster_url(settings)
    with FileLock(home / "dagster.lock", timeout=120), dg.DagsterInstance.get() as instance:
        # The daemon gives a new pool its default limit only after it has first launched its runs.
        storage = instance.event_log_storage
        for pool in set(POOLS) - {limited.name for limited in storage.get_pool_limits()}:
            storage.initialize_concurrency_limit_to_default(pool)


def _write_instance_file(path: Path) -> None:
    """Write whole or not at all: a daemon that reads an empty file falls back to SQLite."""
    write_atomically(path, (ROOT / "dagster.yaml").read_bytes(), mode=0o644)
