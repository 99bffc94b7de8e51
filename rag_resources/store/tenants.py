"""Rows of `tenants`."""

from dataclasses import dataclass
from datetime import datetime

from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries


@dataclass(frozen=True, slots=True)
class ListedTenant:
    """A tenant and how much it has.

    Attributes:
        questions: Golden questions.
        keys: Its valid keys of the API.
        created_at: None if it has rows but was never created explicitly.
    """

    name: str
    notes: int
    documents: int
    questions: int
    keys: int
    created_at: datetime | None


@dataclass(frozen=True, slots=True)
class EmptiedTable:
    """How many rows of a tenant a table had, and how many it has now."""

    name: str
    deleted: int
    remaining: int


def upload_lifetime_hours(connection: Connection, tenant: str) -> int | None:
    """Return the lifetime of uploads that state none; None if it has no end."""
    row = queries().fetch_upload_lifetime(connection, tenant=tenant)
    return row.upload_hours if row else None
