"""Checks of chunks and vectors, and of retrieval quality after every batch."""

import math
from collections.abc import Mapping

import dagster as dg

from rag_assets.configured import Configured
from rag_assets.evaluation.metadata import evaluation_metadata
from rag_assets.keys import CHUNKS, GOLDEN_DATASET, embeddings_key
from rag_assets.runs.partitions import batches, month_window, monthly, run_window
from rag_resources.core.errors import InvalidGoldenDatasetError
from rag_resources.core.gate import GateState
from rag_resources.core.messages import Message
from rag_resources.evaluation.summary import gate_in_words
from rag_resources.indexing.verify import (
    MIN_COSINE,
)
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
        description=Message.CHECK_BATCH_SINGLE,
    )
    def batch_equals_single(rag: RagResource) -> dg.AssetCheckResult:
        cosine = rag.indexing.lowest_cosine(model)
        if cosine is None:
            return dg.AssetCheckResult(passed=True, description=Message.NOTHING_TO_CHECK)
        return dg.AssetCheckResult(
            passed=cosine >= MIN_COSINE,
            severity=dg.AssetCheckSeverity.WARN,
            metadata={"lowest_cosine": cosine},
            description=Message.BATCH_DIFFERS.format(cosine=cosine, minimum=MIN_COSINE),
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
        try:
            evaluation = rag.evaluations.measure(model, configured.representative(model))
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
            planned=planned_batches(configured.settings),
        )
        verdict = evaluation.summary.verdict
        described = gate_in_words(verdict, evaluation.summary.total_queries)
        next_batch = Message.BATCH_OPEN if batch.is_open else Message.BATCH_CLOSED
        return dg.AssetCheckResult(
            passed=batch.is_open and verdict.state is not GateState.FAIL,
            # An error that does not block: this run is over, and the next one reads the gate.
            severity=dg.AssetCheckSeverity.WARN if batch.is_open else dg.AssetCheckSeverity.ERROR,
            metadata={
                **evaluation_metadata(evaluation, rag.evaluations),
                "next_batch": "open" if batch.is_open else "closed",
                "level": batch.level,
                "p_value": batch.drop.p_value if batch.drop else None,
                "baseline_hit_rate_at_10": batch.drop.before if batch.drop else None,
            },
            description=f"{described}. {next_batch}: {batch.reason}.",
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
