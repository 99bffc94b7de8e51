"""Counts of what a database holds. The progress of a migration is in `store.migration_status`."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from rag_resources.core.evaluation import StoredEvaluation
from rag_resources.database.connection import LimitedConnection, Role
from rag_resources.database.pool import Access
from rag_resources.database.queries import queries
from rag_resources.store.document_list import UnreadDocument, count_missing, list_unread
from rag_resources.store.evaluations import Present, latest_evaluations, read_present
from rag_resources.store.models import ModelContents, every_model
from rag_resources.store.promotions import Promotion, current_promotion, serving_since
from rag_resources.store.rejections import Rejection, list_rejections

NAMED_REJECTIONS, NAMED_DOCUMENTS = 10, 5


class Isolation(StrEnum):
    """How searches are confined to their tenant's rows; see docs/tenants.md."""

    ROLES = "roles"
    """By a role that sees only its tenant's rows, because of row-level security."""

    VIEWS = "views"
    """By that role, and by views of its rows where row-level security would prevent an index."""

    CONDITIONS = "conditions"
    """Only by the conditions in the statements."""


@dataclass(frozen=True, slots=True)
class DatabaseStatus:
    """Counts and versions of a database's contents.

    Attributes:
        chunked: Notes that have been chunked.
        unread_documents: Those of the documents that could not be read.
        missing_documents: Those whose file is at none of their addresses any more.
        unread: The latest of them.
        present: The versions that results depend on.
        evaluations: The latest evaluation of each configuration.
        promotion: The promotion that serves.
        serving_since: Since when its configuration has served without a break.
        rejections: The first records that could not be read.
        rejected: How many there are.
        isolation: How searches are confined to their tenant's rows.
    """

    notes: int
    chunked: int
    chunks: int
    golden: int
    failures: int
    present: Present
    models: tuple[ModelContents, ...]
    evaluations: tuple[StoredEvaluation, ...]
    promotion: Promotion | None
    rejections: tuple[Rejection, ...] = ()
    rejected: int = 0
    documents: int = 0
    unread_documents: int = 0
    missing_documents: int = 0
    unread: tuple[UnreadDocument, ...] = ()
    isolation: Isolation = Isolation.CONDITIONS
    serving_since: datetime | None = None

    def with_configured(self, names: Sequence[str]) -> list[ModelContents]:
        """Return every registered model, and the configured ones that are not registered yet."""
        known = {model.name: model for model in self.models}
        missing = [ModelContents(name) for name in names if name not in known]
        return [*known.values(), *missing]


def _isolation(reader: Role | None) -> Isolation:
    if reader is None:
        return Isolation.CONDITIONS
    return Isolation.VIEWS if reader.has_views else Isolation.ROLES


def read_status(connection: LimitedConnection) -> DatabaseStatus:
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
        models=tuple(every_model(connection)),
        evaluations=tuple(latest_evaluations(connection)),
        promotion=current_promotion(connection),
        serving_since=serving_since(connection),
        rejections=tuple(rejections),
        rejected=rejected,
        documents=counts.documents,
        unread_documents=counts.unread_documents,
        missing_documents=count_missing(connection),
        unread=tuple(list_unread(connection, limit=NAMED_DOCUMENTS)),
        isolation=_isolation(connection.roles.get(Access.READER)),
    )
