"""Records the quality after a migration's batch. The verdict is made in `core.migration_gate`."""

from rag_resources.core.configuration import parse_retrieval
from rag_resources.core.evaluation import hits_of
from rag_resources.core.migration_gate import (
    Baseline,
    BatchVerdict,
    Pair,
    VectorState,
    judge_batch,
    level_of_look,
    refuse_batch,
    serving_with,
    without_windows,
)
from rag_resources.core.types import TimeWindow
from rag_resources.database.pool import Database
from rag_resources.evaluation.asking import ask_in_full
from rag_resources.evaluation.runner import Evaluation
from rag_resources.retrieval.pipeline import RetrievalPipeline
from rag_resources.store.golden import list_golden
from rag_resources.store.migration import (
    BatchQuality,
    BatchRun,
    golden_of_period,
    migrated_period,
    read_baseline,
    read_looks,
    write_batch,
)
from rag_resources.store.promotions import current_promotion


def record_batch(
    database: Database,
    run: BatchRun,
    evaluation: Evaluation,
    *,
    planned: int,
    floor: float,
    vectors: VectorState | None = None,
    pair: Pair | None = None,
) -> BatchVerdict:
    """Judge the quality after a batch against what serves, and store it with the verdict.

    A second call in the same run replaces the row.

    Args:
        database: Open.
        run: The batch that was processed.
        evaluation: The evaluation of all golden questions after the batch.
        planned: Number of batches in the whole migration, at least 1.
        floor: Lowest acceptable Hit_Rate@10.
        vectors: Whether the batch's vectors come from the model; if not, nothing else counts.
        pair: See `measure_pair`; None compares the evaluation with that of what serves.
    """
    hits = hits_of(evaluation.outcomes)
    quality = BatchQuality(
        config_hash=evaluation.context.config.config_hash,
        golden_hash=evaluation.context.golden_hash,
        hit_rate_at_10=evaluation.summary.metrics["hit_rate_at_10"],
        mrr=evaluation.summary.metrics["mrr"],
        latency_p95_ms=evaluation.summary.latency.p95_ms,
        degraded_queries=evaluation.summary.degraded_queries + (pair.degraded if pair else 0),
        found=tuple(sorted(key for key, found in hits.items() if found)),
        missed=tuple(sorted(key for key, found in hits.items() if not found)),
    )
    with database.transaction() as connection:
        looks = read_looks(connection, run)
        baseline = pair.serving if pair else read_baseline(connection)
        level = level_of_look(recorded=looks.recorded, planned=planned, spent=looks.spent)
        verdict = refuse_batch(vectors, quality.degraded_queries) or judge_batch(
            hits, baseline, floor=floor, level=level, compared=pair.hits if pair else None
        )
        write_batch(connection, run, quality, verdict, baseline)
    return verdict


def measure_pair(
    database: Database, pipeline: RetrievalPipeline, model: str, window: TimeWindow
) -> Pair | None:
    """Measure the serving configuration with and without a model, on the notes migrated to it.

    Args:
        database: Open.
        pipeline: Over that database.
        model: The model of a batch.
        window: The months of the batch.

    Returns:
        None if nothing was promoted, or what serves uses this model itself, or no golden question
        is about the notes migrated around the batch.
    """
    with database.transaction() as connection:
        promotion = current_promotion(connection)
        if promotion is None or promotion.model == model:
            return None
        period = migrated_period(connection, model, window)
        asked = golden_of_period(connection, period)
        entries = [entry for entry in list_golden(connection) if entry.golden_id in asked]
    if not entries:
        return None
    served = parse_retrieval(promotion.config, origin=promotion.configuration)
    serving = without_windows(served)
    before, now = (
        ask_in_full(pipeline, config, entries, filters=period)
        for config in (serving, serving_with(serving, model))
    )
    return Pair(
        Baseline(
            promotion.evaluation_id,
            promotion.configuration,
            hits_of(before),
            left_out_windows=serving != served,
        ),
        hits_of(now),
        sum(bool(outcome.degraded) for outcome in (*before, *now)),
    )
