"""The asset `chunks`."""

import dagster as dg

from rag_assets.automation import when_months_change
from rag_assets.indexing.gate import BatchConfig, pass_quality_gate
from rag_assets.keys import NOTE_EMBEDDINGS, NOTES, OWNERS
from rag_assets.runs.failures import told_as_failure
from rag_assets.runs.months import MonthEvents, MonthOutcome, indexed_month, materialize_months
from rag_assets.runs.partitions import batches, monthly, span
from rag_assets.runs.pools import DATABASE_WRITES
from rag_assets.runs.progress import MonthProgress
from rag_resources.core.chunking_version import chunking_hash
from rag_resources.core.types import TimeWindow
from rag_resources.languages.messages import _
from rag_resources.resources import RagResource
from rag_resources.settings import Settings


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
        automation_condition=when_months_change(),
        description=_(
            "The notes cut by sentences into chunks with their context, by month of the note."
        ),
    )
    def chunks(
        context: dg.AssetExecutionContext, config: BatchConfig, rag: RagResource
    ) -> MonthEvents:
        """Chunk the notes that need it, then refresh the full-text statistics.

        Only the gate of the serving model stops it; another model's gate stops its own vectors.
        """
        indexing = rag.indexing
        with told_as_failure():
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
