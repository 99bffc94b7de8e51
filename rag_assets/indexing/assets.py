"""The assets of chunks and of each configured model's vectors.

A run with work to do reads the quality gate when it starts, because the previous run's check cannot
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
from rag_resources.ingestion.content_settings import CHUNKING_SETTINGS
from rag_resources.resources import RagResource
from rag_resources.settings import Settings
from rag_resources.store.migration import (
    StoredBatch,
)


class BatchConfig(dg.Config):
    """What a person may say of a batch, as the launchpad asks for it."""

    override_quality_gate: str = Field(default="", description=Message.FIELD_OVERRIDE_QUALITY_GATE)


def pass_quality_gate(
    context: dg.AssetExecutionContext,
    config: BatchConfig,
    rag: RagResource,
    models: Sequence[str],
) -> dict[str, str]:
    """Continue only if the last batch of every model left its gate open, or a person overrides it.

    No override lifts a hold. A stopped run fails instead of skipping its months: a green run would
    hide that their notes are waiting.

    Returns:
        Metadata about the override for the run's materialisations; empty if there was none.

    Raises:
        dagster.Failure: A gate is closed or the migration is held; the text says which, why, and
            how to go on.
    """
    override = config.override_quality_gate.strip()
    with told_as_failure():
        closed = rag.migration.closed_gates(models, override=override, run_id=context.run.run_id)
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
    """Return the batches that closed their gate, with time and reason, one per line."""
    return "\n".join(
        Message.BATCH_REFUSED_BY.format(
            model=batch.model, finished_at=batch.finished_at.astimezone(UTC), reason=batch.reason
        )
        for batch in closed
    )


def build_chunks_asset(settings: Settings) -> dg.AssetsDefinition:
    """Build the asset `chunks`."""

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
        """Chunk the notes that need it, then refresh the full-text statistics.

        Only the gate of the model that serves stops it: each other one stops its own vectors.
        """
        indexing = rag.indexing
        with told_as_failure():
            indexing.require_settings(CHUNKING_SETTINGS)
            is_done = indexing.is_chunked(span(context.partition_keys))
            serves = rag.serving.now().config.model
        overridden = {} if is_done else pass_quality_gate(context, config, rag, [serves])
        written = 0

        def month(window: TimeWindow) -> MonthOutcome:
            nonlocal written

            progress = MonthProgress(context.log, window, lambda: indexing.left_to_chunk(window))
            report = indexing.chunk(window, progress=progress)
            written += report.chunks
            return indexed_month(
                indexing,
                window,
                report,
                {"migrated": report.notes, "chunks": report.chunks, **overridden},
                {"notes": report.notes},
            )

        def finish() -> None:
            # Always: a run killed before this has chunked notes without updating the statistics.
            indexing.refresh_statistics(rewritten=written)

        yield from materialize_months(context, month, finish)

    return chunks


def build_embeddings_asset(model: str, settings: Settings) -> dg.AssetsDefinition:
    """Build the asset `embeddings/<model>`."""

    @dg.asset(
        key=embeddings_key(model),
        partitions_def=monthly(settings),
        backfill_policy=batches,
        pool=model_pool(model),
        deps=[CHUNKS],
        group_name="indexing",
        owners=OWNERS,
        kinds={"python", "postgres"},
        tags={"model": model},
        automation_condition=dg.AutomationCondition.eager(),
        description=Message.ASSET_EMBEDDINGS.format(model=model),
    )
    def embeddings(
        context: dg.AssetExecutionContext, config: BatchConfig, rag: RagResource
    ) -> MonthEvents:
        indexing = rag.indexing
        with told_as_failure():
            indexing.require_model(model)
            indexing.register(model, embeds_chunks=True)
            is_done = indexing.is_embedded(model, span(context.partition_keys))
        overridden = {} if is_done else pass_quality_gate(context, config, rag, [model])

        def month(window: TimeWindow) -> MonthOutcome:
            progress = MonthProgress(
                context.log, window, lambda: indexing.left_to_embed(model, window)
            )
            report = indexing.embed(model, window, progress=progress)
            return indexed_month(
                indexing,
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
            indexing.build_vector_indexes(model)

        yield from materialize_months(context, month, finish)

    return embeddings
