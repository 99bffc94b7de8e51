"""Rows of `evaluation_results`, `evaluation_queries` and `promotions`."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from psycopg.types.json import Jsonb

from rag_resources.core.configuration import RetrievalConfig
from rag_resources.core.evaluation import QueryOutcome, StoredEvaluation, Summary
from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries

_COLUMNS = tuple(column.name for column in fields(StoredEvaluation))
_SUMMARY_METRICS = (
    "hit_rate_at_1",
    "hit_rate_at_3",
    "hit_rate_at_5",
    "hit_rate_at_10",
    "mrr",
    "precision_at_10",
    "recall_at_10",
    "ndcg_at_10",
)


@dataclass(frozen=True, slots=True)
class EvaluationContext:
    """What an evaluation was run on, beside its configuration."""

    configuration: str
    config: RetrievalConfig
    golden_hash: str
    model_digest: str
    index_version: int
    run_id: str | None = None


@dataclass(frozen=True, slots=True)
class Promotion:
    """What serves since when."""

    configuration: str
    config: dict[str, Any]
    config_hash: str
    model: str
    evaluation_id: UUID
    promoted_at: datetime


def insert_evaluation(
    connection: Connection,
    context: EvaluationContext,
    summary: Summary,
    outcomes: Sequence[QueryOutcome],
) -> UUID:
    """Store an evaluation with its questions, in the caller's transaction. Property 29."""
    evaluation_id = uuid4()
    queries().insert_evaluation(
        connection,
        id=evaluation_id,
        configuration=context.configuration,
        config=Jsonb(context.config.model_dump(mode="json")),
        config_hash=context.config.config_hash,
        golden_hash=context.golden_hash,
        model=context.config.model,
        model_digest=context.model_digest,
        index_version=context.index_version,
        run_id=context.run_id,
        total_queries=summary.total_queries,
        failed_queries=summary.failed_queries,
        degraded_queries=summary.degraded_queries,
        hit_rate_at_10_low=summary.verdict.interval.low,
        hit_rate_at_10_high=summary.verdict.interval.high,
        latency_p50_ms=summary.latency.p50_ms,
        latency_p95_ms=summary.latency.p95_ms,
        latency_p99_ms=summary.latency.p99_ms,
        stage_latencies=Jsonb({name: asdict(values) for name, values in summary.stages.items()}),
        breakdown=Jsonb(dict(summary.breakdown)),
        gate=summary.verdict.state.value,
        **{name: summary.metrics[name] for name in _SUMMARY_METRICS},
    )
    queries().insert_evaluation_query(
        connection, [_query_row(evaluation_id, summary, outcome) for outcome in outcomes]
    )
    return evaluation_id


def latest_evaluation(connection: Connection, configuration: str) -> StoredEvaluation | None:
    """Return the newest evaluation of a configuration."""
    row = queries().latest_evaluation(connection, configuration=configuration)
    return _stored(row) if row else None


def latest_evaluations(connection: Connection) -> list[StoredEvaluation]:
    """Return the newest evaluation of every configuration, by name."""
    return [_stored(row) for row in queries().latest_evaluations(connection)]


def evaluation_history(connection: Connection, *, limit: int) -> list[StoredEvaluation]:
    """Return the newest evaluations of all configurations, oldest first."""
    return [_stored(row) for row in queries().evaluation_history(connection, row_limit=limit)]


def promote(
    connection: Connection,
    evaluation: StoredEvaluation,
    config: RetrievalConfig,
    *,
    run_id: str | None,
) -> bool:
    """Make a configuration the one that serves, in the caller's transaction.

    Returns:
        False if this very configuration and evaluation serve already: nothing was written.
    """
    queries().lock_promotions(connection)
    current = current_promotion(connection)
    if current and current.evaluation_id == evaluation.evaluation_id:
        return False
    queries().insert_promotion(
        connection,
        configuration=evaluation.configuration,
        config=Jsonb(config.model_dump(mode="json")),
        config_hash=config.config_hash,
        model=config.model,
        evaluation_id=evaluation.evaluation_id,
        run_id=run_id,
    )
    queries().serve_model(connection, model=config.model)
    return True


def current_promotion(connection: Connection) -> Promotion | None:
    """Return what serves now, None before the first promotion."""
    row = queries().current_promotion(connection)
    return Promotion(*row) if row else None


def _stored(row: Any) -> StoredEvaluation:
    return StoredEvaluation(row.id, *(getattr(row, name) for name in _COLUMNS[1:]))


def _query_row(evaluation_id: UUID, summary: Summary, outcome: QueryOutcome) -> dict[str, Any]:
    judged = outcome.judged
    return {
        "evaluation_id": evaluation_id,
        "golden_id": outcome.golden.golden_id,
        "query": outcome.golden.query,
        "category": outcome.golden.category,
        "difficulty": outcome.golden.difficulty,
        "relevant_note_ids": list(outcome.golden.relevant_note_ids),
        "retrieved_note_ids": [UUID(note_id) for note_id in judged.distinct],
        "first_relevant_rank": judged.first_relevant_rank,
        "metrics": Jsonb(dict(summary.per_query[outcome.key])),
        "latency_ms": outcome.latency_ms,
        "stage_latencies": Jsonb(dict(outcome.stages)),
        "degraded": list(outcome.degraded),
        "error": outcome.error,
    }
