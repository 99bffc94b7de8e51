"""Counts of what a database holds. The progress of a migration is in `store.migration_status`."""

from collections.abc import Sequence
from dataclasses import dataclass

from rag_resources.core.evaluation import StoredEvaluation
from rag_resources.core.measurement import Present
from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries
from rag_resources.store.evaluations import latest_evaluations
from rag_resources.store.promotions import Promotion, current_promotion
from rag_resources.store.rejections import Rejection, list_rejections
from rag_resources.store.versions import read_present

NAMED_REJECTIONS = 10


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """The progress of a model.

    Attributes:
        state: As in `embedding_models`; None if nothing was ever indexed with it.
        chunk_vectors: Chunks with vectors.
        note_vectors: Notes with a whole-note vector.
        pending: Chunked notes that lack some vectors.
        windows: Windows of chunks with a vector.
        pending_windows: Chunked notes that lack some windows.
    """

    name: str
    state: str | None = None
    chunk_vectors: int = 0
    note_vectors: int = 0
    pending: int = 0
    windows: int = 0
    pending_windows: int = 0


@dataclass(frozen=True, slots=True)
class DatabaseStatus:
    """What a database holds.

    Attributes:
        chunked: Notes that have been chunked.
        present: The versions that results depend on.
        evaluations: The latest of each configuration.
        promotion: The promotion that serves.
        rejections: The first records that could not be read.
        rejected: How many there are.
        isolated: Whether who searches sees only rows of its tenant, whatever the statement.
    """

    notes: int
    chunked: int
    chunks: int
    golden: int
    failures: int
    present: Present
    models: tuple[ModelStatus, ...]
    evaluations: tuple[StoredEvaluation, ...]
    promotion: Promotion | None
    rejections: tuple[Rejection, ...] = ()
    rejected: int = 0
    isolated: bool = False

    def with_configured(self, names: Sequence[str]) -> list[ModelStatus]:
        """Return every registered model, and the configured ones that are not registered yet."""
        known = {model.name: model for model in self.models}
        missing = [ModelStatus(name) for name in names if name not in known]
        return [*known.values(), *missing]


def read_status(connection: Connection) -> DatabaseStatus:
    """Read what a database with the current schema holds."""
    counts = queries().count_contents(connection)
    rejections, rejected = list_rejections(connection, limit=NAMED_REJECTIONS)
    return DatabaseStatus(
        notes=counts.notes,
        chunked=counts.chunked,
        chunks=counts.chunks,
        golden=counts.golden,
        failures=counts.failures,
        present=read_present(connection),
        models=tuple(ModelStatus(*row) for row in queries().count_vectors_by_model(connection)),
        evaluations=tuple(latest_evaluations(connection)),
        promotion=current_promotion(connection),
        rejections=tuple(rejections),
        rejected=rejected,
        isolated="rag_reader" in {row.name for row in queries().assumable_roles(connection)},
    )
