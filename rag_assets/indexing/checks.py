"""Checks of chunks and vectors, and of retrieval quality after every batch."""

import math
from collections.abc import Mapping

import dagster as dg

from rag_assets.configured import Configured
from rag_assets.evaluation.metadata import evaluation_metadata
from rag_assets.keys import CHUNKS, GOLDEN_DATASET, embeddings_key
from rag_assets.runs.partitions import batches, month_window, monthly, run_window
from rag_resources.core.errors import InvalidGoldenDatasetError
from rag_resources.core.messages import Message
from rag_resources.core.migration_gate import MIN_COSINE, serving_with
from rag_resources.core.texts import joined
from rag_resources.resources import RagResource
from rag_resources.settings import Settings

EXAMPLES = 10


@dg.asset_check(asset=CHUNKS, blocking=True, description=Message.CHECK_CHUNK_INTEGRITY)
def chunk_integrity(
    context: dg.AssetCheckExecutionContext, rag: RagResource
) -> dg.AssetCheckResult:
    """Check the bounds, sequence and coverage of the chunks in the run's months."""
    checked, broken = rag.indexing.broken_notes(run_window(context.run.tags, rag.settings))
    examples = ", ".join(f"{note.note_id} ({note.problem})" for note in broken[:EXAMPLES])
    return dg.AssetCheckResult(
        passed=not broken,
        metadata={"notes": checked, "broken": len(broken)},
        description=Message.CHUNKS_BROKEN.format(examples=examples)
        if broken
        else Message.CHUNKS_SOUND.format(notes=checked),
    )


def build_embeddings_checks(model: str, configured: Configured) -> list[dg.AssetChecksDefinition]:
    """Build the checks of `embeddings/<model>`."""

    @dg.asset_check(
        asset=embeddings_key(model),
        name="embeddings_complete",
        blocking=True,
        description=Message.CHECK_EMBEDDINGS_COMPLETE,
    )
    def embeddings_complete(
        context: dg.AssetCheckExecutionContext, rag: RagResource
    ) -> dg.AssetCheckResult:
        gaps = rag.indexing.gaps(model, run_window(context.run.tags, rag.settings))
        return dg.AssetCheckResult(
            passed=gaps.total == 0,
            metadata={"chunks": gaps.chunks, "missing": gaps.missing, "stale": gaps.stale},
            description=Message.EMBEDDINGS_GAPS.format(
                chunks=gaps.chunks,
                missing=gaps.missing,
                stale=gaps.stale,
                wrong=gaps.wrong_dimension,
            ),
        )

    @dg.asset_check(
        asset=embeddings_key(model),
        name="batch_equals_single",
        blocking=True,
        description=Message.CHECK_BATCH_SINGLE,
    )
    def batch_equals_single(
        context: dg.AssetCheckExecutionContext, rag: RagResource
    ) -> dg.AssetCheckResult:
        vectors = rag.indexing.verify_vectors(model, run_window(context.run.tags, rag.settings))
        if vectors.lowest_cosine is None and not vectors.faults:
            return dg.AssetCheckResult(passed=True, description=Message.NOTHING_TO_CHECK)
        return dg.AssetCheckResult(
            passed=not vectors.faults,
            metadata={
                "sampled": vectors.sampled,
                "lowest_cosine": vectors.lowest_cosine,
                "wrong_norms": vectors.wrong_norms,
                "wrong_dimension": vectors.wrong_dimension,
            },
            description=joined("; ", vectors.faults)
            or Message.BATCH_DIFFERS.format(cosine=vectors.lowest_cosine, minimum=MIN_COSINE),
        )

    @dg.asset_check(
        asset=embeddings_key(model),
        name="retrieval_quality",
        additional_deps=[GOLDEN_DATASET],
        description=Message.CHECK_RETRIEVAL_QUALITY,
    )
    def retrieval_quality(
        context: dg.AssetCheckExecutionContext, rag: RagResource
    ) -> dg.AssetCheckResult:
        serving, window = rag.serving.now(), run_window(context.run.tags, configured.settings)
        measured = serving_with(serving.config, model)
        try:
            evaluation = rag.evaluations.measure(model, measured)
        except InvalidGoldenDatasetError:
            return dg.AssetCheckResult(
                passed=False,
                severity=dg.AssetCheckSeverity.WARN,
                description=Message.QUALITY_WITHOUT_GOLDEN,
            )
        batch = rag.migration.record_batch(
            model,
            evaluation,
            run_id=context.run.run_id,
            months=run_months(context.run.tags, configured.settings),
            window=window,
            planned=planned_batches(configured.settings),
            vectors=rag.indexing.verify_vectors(model, window),
        )
        next_batch = Message.BATCH_OPEN if batch.is_open else Message.BATCH_CLOSED
        return dg.AssetCheckResult(
            passed=batch.is_open,
            # An error that does not block: this run is over, and the next one reads the gate.
            severity=dg.AssetCheckSeverity.WARN if batch.is_open else dg.AssetCheckSeverity.ERROR,
            metadata={
                **evaluation_metadata(evaluation, rag.evaluations),
                "configuration": serving.name,
                "config_hash": measured.config_hash,
                "next_batch": "open" if batch.is_open else "closed",
                "level": batch.level,
                "p_value": batch.drop.p_value if batch.drop else None,
                "compared_queries": batch.drop.compared if batch.drop else 0,
                "baseline_hit_rate_at_10": batch.drop.before if batch.drop else None,
                "compared_hit_rate_at_10": batch.drop.now if batch.drop else None,
            },
            description=f"{next_batch}: {batch.reason}.",
        )

    return [embeddings_complete, batch_equals_single, retrieval_quality]


def run_months(tags: Mapping[str, str], settings: Settings) -> tuple[str, ...]:
    """Return the months of a run as `YYYY-MM`; empty if it has no partitions."""
    if not tags.keys() & {"dagster/partition", "dagster/asset_partition_range_start"}:
        return ()
    window = run_window(tags, settings)
    return tuple(
        key[:7]
        for key in monthly(settings).get_partition_keys()
        if window.start <= month_window(key).start < window.end
    )


def planned_batches(settings: Settings) -> int:
    """Return the number of batches in all months."""
    return math.ceil(
        len(monthly(settings).get_partition_keys()) / (batches.max_partitions_per_run or 1)
    )
