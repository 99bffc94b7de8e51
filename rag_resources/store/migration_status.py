"""Reads the status of a migration, in a fixed number of statements.

Conclusions from it belong in `core.migration_status`; counts of stored rows in `store.status`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from rag_resources.core.evaluation import StoredEvaluation
from rag_resources.core.evidence import Evidence
from rag_resources.core.migration_status import (
    EmbeddingWork,
    ModelProgress,
    MonthProgress,
    Quality,
    minutes_left,
    total_progress,
    vectors_per_minute,
)
from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries
from rag_resources.languages.messages import restored
from rag_resources.store.evaluations import latest_evaluation
from rag_resources.store.holds import Hold, current_hold
from rag_resources.store.migration import (
    StoredBatch,
    latest_batches,
)
from rag_resources.store.promotions import Promotion, current_promotion, serving_since

EXAMPLES = 3
PACE_TRANSACTIONS = 50
WORK_MEMORY = "64MB"
RECENT = timedelta(minutes=10)
"""A migration counts as running if it is working now, or stored something within this time."""
START = timedelta(minutes=1)
"""Longest time that a run takes to start. If nothing was stored for longer than this, and for
longer than the rest would take, nobody is doing the rest."""


@dataclass(frozen=True, slots=True)
class ErrorExample:
    """A text that could not be indexed; a note without an external id is named by its id."""

    note_id: UUID
    external_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class ErrorKind:
    """Texts that could not be indexed at one stage.

    Attributes:
        stage: `chunk`, `embed_note` or `embed_chunk`.
        model: None for chunking.
        count: How many there are in all, not only in the examples.
        examples: The latest ones, newest first.
    """

    stage: str
    model: str | None
    count: int
    examples: tuple[ErrorExample, ...]


@dataclass(frozen=True, slots=True)
class MigrationStatus:
    """The progress of a migration, its quality, and what keeps it from continuing.

    This is the migration to the configured chunking and the configured models.

    Attributes:
        read_at: Time of the reading, by the database's clock.
        months: The months with notes, oldest first.
        models: The configured models, and others that still get vectors of every chunk.
        configured_models: Names of the models whose vectors are assets.
        errors: By stage and model.
        batches: The latest batch of each configured model that has one, oldest first.
        serving: The current promotion; None before the first one.
        serving_since: Since when its configuration has served without a break.
        evaluation: The latest evaluation of the promoted configuration, if there is one.
        hold: A person's hold; None if there is none.
        vectors_per_minute: The speed of the latest work, whenever it was done, by model.
        is_working: Whether anything was done just now or is being done.
        evidence: Whether `evaluation` is current, aged or stale; None if it was not judged.
    """

    read_at: datetime
    months: tuple[MonthProgress, ...]
    models: tuple[ModelProgress, ...]
    configured_models: tuple[str, ...]
    errors: tuple[ErrorKind, ...]
    batches: tuple[StoredBatch, ...]
    serving: Promotion | None
    evaluation: StoredEvaluation | None
    hold: Hold | None
    vectors_per_minute: Mapping[str, float]
    is_working: bool
    serving_since: datetime | None = None
    evidence: Evidence | None = None

    @property
    def total(self) -> MonthProgress:
        """All months together."""
        return total_progress(self.months, "total")

    @property
    def closed(self) -> tuple[StoredBatch, ...]:
        """The last batches that keep the next one from starting."""
        return tuple(
            batch
            for batch in self.batches
            if batch.gate == "closed" and batch.overridden_at is None
        )

    @property
    def is_complete(self) -> bool:
        """Whether every note is migrated and has its vectors of all configured models."""
        return not self.total.remaining and all(
            model.state and not model.pending_notes
            for model in self.models
            if model.name in self.configured_models
        )

    @property
    def quality(self) -> Quality | None:
        """The latest measurement: after the last batch, or of the promoted configuration."""
        [batch] = self.batches[-1:] or [None]
        own = self.evaluation
        if own is None or (batch and batch.finished_at >= own.created_at):
            return _quality_of_batch(batch) if batch else None
        return Quality(
            own.configuration,
            own.model,
            own.created_at,
            own.total_queries,
            own.hit_rate_at_10,
            own.mrr,
            own.latency_p95_ms,
            own.is_disturbed,
            self.evidence,
        )

    @property
    def minutes_left(self) -> float | None:
        """Estimated minutes left; None if no work is going on or its speed is unknown."""
        if not self.is_working or self.hold or self.closed:
            return None
        configured = [model for model in self.models if model.name in self.configured_models]
        return minutes_left(self.total, configured, self.vectors_per_minute)

    @property
    def ready_at(self) -> datetime | None:
        """Estimated time of completion; None if there is no estimate."""
        left = self.minutes_left
        return None if left is None else self.read_at + timedelta(minutes=left)


def read_migration_status(
    connection: Connection, models: Sequence[str], *, chunking_hash: str
) -> MigrationStatus:
    """Read the status of a migration.

    Use a connection of `Database.snapshot`, so that all numbers are of the same moment.

    Args:
        connection: To a database with the current schema.
        models: The configured models.
        chunking_hash: Hash of the configured chunking.
    """
    # The query hashes all queues and notes; the default work_mem would spill them to disk.
    queries().set_transaction(connection, name="work_mem", value=WORK_MEMORY)
    serving = current_promotion(connection)
    activity = queries().migration_activity(connection)
    queues = list(queries().queues_by_month(connection))
    found = _models(connection, models, queues, activity.chunks, serving)
    months = _months(connection, found, queues, chunking_hash)
    found = tuple(_never_used(model, months) if model.state is None else model for model in found)
    batches = latest_batches(connection, models, chunking_hash=chunking_hash)
    embedding = _embedding_work(connection, models)
    done_at = [
        *(item.finished_at for item in embedding),
        *(batch.finished_at for batch in batches[-1:]),
    ]
    idle = min((activity.read_at - moment for moment in done_at), default=RECENT * 2)
    status = MigrationStatus(
        read_at=activity.read_at,
        months=months,
        models=found,
        configured_models=tuple(models),
        errors=_errors(connection),
        batches=tuple(batches),
        serving=serving,
        evaluation=latest_evaluation(connection, serving.configuration) if serving else None,
        hold=current_hold(connection),
        vectors_per_minute=vectors_per_minute(embedding),
        is_working=activity.is_working or idle <= RECENT,
        serving_since=serving_since(connection),
    )
    left = status.minutes_left
    if left is None or activity.is_working or idle <= max(START, timedelta(minutes=left)):
        return status
    return replace(status, is_working=False)


def _quality_of_batch(batch: StoredBatch) -> Quality:
    return Quality(
        None,
        batch.model,
        batch.finished_at,
        batch.total_queries,
        batch.hit_rate_at_10,
        batch.mrr,
        batch.latency_p95_ms,
        batch.degraded_queries > 0,
    )


def _months(
    connection: Connection,
    models: Sequence[ModelProgress],
    queues: Sequence[Any],
    chunking_hash: str,
) -> tuple[MonthProgress, ...]:
    pending: dict[tuple[datetime, str], int] = {(row.month, row.model): row.notes for row in queues}
    return tuple(
        MonthProgress(
            month=f"{row.month.astimezone(UTC):%Y-%m}",
            notes=row.notes,
            chunked=row.chunked,
            migrated=row.migrated,
            failed=row.failed,
            pending={
                # Nothing is queued for a model that was never used: it lacks the vectors of all.
                model.name: pending.get((row.month, model.name), 0) if model.state else row.chunked
                for model in models
            },
        )
        for row in queries().migration_by_month(connection, chunking_hash=chunking_hash)
    )


def _models(
    connection: Connection,
    names: Sequence[str],
    queues: Sequence[Any],
    chunks: int,
    serving: Promotion | None,
) -> tuple[ModelProgress, ...]:
    """Return the configured models, registered or not, then the others that get vectors."""
    states = {row.name: row.state for row in queries().list_chunk_models(connection)}
    return tuple(
        ModelProgress(
            name,
            chunks,
            state=states.get(name),
            serves=serving is not None and serving.model == name,
            pending_notes=sum(row.notes for row in queues if row.model == name),
            pending_chunks=sum(row.chunks for row in queues if row.model == name),
        )
        for name in dict.fromkeys((*names, *states))
    )


def _never_used(model: ModelProgress, months: Sequence[MonthProgress]) -> ModelProgress:
    """Return a model that nothing was indexed with, with all that it lacks."""
    return replace(
        model,
        pending_notes=sum(month.pending[model.name] for month in months),
        pending_chunks=model.chunks,
    )


def _errors(connection: Connection) -> tuple[ErrorKind, ...]:
    examples: dict[tuple[str, str | None, int], list[ErrorExample]] = {}
    for row in queries().errors_by_kind(connection, examples=EXAMPLES):
        kind = (row.stage, row.model, row.total)
        example = ErrorExample(row.note_id, row.external_id, restored(row.error))
        examples.setdefault(kind, []).append(example)
    return tuple(ErrorKind(*kind, tuple(found)) for kind, found in examples.items())


def _embedding_work(connection: Connection, models: Sequence[str]) -> list[EmbeddingWork]:
    rows = queries().latest_embedding_work(
        connection, models=list(models), row_limit=PACE_TRANSACTIONS
    )
    return [EmbeddingWork(*row) for row in rows]
