"""The assets `embeddings/<model>`, and the checks of their vectors."""

from dataclasses import asdict

import dagster as dg

from rag_assets.automation import when_months_change
from rag_assets.configured import Configured
from rag_assets.indexing.gate import BatchConfig, pass_quality_gate, record_quality
from rag_assets.keys import CHUNKS, OWNERS, embeddings_key
from rag_assets.labels import labelled
from rag_assets.runs.failures import told_as_failure
from rag_assets.runs.months import MonthEvents, MonthOutcome, indexed_month, materialize_months
from rag_assets.runs.partitions import batches, monthly, run_window, span
from rag_assets.runs.pools import model_pool
from rag_assets.runs.progress import MonthProgress
from rag_resources.core.migration_gate import MIN_COSINE
from rag_resources.core.retrievers import VectorKind
from rag_resources.core.types import TimeWindow
from rag_resources.core.windows import WindowsConfig, windows_hash
from rag_resources.languages.messages import _, joined
from rag_resources.resources import RagResource
from rag_resources.settings import Settings


def build_embeddings_asset(model: str, settings: Settings) -> dg.AssetsDefinition:
    """Build the asset of the vectors of chunks that a model makes."""

    @dg.asset(
        key=embeddings_key(model),
        partitions_def=monthly(settings),
        backfill_policy=batches,
        code_version=windows_hash(WindowsConfig()),
        pool=model_pool(model),
        deps=[CHUNKS],
        group_name="indexing",
        owners=OWNERS,
        kinds={"python", "postgres"},
        tags={"model": model},
        automation_condition=when_months_change(),
        description=_(
            "Vectors of the chunks with the model {model}, of the kinds that its configurations "
            "search: of the text, of the text with its context, and of windows of a few sentences."
        ).format(model=model),
    )
    def embeddings(
        context: dg.AssetExecutionContext, config: BatchConfig, rag: RagResource
    ) -> MonthEvents:
        indexing = rag.indexing
        with told_as_failure():
            indexing.register(model)
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
                    **{f"{kind}_vectors": count for kind, count in report.kinds.items()},
                    "embedded": report.embedded,
                    "reused": report.reused,
                    **overridden,
                },
                {"vectors": report.vectors},
            )

        yield from materialize_months(context, month, lambda: indexing.build_indexes(model))

    return embeddings


def build_vectors_checks(model: str, configured: Configured) -> list[dg.AssetChecksDefinition]:
    """Build the checks that a model's vectors are complete, and come from the model."""

    @dg.asset_check(
        asset=embeddings_key(model),
        name="embeddings_complete",
        blocking=True,
        description=_(
            "Each chunk has its vectors, up to date and of the model's dimension; windows lie "
            "inside their chunk."
        ),
    )
    def complete(context: dg.AssetCheckExecutionContext, rag: RagResource) -> dg.AssetCheckResult:
        window = run_window(context.run.tags, rag.settings)
        # Vectors of whole notes are those of note_embeddings.
        gaps = [own for own in rag.indexing.gaps(model, window) if own.kind != VectorKind.NOTE]
        total = sum(own.total for own in gaps)
        told = joined(
            "; ",
            [
                _(
                    "{kind}: {owners} chunks or notes, {missing} without a vector, {stale} vectors "
                    "of another text, {wrong_dimension} of another dimension"
                ).format(**asdict(own))
                for own in gaps
            ],
        )
        return dg.AssetCheckResult(
            passed=total == 0,
            metadata=labelled({name: sum(getattr(own, name) for own in gaps) for name in _COUNTED}),
            description=joined(
                " ",
                (
                    told,
                    _(
                        "If another run or “rag run” was indexing at the same time, nothing is "
                        "missing: repeat the check when it has ended. Otherwise materialise the "
                        "asset again."
                    ),
                ),
            )
            if total
            else told,
        )

    @dg.asset_check(
        asset=embeddings_key(model),
        name="batch_equals_single",
        blocking=True,
        description=_(
            "The vectors are the model's: a sample of the batch, computed again, gives the same "
            "ones, and all have length 1. Otherwise the batch is rejected."
        ),
    )
    def verified(context: dg.AssetCheckExecutionContext, rag: RagResource) -> dg.AssetCheckResult:
        vectors = rag.indexing.verify_vectors(model, run_window(context.run.tags, rag.settings))
        if vectors.faults:
            record_quality(context, rag, configured, model)
        elif vectors.lowest_cosine is None:
            return dg.AssetCheckResult(passed=True, description=_("There is nothing to check yet."))
        return dg.AssetCheckResult(
            passed=not vectors.faults,
            metadata=labelled(asdict(vectors)),
            description=joined("; ", vectors.faults)
            or _(
                "The lowest cosine between the stored vector and the one computed now is "
                "{cosine:.5f} (minimum: {minimum})."
            ).format(cosine=vectors.lowest_cosine, minimum=MIN_COSINE),
        )

    return [complete, verified]


_COUNTED = ("vectors", "missing", "stale", "wrong_dimension")
