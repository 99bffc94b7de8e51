"""Rows of `migration_batches`: the quality after each batch, and whether the next may start."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from rag_resources.configurations import BASELINE_CONFIGURATION
from rag_resources.core.evaluation import StoredEvaluation
from rag_resources.core.filters import RetrievalFilters
from rag_resources.core.migration_gate import Baseline, BatchVerdict
from rag_resources.core.types import TimeWindow
from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries
from rag_resources.languages.messages import restored, to_stored
from rag_resources.store.evaluations import latest_evaluation
from rag_resources.store.promotions import current_promotion, evaluation_of_serving


@dataclass(frozen=True, slots=True)
class BatchRun:
    """The run that finished a batch, and the migration that the batch belongs to.

    Attributes:
        model: The model whose vectors the run made.
        chunking_hash: Identifies the migration, together with the model.
        run_id: Dagster's run id.
        months: As `YYYY-MM`; empty if quality was only measured again.
    """

    model: str
    chunking_hash: str
    run_id: str
    months: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BatchQuality:
    """The results of the golden questions after a batch; `found` and `missed` are golden ids."""

    config_hash: str
    golden_hash: str
    hit_rate_at_10: float
    mrr: float
    latency_p95_ms: float
    found: tuple[UUID, ...]
    missed: tuple[UUID, ...]
    degraded_queries: int = 0


@dataclass(frozen=True, slots=True)
class Looks:
    """Interim quality tests of a migration, excluding one run's.

    Attributes:
        recorded: How many there were since what serves last changed.
        spent: Sum of the significance levels they used.
    """

    recorded: int
    spent: float


@dataclass(frozen=True, slots=True)
class StoredBatch:
    """The part of a row of `migration_batches` that gates and the status need."""

    id: int
    model: str
    chunking_hash: str
    run_id: str
    months: list[str]
    finished_at: datetime
    total_queries: int
    hit_rate_at_10: float
    mrr: float
    latency_p95_ms: float
    baseline_id: UUID | None
    baseline_hit_rate_at_10: float | None
    p_value: float | None
    level: float
    gate: str
    reason: str
    override_reason: str | None
    overridden_at: datetime | None
    override_run_id: str | None
    degraded_queries: int = 0


_COLUMNS = tuple(column.name for column in fields(StoredBatch))


def read_looks(connection: Connection, run: BatchRun) -> Looks:
    """Return the interim tests of a run's migration, excluding its own; locked until commit."""
    queries().lock_batches(connection)
    row = queries().looks_so_far(
        connection, model=run.model, chunking_hash=run.chunking_hash, run_id=run.run_id
    )
    return Looks(row.recorded, row.spent)


def migrated_period(connection: Connection, model: str, window: TimeWindow) -> RetrievalFilters:
    """Return the period around a window in which every note is migrated to a model, as filters.

    Empty filters: every note is.
    """
    row = queries().migrated_period(
        connection, model=model, month_start=window.start, month_end=window.end
    )
    # PostgreSQL keeps microseconds.
    after = row.after + timedelta(microseconds=1) if row.after else None
    return RetrievalFilters(created_from=after, created_until=row.until)


def golden_of_period(connection: Connection, period: RetrievalFilters) -> set[UUID]:
    """Return the golden questions with a relevant note in a period."""
    rows = queries().golden_of_period(
        connection, created_from=period.created_from, created_until=period.created_until
    )
    return {row.id for row in rows}


def evaluation_to_compare_with(connection: Connection) -> StoredEvaluation | None:
    """Return the evaluation that the quality after a batch is compared with: that of what serves.

    If there is none and nothing was promoted yet, it is the latest evaluation of the configuration
    for whole notes, from which a migration starts.
    """
    serving = evaluation_of_serving(connection)
    if serving or current_promotion(connection):
        return serving
    whole_notes = latest_evaluation(connection, BASELINE_CONFIGURATION)
    return None if whole_notes is None or whole_notes.is_disturbed else whole_notes


def read_baseline(connection: Connection) -> Baseline | None:
    """Return the results of the evaluation to compare with; None if there is none."""
    compared = evaluation_to_compare_with(connection)
    if compared is None:
        return None
    hits = queries().hits_of_evaluation(connection, evaluation_id=compared.evaluation_id)
    found = {hit.golden_id: hit.found for hit in hits}
    return Baseline(compared.evaluation_id, compared.configuration, found)


def write_batch(
    connection: Connection,
    run: BatchRun,
    quality: BatchQuality,
    verdict: BatchVerdict,
    baseline: Baseline | None,
) -> None:
    """Write the row of a batch; it replaces an earlier row of the same run."""
    drop = verdict.drop
    queries().upsert_batch(
        connection,
        model=run.model,
        chunking_hash=run.chunking_hash,
        run_id=run.run_id,
        months=list(run.months),
        config_hash=quality.config_hash,
        golden_hash=quality.golden_hash,
        total_queries=len(quality.found) + len(quality.missed),
        hit_rate_at_10=quality.hit_rate_at_10,
        mrr=quality.mrr,
        latency_p95_ms=quality.latency_p95_ms,
        degraded_queries=quality.degraded_queries,
        found=list(quality.found),
        missed=list(quality.missed),
        baseline_id=baseline.evaluation_id if baseline else None,
        baseline_hit_rate_at_10=drop.before if drop else None,
        p_value=drop.p_value if drop else None,
        level=verdict.level,
        gate="open" if verdict.is_open else "closed",
        reason=Jsonb(to_stored(verdict.reason)),
    )


def latest_batches(
    connection: Connection, models: Sequence[str], *, chunking_hash: str
) -> list[StoredBatch]:
    """Return the latest batch of each given model that has one, oldest first."""
    rows = queries().latest_batches(connection, models=list(models), chunking_hash=chunking_hash)
    return [_stored(row) for row in rows]


def closed_batches(
    connection: Connection, models: Sequence[str], *, chunking_hash: str
) -> list[StoredBatch]:
    """Return the last batch of each model, if it closed the gate and nobody has overridden it."""
    rows = queries().closed_batches(connection, models=list(models), chunking_hash=chunking_hash)
    return [_stored(row) for row in rows]


def override_batches(
    connection: Connection, batches: Sequence[StoredBatch], *, reason: str, run_id: str
) -> None:
    """Open the gate that the given batches closed, and store the run and the reason."""
    queries().override_batches(
        connection,
        ids=[batch.id for batch in batches],
        override_reason=reason,
        run_id=run_id,
    )


def _stored(row: Any) -> StoredBatch:
    columns = {name: getattr(row, name) for name in _COLUMNS}
    return StoredBatch(**{**columns, "reason": restored(row.reason)})
