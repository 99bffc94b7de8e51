"""Use cases of evaluations that are asked for over HTTP."""

from dataclasses import dataclass
from uuid import UUID

from rag_resources.database.pool import Database
from rag_resources.settings import Settings
from rag_resources.store.evaluation_requests import (
    EvaluationRequest,
    fetch_request,
    finish_request,
    insert_request,
)


@dataclass(frozen=True, slots=True)
class EvaluationRequests:
    """The requested evaluations of one tenant."""

    database: Database
    settings: Settings

    def begin(self, configuration: str, *, requested_by: str = "") -> EvaluationRequest:
        """Store that an evaluation has begun."""
        with self.database.transaction() as connection:
            return insert_request(
                connection,
                tenant=self.settings.tenant,
                configuration=configuration,
                requested_by=requested_by,
            )

    def find(self, request_id: UUID) -> EvaluationRequest | None:
        """Return a request; None if there is none."""
        with self.database.transaction() as connection:
            return fetch_request(connection, request_id, tenant=self.settings.tenant)

    def finish(
        self, request_id: UUID, *, evaluation_id: UUID | None = None, error: str | None = None
    ) -> None:
        """Store the end of an evaluation."""
        with self.database.transaction() as connection:
            finish_request(
                connection,
                request_id,
                tenant=self.settings.tenant,
                evaluation_id=evaluation_id,
                error=error,
            )
