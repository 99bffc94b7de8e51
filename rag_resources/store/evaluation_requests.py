"""Rows of `evaluation_requests`: requested evaluations and their states."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from psycopg.types.json import Jsonb
from pydantic import BaseModel, ConfigDict, field_validator
from pydantic.alias_generators import to_camel

from rag_resources.database.pool import Database
from rag_resources.database.queries import queries
from rag_resources.languages.messages import restored, to_stored


class EvaluationRequest(BaseModel):
    """An evaluation that was asked for.

    Attributes:
        evaluation_id: The finished evaluation; None until it is done.
        error: Why it failed; None if it did not.
    """

    model_config = ConfigDict(
        alias_generator=to_camel, validate_by_name=True, validate_by_alias=True
    )

    id: UUID
    configuration: str
    state: Literal["running", "done", "failed"]
    requested_at: datetime
    finished_at: datetime | None
    evaluation_id: UUID | None
    error: str | None

    @field_validator("error", mode="before")
    @classmethod
    def _readable(cls, stored: Any) -> str | None:
        return restored(stored) if isinstance(stored, dict) else stored


@dataclass(frozen=True, slots=True)
class EvaluationRequests:
    """The requested evaluations of a tenant."""

    database: Database
    tenant: str

    def begin(self, configuration: str, *, requested_by: str = "") -> EvaluationRequest:
        """Store that an evaluation has begun."""
        with self.database.transaction() as connection:
            row = queries().insert_evaluation_request(
                connection,
                tenant=self.tenant,
                configuration=configuration,
                requested_by=requested_by,
            )
        return EvaluationRequest.model_validate(row, from_attributes=True)

    def find(self, request_id: UUID) -> EvaluationRequest | None:
        """Return a request; None if there is none."""
        with self.database.transaction() as connection:
            row = queries().fetch_evaluation_request(connection, tenant=self.tenant, id=request_id)
        return EvaluationRequest.model_validate(row, from_attributes=True) if row else None

    def finish(
        self, request_id: UUID, *, evaluation_id: UUID | None = None, error: str | None = None
    ) -> None:
        """Store the end of an evaluation, or why it failed."""
        with self.database.transaction() as connection:
            queries().finish_evaluation_request(
                connection,
                tenant=self.tenant,
                id=request_id,
                evaluation_id=evaluation_id,
                error=None if error is None else Jsonb(to_stored(error)),
            )
