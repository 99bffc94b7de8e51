"""The windows of chunks under a model: their asset and its checks."""

import dagster as dg

from rag_assets.indexing.assets import BatchConfig, pass_quality_gate
from rag_assets.keys import CHUNKS, OWNERS, windows_key
from rag_assets.runs.failures import told_as_failure
from rag_assets.runs.months import MonthEvents, MonthOutcome, indexed_month, materialize_months
from rag_assets.runs.partitions import batches, monthly, run_window, span
from rag_assets.runs.pools import model_pool
from rag_assets.runs.progress import MonthProgress
from rag_resources.core.messages import Message
from rag_resources.core.migration_gate import MIN_COSINE
from rag_resources.core.types import TimeWindow
from rag_resources.core.windows import windows_hash
from rag_resources.resources import RagResource
from rag_resources.settings import Settings


def build_windows_asset(model: str, settings: Settings) -> dg.AssetsDefinition:
    """Make the asset `windows/<model>`."""

    @dg.asset(
        key=windows_key(model),
        partitions_def=monthly(settings),
        backfill_policy=batches,
        code_version=windows_hash(settings.windows),
        pool=model_pool(model),
        deps=[CHUNKS],
        group_name="indexing",
        owners=OWNERS,
        kinds={"python", "postgres", "numpy"},
        tags={"model": model},
        automation_condition=dg.AutomationCondition.eager(),
        description=Message.ASSET_WINDOWS.format(model=model),
    )
    def windows(
        context: dg.AssetExecutionContext, config: BatchConfig, rag: RagResource
    ) -> MonthEvents:
        """Cut the chunks that need it, and embed their windows."""
        indexing = rag.indexing
        with told_as_failure():
            indexing.require_model(model)
            indexing.register(model, embeds_chunks=True)
            indexing.register_windows(model)
            is_done = indexing.has_windows(model, span(context.partition_keys))
        overridden = {} if is_done else pass_quality_gate(context, config, rag, [model])

        def month(window: TimeWindow) -> MonthOutcome:
            progress = MonthProgress(
                context.log, window, lambda: indexing.left_to_cut(model, window)
            )
            report = indexing.embed_windows(model, window, progress=progress)
            return indexed_month(
                indexing,
                window,
                report,
                {
                    "migrated": report.notes,
                    "windows": report.vectors,
                    "embedded": report.embedded,
                    "reused": report.reused,
                    **overridden,
                },
                {"windows": report.vectors},
            )

        def finish() -> None:
            indexing.build_window_index(model)

        yield from materialize_months(context, month, finish)

    return windows


def build_windows_checks(model: str) -> list[dg.AssetChecksDefinition]:
    """Make the checks of `windows/<model>`."""

    @dg.asset_check(
        asset=windows_key(model),
        name="windows_complete",
        blocking=True,
        description=Message.CHECK_WINDOWS_COMPLETE,
    )
    def windows_complete(
        context: dg.AssetCheckExecutionContext, rag: RagResource
    ) -> dg.AssetCheckResult:
        gaps = rag.indexing.window_gaps(model, run_window(context.run.tags, rag.settings))
        return dg.AssetCheckResult(
            passed=gaps.total == 0,
            metadata={
                "chunks": gaps.chunks,
                "windows": gaps.windows,
                "missing": gaps.missing,
                "pending": gaps.pending,
                "out_of_bounds": gaps.out_of_bounds,
            },
            description=Message.WINDOWS_GAPS.format(
                missing=gaps.missing,
                pending=gaps.pending,
                out_of_bounds=gaps.out_of_bounds,
                wrong=gaps.wrong_dimension,
                windows=gaps.windows,
            ),
        )

    @dg.asset_check(
        asset=windows_key(model),
        name="windows_batch_equals_single",
        description=Message.CHECK_WINDOWS_BATCH_SINGLE,
    )
    def windows_batch_equals_single(rag: RagResource) -> dg.AssetCheckResult:
        cosine = rag.indexing.lowest_window_cosine(model)
        if cosine is None:
            return dg.AssetCheckResult(passed=True, description=Message.NOTHING_TO_CHECK)
        return dg.AssetCheckResult(
            passed=cosine >= MIN_COSINE,
            severity=dg.AssetCheckSeverity.WARN,
            metadata={"lowest_cosine": cosine},
            description=Message.BATCH_DIFFERS.format(cosine=cosine, minimum=MIN_COSINE),
        )

    return [windows_complete, windows_batch_equals_single]
