"""How far the index is, what keeps its migration from going on, and who lifts that."""

from collections.abc import Sequence
from dataclasses import dataclass

from rag_resources.core.chunking_version import chunking_hash
from rag_resources.core.quality_watch import BatchVerdict
from rag_resources.core.types import TimeWindow
from rag_resources.database.pool import Database
from rag_resources.evaluation.runner import Evaluation
from rag_resources.migration.batches import record_batch
from rag_resources.settings import Settings
from rag_resources.store.holds import (
    Hold,
    current_hold,
    hold_migration,
    refuse_while_held,
    resume_migration,
)
from rag_resources.store.migration import (
    BatchRun,
    StoredBatch,
    closed_batches,
    override_batches,
)
from rag_resources.store.migration_status import MigrationStatus, read_migration_status
from rag_resources.store.progress import Progress, index_is_current, read_progress


@dataclass(frozen=True, slots=True)
class Migration:
    """The migration of a database to the configured chunking and models."""

    database: Database
    settings: Settings

    @property
    def chunking_hash(self) -> str:
        """The configured way of chunking; with a model it names a migration."""
        return chunking_hash(self.settings.chunking)

    @property
    def models(self) -> tuple[str, ...]:
        """The models whose vectors it makes."""
        return self.settings.embedding_models

    @property
    def floor(self) -> float:
        """The Hit_Rate@10 under which the next batch does not start."""
        return self.settings.migration_floor

    @property
    def first_month(self) -> str:
        """The first monthly partition, `YYYY-MM`."""
        return self.settings.first_month

    def status(self) -> MigrationStatus:
        """Return how far every month and model is, with quality, errors and pace."""
        with self.database.snapshot() as connection:
            return read_migration_status(
                connection, self.settings.embedding_models, chunking_hash=self.chunking_hash
            )

    def progress(self) -> Progress:
        """Count notes, chunks and vectors as they stand now."""
        with self.database.transaction() as connection:
            return read_progress(connection, self.settings.note_embedding_model)

    def is_done(self, window: TimeWindow) -> bool:
        """Whether nothing of a window is left to chunk, or to embed with a configured model."""
        with self.database.transaction() as connection:
            return index_is_current(
                connection, window, chunking_hash=self.chunking_hash, models=self.models
            )

    def closed_batches(self) -> list[StoredBatch]:
        """Return the last batch of each configured model that closed its gate."""
        with self.database.transaction() as connection:
            return closed_batches(
                connection, self.settings.embedding_models, chunking_hash=self.chunking_hash
            )

    def closed_gates(
        self, models: Sequence[str], *, override: str, run_id: str
    ) -> list[StoredBatch]:
        """Return the batches that keep the next one from starting.

        Args:
            models: Those the next batch is of.
            override: Why it may start though a gate is closed, which is recorded; empty: it may
                not.
            run_id: Dagster's.

        Raises:
            MigrationHeldError: A person holds the migration: no override lifts that.
        """
        with self.database.transaction() as connection:
            refuse_while_held(connection)
            closed = closed_batches(connection, models, chunking_hash=self.chunking_hash)
            if override:
                override_batches(connection, closed, reason=override, run_id=run_id)
        return closed

    def record_batch(
        self,
        model: str,
        evaluation: Evaluation,
        *,
        run_id: str,
        months: tuple[str, ...],
        planned: int,
    ) -> BatchVerdict:
        """Judge the quality after a batch, and store it with the verdict.

        Args:
            model: Of the batch.
            evaluation: Of all golden questions after it.
            run_id: Dagster's.
            months: Of the batch, as `YYYY-MM`.
            planned: Batches that the months of the migration make.
        """
        run = BatchRun(model, self.chunking_hash, run_id, months)
        return record_batch(self.database, run, evaluation, planned=planned, floor=self.floor)

    def held(self) -> Hold | None:
        """Return what a person put in the migration's way; None if nothing."""
        with self.database.transaction() as connection:
            return current_hold(connection)

    def stop(self, *, reason: str, run_id: str) -> bool:
        """Let no further batch start; return whether that changed anything."""
        with self.database.transaction() as connection:
            return hold_migration(connection, "stopped", reason=reason, run_id=run_id)

    def resume(self, *, reason: str, run_id: str) -> Hold | None:
        """Let batches start again; return what kept them from it."""
        with self.database.transaction() as connection:
            return resume_migration(connection, reason=reason, run_id=run_id)
