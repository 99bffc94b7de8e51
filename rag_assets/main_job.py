"""The main job: every month indexed, every configuration evaluated, the best one promoted.

It runs the jobs of the code location in this process on the real instance, so that the UI shows
the runs afterwards, and evaluates only what changed since its last evaluation.
"""

from collections.abc import Sequence
from typing import Any

import dagster as dg
from rich.console import Console

from rag_assets.assets.evaluation import evaluation_key
from rag_assets.configured import configurations
from rag_assets.definitions import defs
from rag_assets.failures import failure_reason
from rag_assets.main_job_console import print_results, progress_bars
from rag_assets.partitions import full_window, monthly
from rag_resources.application import Application, open_application
from rag_resources.core.errors import InvalidGoldenDatasetError, RagError
from rag_resources.core.golden import golden_hash
from rag_resources.core.messages import Message
from rag_resources.database.pool import Database
from rag_resources.indexing.chunk import chunking_hash
from rag_resources.settings import load_settings
from rag_resources.store.evaluations import latest_evaluation
from rag_resources.store.golden import list_golden
from rag_resources.store.index_state import index_version
from rag_resources.store.progress import index_is_current


def main_job() -> None:
    """Run everything, show its progress, and end with the table of configurations.

    Raises:
        RagError: A step failed; the UI shows the run.
    """
    console = Console()
    settings = load_settings()
    with open_application(settings) as application, dg.DagsterInstance.get() as instance:
        with progress_bars(console, application):
            _run_months(instance, "ingest")
            if settings.golden_source or _has_golden(application.database):
                _run_assets(instance, "golden", [dg.AssetKey("golden_dataset")])
            if not _index_is_current(application):
                _run_months(instance, "index")
        if not _has_golden(application.database):
            raise InvalidGoldenDatasetError(Message.INDEXED_WITHOUT_GOLDEN, [])
        stale = _stale(application)
        with console.status(Message.PROGRESS_EVALUATING.format(count=len(stale))):
            _evaluate(instance, application, stale)
            _run_assets(instance, "evaluate", [dg.AssetKey("evaluation_report")])
            promotion = _execute(instance, "promote")
        print_results(console, application.database)
        _succeeded(promotion)


def _evaluate(instance: dg.DagsterInstance, application: Application, names: list[str]) -> None:
    """Evaluate some configurations.

    A candidate that fails its gate fails the run, and is no reason to stop here: the promotion
    reads every gate itself. What could not be evaluated is.
    """
    if not names:
        return
    keys = [evaluation_key(name) for name in names]
    result = _execute(instance, "evaluate", asset_selection=keys)
    if _stale(application):
        _succeeded(result)


def _has_golden(database: Database) -> bool:
    with database.transaction() as connection:
        return bool(list_golden(connection))


def _run_months(instance: dg.DagsterInstance, job: str) -> None:
    keys = monthly.get_partition_keys()
    tags = {
        "dagster/asset_partition_range_start": keys[0],
        "dagster/asset_partition_range_end": keys[-1],
    }
    _succeeded(_execute(instance, job, tags=tags))


def _run_assets(instance: dg.DagsterInstance, job: str, keys: Sequence[dg.AssetKey]) -> None:
    _succeeded(_execute(instance, job, asset_selection=list(keys)))


def _execute(instance: dg.DagsterInstance, job: str, **options: Any) -> dg.ExecuteInProcessResult:
    resolved = defs.resolve_job_def(job)
    return resolved.execute_in_process(
        instance=instance,
        raise_on_error=False,
        # The console belongs to the progress bars; the UI has the whole log.
        run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
        **options,
    )


def _succeeded(result: dg.ExecuteInProcessResult) -> None:
    if result.success:
        return
    reasons = "\n".join(map(failure_reason, result.get_step_failure_events()))
    raise RagError(Message.RUN_ENDED_BADLY.format(run_id=result.run_id, reason=reasons))


def _index_is_current(application: Application) -> bool:
    settings = application.settings
    with application.database.transaction() as connection:
        return index_is_current(
            connection,
            full_window(),
            chunking_hash=chunking_hash(settings.chunking),
            models=settings.embedding_models,
        )


def _stale(application: Application) -> list[str]:
    """The configurations whose latest evaluation was of something else than there is now."""
    stale = []
    with application.database.transaction() as connection:
        golden, version = golden_hash(list_golden(connection)), index_version(connection)
        for name, item in configurations().items():
            latest = latest_evaluation(connection, name)
            now = (item.retrieval.config_hash, golden, version)
            if latest is None or now != (
                latest.config_hash,
                latest.golden_hash,
                latest.index_version,
            ):
                stale.append(name)
    return stale
