"""What is made of the notes by month: chunks, vectors of each model, and the causal graph."""

from collections.abc import Sequence
from datetime import UTC

import dagster as dg

from rag_assets.automation import when_months_change
from rag_assets.gates import NOTHING_DELETED, record_quality
from rag_assets.keys import (
    CHUNKS,
    DATABASE_WRITES,
    NOTE_EMBEDDINGS,
    NOTES,
    OWNERS,
    embeddings_key,
    graph_key,
    model_pool,
)
from rag_assets.launchpad import BatchConfig
from rag_assets.partitions import batches, monthly, span
from rag_assets.runs.failures import told_as_failure
from rag_assets.runs.months import (
    MonthEvents,
    MonthOutcome,
    MonthProgress,
    indexed_month,
    materialize_months,
)
from rag_resources.core.chunking_version import chunking_hash
from rag_resources.core.errors import ProviderUnavailableError
from rag_resources.core.graph_version import GraphPart
from rag_resources.core.types import TimeWindow
from rag_resources.core.windows import WindowsConfig, windows_hash
from rag_resources.graph.extraction import LANGUAGE_MODEL, extractor_version
from rag_resources.languages.messages import _, joined
from rag_resources.resources import RagResource
from rag_resources.settings import Settings
from rag_resources.store.migration import StoredBatch


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
            faults = indexing.verify_vectors(model, window).faults
            if faults and not report.vectors:  # Of an earlier run: a sound model makes them again.
                indexing.discard_refused(model, window)
                report = indexing.embed(model, window, progress=progress)
                faults = indexing.verify_vectors(model, window).faults
            if faults:
                record_quality(context, rag, model)
                if not report.vectors:  # The model is at fault now, not what is stored.
                    raise ProviderUnavailableError(joined("; ", (*faults, NOTHING_DELETED)))
                indexing.discard_vectors(model, window)
                raise ProviderUnavailableError(
                    _(
                        "{faults}. They were deleted, and their notes wait. Mend what makes them, "
                        "repeat the check retrieval_quality, which opens the gate, and launch the "
                        "months again."
                    ).format(faults=joined("; ", faults))
                )
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
            how to continue.
    """
    override = config.override_quality_gate.strip()
    with told_as_failure():
        closed = rag.migration.closed_gates(models, override=override, run_id=context.run.run_id)
    if not closed:
        return {}
    if not override:
        refusal = _(
            "This batch does not start: the quality gate is closed.\n{batches}\nMend the cause "
            "and repeat only the check retrieval_quality of each named asset: if quality is back, "
            "it opens the gate. To go on without that, give the reason in the run configuration: "
            'ops: {{{op}: {{config: {{override_quality_gate: "…"}}}}}}'
        ).format(batches=describe_closed(closed), op=context.op_execution_context.op_handle.name)
        raise dg.Failure(refusal, allow_retries=False)
    overridden = ", ".join(batch.model for batch in closed)
    context.log.warning(
        _("Going on despite the closed quality gate of {models}; reason: {override_reason}").format(
            models=overridden, override_reason=override
        )
    )
    return {"override_quality_gate": override}


def describe_closed(closed: Sequence[StoredBatch]) -> str:
    """Return the batches that closed their gate, with time and reason, one per line."""
    return "\n".join(
        _("embeddings/{model}, measured on {finished_at:%Y-%m-%d %H:%M} UTC: {reason}.").format(
            model=batch.model, finished_at=batch.finished_at.astimezone(UTC), reason=batch.reason
        )
        for batch in closed
    )


_DESCRIPTIONS = {
    GraphPart.MENTIONS: _(
        "What the notes speak of: names, tags and dates, with the place of each mention in its "
        "chunk, by month of the note."
    ),
    GraphPart.STATEMENTS: _(
        "What the notes say is the cause of something: cause, effect, connective and relation, "
        "with its place in the chunk, by month of the note."
    ),
}


def build_graph_asset(part: GraphPart, settings: Settings) -> dg.AssetsDefinition:
    """Build the asset of a part of the graph."""
    model = settings.llm_model or "" if settings.graph_extractor == LANGUAGE_MODEL else None

    @dg.asset(
        key=graph_key(part),
        partitions_def=monthly(settings),
        backfill_policy=batches,
        code_version=extractor_version(part, model),
        pool=DATABASE_WRITES,
        deps=[CHUNKS],
        group_name="indexing",
        owners=OWNERS,
        kinds={"python", "postgres"},
        automation_condition=when_months_change(),
        description=_DESCRIPTIONS[part],
    )
    def graph_asset(context: dg.AssetExecutionContext, rag: RagResource) -> MonthEvents:
        graph = rag.graph
        with told_as_failure():
            graph.register(part)

        def month(window: TimeWindow) -> MonthOutcome:
            progress = MonthProgress(context.log, window, lambda: graph.left(part, window))
            report = graph.read(part, window, progress=progress)
            counts = {"read": report.notes, "found": report.found}
            return indexed_month(rag.indexing, window, report, counts, {"notes": report.notes})

        yield from materialize_months(context, month, graph.clean)

    return graph_asset
