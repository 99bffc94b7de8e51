"""Rows of `evaluation_requests`: requested evaluations and their states."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries
from rag_resources.languages.messages import restored, to_stored


class RequestState(StrEnum):
    """The state of a request."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class EvaluationRequest:
    """A request for an evaluation.

    Attributes:
        attempts: How often it was begun.
        evaluation_id: The finished evaluation; None until it is done.
        error: Why it failed; None if it did not.
    """

    request_id: UUID
    configuration: str
    state: RequestState
    requested_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    attempts: int
    evaluation_id: UUID | None
    error: str | None


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """A request of any tenant that is not finished."""

    tenant: str
    request_id: UUID
    configuration: str
    state: RequestState


def insert_request(
    connection: Connection, *, tenant: str, configuration: str, requested_by: str
) -> EvaluationRequest:
    """Request an evaluation; if the same request waits already, return that one."""
    return _request(
        queries().insert_evaluation_request(
            connection, tenant=tenant, configuration=configuration, requested_by=requested_by
        )
    )


def fetch_request(
    connection: Connection, request_id: UUID, *, tenant: str
) -> EvaluationRequest | None:
    """Return a request of a tenant; None if there is none."""
    row = queries().fetch_evaluation_request(connection, tenant=tenant, id=request_id)
    return _request(row) if row else None


def open_requests(connection: Connection) -> Sequence[OpenRequest]:
    """Return the requests of all tenants that are not finished, oldest first."""
    return [
        OpenRequest(row.tenant_id, row.id, row.configuration, RequestState(row.state))
        for row in queries().list_open_evaluation_requests(connection)
    ]


def begin_request(connection: Connection, request: OpenRequest) -> int | None:
    """Begin a request; return how often it was begun, None if it is finished."""
    attempts: int | None = queries().begin_evaluation_request(
        connection, tenant=request.tenant, id=request.request_id
    )
    return attempts


def finish_request(
    connection: Connection,
    request: OpenRequest,
    *,
    evaluation_id: UUID | None = None,
    error: str | None = None,
) -> None:
    """End a request with its evaluation or with an error."""
    queries().finish_evaluation_request(
        connection,
        tenant=request.tenant,
        id=request.request_id,
        evaluation_id=evaluation_id,
        error=None if error is None else Jsonb(to_stored(error)),
    )


def count_open_requests(connection: Connection, *, tenant: str) -> int:
    """Return how many requests of a tenant are not finished."""
    count: int = queries().count_evaluation_requests(connection, tenant=tenant)
    return count


def _request(row: Any) -> EvaluationRequest:
    return EvaluationRequest(
        row.id,
        row.configuration,
        RequestState(row.state),
        row.requested_at,
        row.started_at,
        row.finished_at,
        row.attempts,
        row.evaluation_id,
        restored(row.error) if row.error else None,
    )
