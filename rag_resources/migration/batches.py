"""Records the quality after a migration's batch. The verdict is made in `core.quality_watch`."""

from rag_resources.core.quality_watch import BatchVerdict, judge_batch, level_of_look
from rag_resources.database.pool import Database
from rag_resources.evaluation.runner import Evaluation
from rag_resources.store.migration import (
    BatchQuality,
    BatchRun,
    read_baseline,
    read_looks,
    write_batch,
)


def record_batch(
    database: Database,
    run: BatchRun,
    evaluation: Evaluation,
    *,
    planned: int,
    floor: float,
) -> BatchVerdict:
    """Judge the quality after a batch against what served before, and store it with the verdict.

    A second call in the same run replaces the row.

    Args:
        database: Open.
        run: The batch that was processed.
        evaluation: Over all golden questions.
        planned: Number of batches in the whole migration, at least 1.
        floor: Lowest acceptable Hit_Rate@10.
    """
    per_query = evaluation.summary.per_query
    hits = {
        outcome.golden.golden_id: per_query[outcome.key]["hit_rate_at_10"] == 1
        for outcome in evaluation.outcomes
        if outcome.golden.golden_id
    }
    quality = BatchQuality(
        config_hash=evaluation.versions.config_hash,
        golden_hash=evaluation.versions.golden_hash,
        hit_rate_at_10=evaluation.summary.metrics["hit_rate_at_10"],
        mrr=evaluation.summary.metrics["mrr"],
        latency_p95_ms=evaluation.summary.latency.p95_ms,
        found=tuple(sorted(key for key, found in hits.items() if found)),
        missed=tuple(sorted(key for key, found in hits.items() if not found)),
    )
    with database.transaction() as connection:
        looks = read_looks(connection, run)
        baseline = read_baseline(connection, looks.started_at)
        level = level_of_look(recorded=looks.recorded, planned=planned, spent=looks.spent)
        verdict = judge_batch(hits, baseline, floor=floor, level=level)
        write_batch(connection, run, quality, verdict, baseline)
    return verdict
