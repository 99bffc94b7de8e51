"""Chunks, and their vectors under every configured model."""

import dagster as dg

from rag_assets.assets.ingestion import OWNERS, note_embeddings, notes
from rag_assets.failures import told_as_failure
from rag_assets.months import MonthEvents, MonthOutcome, materialize_months
from rag_assets.partitions import batches, monthly
from rag_resources.core.messages import Message
from rag_resources.core.types import TimeWindow
from rag_resources.indexing.chunk import chunk_window
from rag_resources.indexing.embed import embed_chunks
from rag_resources.resources import RagResource
from rag_resources.settings import settings
from rag_resources.store.chunks import (
    bump_index_version,
    refresh_statistics,
    statistics_are_current,
)
from rag_resources.store.embeddings import ensure_vector_indexes, register_model


@dg.asset(
    partitions_def=monthly,
    backfill_policy=batches,
    deps=[notes, note_embeddings],
    group_name="indexing",
    owners=OWNERS,
    kinds={"python", "postgres"},
    automation_condition=dg.AutomationCondition.eager(),
    description=Message.ASSET_CHUNKS,
)
def chunks(context: dg.AssetExecutionContext, rag: RagResource) -> MonthEvents:
    """Chunk the notes that need it, then refresh what full-text search knows of the words."""
    application = rag.application
    written = 0

    def month(window: TimeWindow) -> MonthOutcome:
        nonlocal written
        report = chunk_window(application.database, window, application.settings.chunking)
        written += report.notes
        return MonthOutcome(
            {"notes": report.notes, "chunks": report.chunks, "failed": len(report.failed)},
            [f"{failure.note_id}: {failure.error}" for failure in report.failed],
        )

    def finish() -> None:
        with application.database.transaction() as connection:
            # A run that was killed here left nothing to chunk and old statistics.
            if written or not statistics_are_current(connection):
                refresh_statistics(connection)

    yield from materialize_months(context, month, finish)


def build_embeddings_asset(model: str) -> dg.AssetsDefinition:
    """Make the asset `embeddings/<model>`."""

    @dg.asset(
        key=embeddings_key(model),
        partitions_def=monthly,
        backfill_policy=batches,
        deps=[chunks],
        group_name="indexing",
        owners=OWNERS,
        kinds={"python", "postgres", "numpy"},
        tags={"model": model},
        automation_condition=dg.AutomationCondition.eager(),
        description=Message.ASSET_EMBEDDINGS.format(model=model),
    )
    def embeddings(context: dg.AssetExecutionContext, rag: RagResource) -> MonthEvents:
        application = rag.application
        embedder = application.embedder(model)
        with told_as_failure(), application.database.transaction() as connection:
            register_model(connection, embedder.info, embeds_chunks=True)
        written = 0

        def month(window: TimeWindow) -> MonthOutcome:
            nonlocal written
            report = embed_chunks(application.database, embedder, window)
            written += report.notes
            return MonthOutcome(
                {
                    "notes": report.notes,
                    "vectors": report.vectors,
                    "embedded": report.embedded,
                    "reused": report.reused,
                    "failed": len(report.failed),
                },
                [f"{failure.note_id}: {failure.error}" for failure in report.failed],
            )

        def finish() -> None:
            ensure_vector_indexes(
                application.database,
                embedder.info,
                min_rows=application.settings.hnsw_min_rows,
            )
            if written:
                with application.database.transaction() as connection:
                    bump_index_version(connection)

        yield from materialize_months(context, month, finish)

    return embeddings


def embeddings_key(model: str) -> dg.AssetKey:
    """Return the asset key of a model's chunk vectors."""
    return dg.AssetKey(["embeddings", model])


embeddings_assets = [build_embeddings_asset(model) for model in settings().embedding_models]
