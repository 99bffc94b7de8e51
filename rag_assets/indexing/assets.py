"""Chunks, and their vectors under every configured model.

A run that has work to do reads the quality gate at its start: the check of the run before cannot
stop it.
"""

from collections.abc import Sequence
from datetime import UTC

import dagster as dg
from pydantic import Field

from rag_assets.keys import CHUNKS, NOTE_EMBEDDINGS, NOTES, OWNERS, embeddings_key
from rag_assets.runs.failures import told_as_failure
from rag_assets.runs.months import MonthEvents, MonthOutcome, indexed_month, materialize_months
from rag_assets.runs.partitions import batches, monthly, span
from rag_assets.runs.pools import DATABASE_WRITES, model_pool
from rag_assets.runs.progress import MonthProgress
from rag_resources.core.chunking_version import chunking_hash
from rag_resources.core.messages import Message
from rag_resources.core.types import TimeWindow
from rag_resources.indexing.chunk import chunk_window
from rag_resources.indexing.embed import embed_chunks
from rag_resources.ingestion.content_settings import (
    CHUNKING_SETTINGS,
    require_model,
    require_settings,
)
from rag_resources.resources import RagResource
from rag_resources.settings import Settings
from rag_resources.store.chunks import (
    count_notes_to_chunk,
    update_statistics,
)
from rag_resources.store.embeddings import count_pending
from rag_resources.store.holds import refuse_while_held
from rag_resources.store.index_state import bump_index_version
from rag_resources.store.migration import (
    StoredBatch,
    closed_batches,
    override_batches,
    vectors_are_current,
)
from rag_resources.store.models import register_model
from rag_resources.store.progress import index_is_current
from rag_resources.store.vector_indexes import ensure_vector_indexes


class BatchConfig(dg.Config):
    """What a person may say of a batch, as the launchpad asks for it."""

    override_quality_gate: str = Field(default="", description=Message.FIELD_OVERRIDE_QUALITY_GATE)


def pass_quality_gate(
    context: dg.AssetExecutionContext,
    config: BatchConfig,
    rag: RagResource,
    models: Sequence[str],
) -> dict[str, str]:
    """Go on only if the last batch of every model left its gate open, or somebody says why.

    A migration that is held goes on by no override. The run fails: one that skipped its months
    would be green, and nobody would see that their notes wait.

    Returns:
        What the run's materialisations are to tell of an override; empty if there was none.

    Raises:
        dagster.Failure: A gate is closed, or somebody holds the migration; it says which, why,
            and how to go on.
    """
    application = rag.application
    way = chunking_hash(application.settings.chunking)
    override = config.override_quality_gate.strip()
    with told_as_failure(), application.database.transaction() as connection:
        refuse_while_held(connection)
        closed = closed_batches(connection, models, chunking_hash=way)
        if override:
            override_batches(connection, closed, reason=override, run_id=context.run.run_id)
    if not closed:
        return {}
    if not override:
        refusal = Message.BATCH_REFUSED.format(
            batches=describe_closed(closed), op=context.op_execution_context.op_handle.name
        )
        raise dg.Failure(refusal, allow_retries=False)
    overridden = ", ".join(batch.model for batch in closed)
    context.log.warning(
        Message.BATCH_OVERRIDDEN.format(models=overridden, override_reason=override)
    )
    return {"override_quality_gate": override}


def describe_closed(closed: Sequence[StoredBatch]) -> str:
    """Return which batches closed their gate, when and why, a line each."""
    return "\n".join(
        Message.BATCH_REFUSED_BY.format(
            model=batch.model, finished_at=batch.finished_at.astimezone(UTC), reason=batch.reason
        )
        for batch in closed
    )


def build_chunks_asset(settings: Settings) -> dg.AssetsDefinition:
    """Make the asset `chunks`."""

    @dg.asset(
        partitions_def=monthly(settings),
        backfill_policy=batches,
        code_version=chunking_hash(settings.chunking),
        pool=DATABASE_WRITES,
        deps=[NOTES, NOTE_EMBEDDINGS],
        group_name="indexing",
        owners=OWNERS,
        kinds={"python", "postgres"},
        automation_condition=dg.AutomationCondition.eager(),
        description=Message.ASSET_CHUNKS,
    )
    def chunks(
        context: dg.AssetExecutionContext, config: BatchConfig, rag: RagResource
    ) -> MonthEvents:
        """Chunk the notes that need it, then refresh what full-text search knows of the words."""
        application = rag.application
        way = chunking_hash(application.settings.chunking)
        with told_as_failure():
            require_settings(application.database, application.settings, CHUNKING_SETTINGS)
            with application.database.transaction() as connection:
                is_done = index_is_current(
                    connection, span(context.partition_keys), chunking_hash=way, models=()
                )
        models = application.settings.embedding_models
        overridden = {} if is_done else pass_quality_gate(context, config, rag, models)
        written = 0

        def month(window: TimeWindow) -> MonthOutcome:
            nonlocal written

            progress = MonthProgress(
                context.log,
                window,
                application.database,
                lambda connection: count_notes_to_chunk(connection, window, chunking_hash=way),
            )
            report = chunk_window(
                application.database, window, application.settings.chunking, progress=progress
            )
            written += report.chunks
            return indexed_month(
                application.database,
                window,
                report,
                {"migrated": report.notes, "chunks": report.chunks, **overridden},
                {"notes": report.notes},
            )

        def finish() -> None:
            with application.database.transaction() as connection:
                # A run that was killed here left nothing to chunk and old statistics.
                update_statistics(connection, rewritten=written)

        yield from materialize_months(context, month, finish)

    return chunks


def build_embeddings_asset(model: str, settings: Settings) -> dg.AssetsDefinition:
    """Make the asset `embeddings/<model>`."""

    @dg.asset(
        key=embeddings_key(model),
        partitions_def=monthly(settings),
        backfill_policy=batches,
        pool=model_pool(model),
        deps=[CHUNKS],
        group_name="indexing",
        owners=OWNERS,
        kinds={"python", "postgres", "numpy"},
        tags={"model": model},
        automation_condition=dg.AutomationCondition.eager(),
        description=Message.ASSET_EMBEDDINGS.format(model=model),
    )
    def embeddings(
        context: dg.AssetExecutionContext, config: BatchConfig, rag: RagResource
    ) -> MonthEvents:
        application = rag.application
        embedder = application.embedder(model)
        with told_as_failure():
            require_model(application.database, application.settings, model)
            with application.database.transaction() as connection:
                register_model(connection, embedder.info, embeds_chunks=True)
                is_done = vectors_are_current(connection, model, span(context.partition_keys))
        overridden = {} if is_done else pass_quality_gate(context, config, rag, [model])

        def month(window: TimeWindow) -> MonthOutcome:
            progress = MonthProgress(
                context.log,
                window,
                application.database,
                lambda connection: count_pending(connection, model, window, skipped=()),
            )
            report = embed_chunks(application.database, embedder, window, progress=progress)
            return indexed_month(
                application.database,
                window,
                report,
                {
                    "migrated": report.notes,
                    "vectors": report.vectors,
                    "embedded": report.embedded,
                    "reused": report.reused,
                    **overridden,
                },
                {"vectors": report.vectors},
            )

        def finish() -> None:
            built = ensure_vector_indexes(
                application.database,
                embedder.info,
                min_rows=application.settings.hnsw_min_rows,
            )
            if built:
                with application.database.transaction() as connection:
                    bump_index_version(connection)

        yield from materialize_months(context, month, finish)

    return embeddings
