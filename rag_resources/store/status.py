"""How much there is of everything: totals, and the progress of indexing by model and by month."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from rag_resources.core.evaluation import StoredEvaluation
from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries
from rag_resources.store.evaluations import Promotion, current_promotion, latest_evaluations


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """How far a model has come.

    Attributes:
        state: As in `embedding_models`; None if nothing was ever indexed with it.
        chunk_vectors: Chunks with vectors.
        note_vectors: Notes with a whole-note vector.
        pending: Chunked notes whose vectors are not all there.
    """

    name: str
    state: str | None = None
    chunk_vectors: int = 0
    note_vectors: int = 0
    pending: int = 0


@dataclass(frozen=True, slots=True)
class DatabaseStatus:
    """What a database holds.

    Attributes:
        chunked: Notes that have been chunked.
        evaluations: The latest of each configuration.
        promotion: What serves.
    """

    notes: int
    chunked: int
    chunks: int
    golden: int
    failures: int
    index_version: int
    models: tuple[ModelStatus, ...]
    evaluations: tuple[StoredEvaluation, ...]
    promotion: Promotion | None

    def with_configured(self, names: Sequence[str]) -> list[ModelStatus]:
        """Return every known model, and those configured that are not known yet."""
        known = {model.name: model for model in self.models}
        missing = [ModelStatus(name) for name in names if name not in known]
        return [*known.values(), *missing]


@dataclass(frozen=True, slots=True)
class MonthProgress:
    """How far the notes of a month have come.

    Attributes:
        month: `YYYY-MM`, in UTC.
        pending: Chunked notes that wait for their vectors, by model.
        failures: Texts that could not be indexed.
    """

    month: str
    notes: int
    chunked: int
    pending: Mapping[str, int]
    failures: int

    @property
    def percent_chunked(self) -> float:
        """Share of its notes that are chunked, in percent; 100 if it has none."""
        return 100.0 * self.chunked / self.notes if self.notes else 100.0


def has_schema(connection: Connection) -> bool:
    """Whether the migrations were applied at all."""
    found: bool = queries().has_schema(connection)
    return found


def read_status(connection: Connection) -> DatabaseStatus:
    """Read what a migrated database holds."""
    counts = queries().count_contents(connection)
    return DatabaseStatus(
        notes=counts.notes,
        chunked=counts.chunked,
        chunks=counts.chunks,
        golden=counts.golden,
        failures=counts.failures,
        index_version=counts.index_version,
        models=tuple(ModelStatus(*row) for row in queries().count_vectors_by_model(connection)),
        evaluations=tuple(latest_evaluations(connection)),
        promotion=current_promotion(connection),
    )


def month_progress(connection: Connection) -> list[MonthProgress]:
    """Return the progress of every month that has notes, oldest first."""
    models = [row.name for row in queries().list_chunk_models(connection)]
    pending: dict[tuple[datetime, str], int] = {
        (row.month, row.model): row.pending for row in queries().count_pending_by_month(connection)
    }
    failures: dict[datetime, int] = {
        row.month: row.failures for row in queries().count_failures_by_month(connection)
    }
    return [
        MonthProgress(
            month=f"{row.month.astimezone(UTC):%Y-%m}",
            notes=row.notes,
            chunked=row.chunked,
            pending={model: pending.get((row.month, model), 0) for model in models},
            failures=failures.get(row.month, 0),
        )
        for row in queries().count_notes_by_month(connection)
    ]


def total_progress(months: Sequence[MonthProgress], label: str) -> MonthProgress:
    """Add up the progress of at least one month."""
    return MonthProgress(
        month=label,
        notes=sum(month.notes for month in months),
        chunked=sum(month.chunked for month in months),
        pending={
            model: sum(month.pending[model] for month in months) for model in months[0].pending
        },
        failures=sum(month.failures for month in months),
    )
