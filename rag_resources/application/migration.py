"""Use cases of the migration: its progress, closed gates, and holds by people."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rag_resources.configurations import vector_kinds
from rag_resources.core.chunking_version import chunking_hash
from rag_resources.core.migration_gate import BatchVerdict, VectorState
from rag_resources.core.types import TimeWindow
from rag_resources.core.windows import WindowsConfig
from rag_resources.database.pool import Database
from rag_resources.evaluation.runner import Evaluation
from rag_resources.migration.batches import measure_pair, record_batch
from rag_resources.migration.status import read_status
from rag_resources.retrieval.pipeline import RetrievalPipeline
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
from rag_resources.store.migration_status import MigrationStatus
from rag_resources.store.progress import Progress, index_is_current, read_progress


@dataclass(frozen=True, slots=True)
class Migration:
    """The migration of a database to the configured chunking and models.

    Attributes:
        pipeline: Makes or returns the pipeline that compares a model with what serves.
    """

    database: Database
    settings: Settings
    pipeline: Callable[[], RetrievalPipeline]

    @property
    def chunking_hash(self) -> str:
        """Hash of the configured chunking; together with a model it identifies a migration."""
        return chunking_hash(self.settings.chunking)

    @property
    def models(self) -> tuple[str, ...]:
        """The models whose vectors the migration makes."""
        return self.settings.embedding_models

    @property
    def floor(self) -> float:
        """The lowest Hit_Rate@10 with which the next batch starts."""
        return self.settings.migration_floor

    @property
    def first_month(self) -> str:
        """The first monthly partition, `YYYY-MM`."""
        return self.settings.first_month

    def status(self) -> MigrationStatus:
        """Return the progress of every month and model, with quality, errors and pace."""
        return read_status(self.database, self.settings)

    def progress(self) -> Progress:
        """Count the present notes, chunks and vectors."""
        with self.database.transaction() as connection:
            return read_progress(connection, self.settings.note_embedding_model)

    def is_done(self, window: TimeWindow) -> bool:
        """Whether no note of a window needs chunking or embedding by a configured model."""
        kinds = {
            model: vector_kinds(self.settings.configuration_folders, model) for model in self.models
        }
        with self.database.transaction() as connection:
            return index_is_current(
                connection,
                window,
                chunking_hash=self.chunking_hash,
                kinds=kinds,
                windows=WindowsConfig(),
            )

    def closed_gates(
        self, models: Sequence[str], *, override: str, run_id: str
    ) -> list[StoredBatch]:
        """Return the batches whose closed gates keep the next one from starting.

        Args:
            models: The models of the next batch.
            override: The reason to start although a gate is closed, which is recorded; empty for
                none.
            run_id: Dagster's run.

        Raises:
            MigrationHeldError: A person holds the migration; no override lifts a hold.
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
        window: TimeWindow,
        planned: int,
        vectors: VectorState,
    ) -> BatchVerdict:
        """Judge the quality after a batch against what serves, and store it with the verdict.

        Args:
            model: The model of the batch.
            evaluation: The evaluation of all golden questions after the batch.
            run_id: Dagster's run.
            months: The months of the batch, as `YYYY-MM`.
            window: The same months as a period.
            planned: Number of batches in the whole migration.
            vectors: Whether the batch's vectors really come from the model.
        """
        run = BatchRun(model, self.chunking_hash, run_id, months)
        pair = None
        if not vectors.faults:
            pair = measure_pair(self.database, self.pipeline(), model, window)
        return record_batch(
            self.database,
            run,
            evaluation,
            planned=planned,
            floor=self.floor,
            vectors=vectors,
            pair=pair,
        )

    def held(self) -> Hold | None:
        """Return the hold that a person placed; None if there is none."""
        with self.database.transaction() as connection:
            return current_hold(connection)

    def stop(self, *, reason: str, run_id: str) -> bool:
        """Let no further batch start; return whether this changed anything."""
        with self.database.transaction() as connection:
            return hold_migration(connection, "stopped", reason=reason, run_id=run_id)

    def resume(self, *, reason: str, run_id: str) -> Hold | None:
        """Let batches start again; return the hold that was lifted."""
        with self.database.transaction() as connection:
            return resume_migration(connection, reason=reason, run_id=run_id)
