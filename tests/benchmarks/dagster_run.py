"""The overhead of Dagster in a run, apart from the functions that the run calls."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

from rag_resources.application import open_application
from rag_resources.database.locate import embedded_server
from rag_resources.indexing.chunk import chunk_window
from rag_resources.indexing.embed import embed_chunks
from rag_resources.settings import load_settings
from rag_resources.store.chunks import update_statistics
from rag_resources.store.vector_indexes import ensure_vector_indexes

MODEL = "use_multilingual"
MONTHS = 6


@dataclass(frozen=True)
class RunCost:
    """Seconds: of the imports of a run's process, of a run in process, of its functions alone."""

    months: int
    import_s: float
    run_s: float
    bare_s: float


def measure_run(home: Path) -> RunCost:
    """Run `chunks` and `embeddings` over months with nothing to do; in a process of its own."""
    home.mkdir(parents=True)
    home.chmod(0o755)
    os.environ |= {"RAG_HOME": str(home), "EMBEDDING_MODELS": MODEL}
    started = time.perf_counter()
    import dagster as dg

    from rag_assets.definitions import defs
    from rag_assets.instance import prepare
    from rag_assets.runs.partitions import month_window, monthly

    import_s = time.perf_counter() - started
    settings = load_settings()
    keys = monthly(settings).get_partition_keys()[:MONTHS]
    job = defs.resolve_implicit_global_asset_job_def().get_subset(
        asset_selection={dg.AssetKey("chunks"), dg.AssetKey(["embeddings", MODEL])},
        asset_check_selection=set(),
    )
    try:
        prepare(settings, migrating=True)

        def run() -> float:
            begun = time.perf_counter()
            with dg.DagsterInstance.get() as instance:
                result = job.execute_in_process(
                    instance=instance,
                    run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
                    tags={
                        "dagster/asset_partition_range_start": keys[0],
                        "dagster/asset_partition_range_end": keys[-1],
                    },
                )
            if not result.success:
                raise RuntimeError("the run failed")
            return time.perf_counter() - begun

        run()  # registers the model
        run_s = min(run() for _ in range(3))
        with open_application(settings) as application:
            embedder = application.embedder(MODEL)
            begun = time.perf_counter()
            for key in reversed(keys):
                chunk_window(application.database, month_window(key), settings.chunking)
            with application.database.transaction() as connection:
                update_statistics(connection)
            for key in reversed(keys):
                embed_chunks(application.database, embedder, month_window(key))
            ensure_vector_indexes(application.database, embedder.info)
            bare_s = time.perf_counter() - begun
    finally:
        embedded_server(settings).down()
    return RunCost(len(keys), import_s, run_s, bare_s)
