"""Rows of `tenants`, and the deletion of everything of a tenant in the database."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries
from rag_resources.database.schema import own_tables


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


def insert_tenant(connection: Connection, tenant: str) -> bool:
    """Create a tenant; False if it was created before."""
    return queries().insert_tenant(connection, tenant=tenant) is not None


def upload_lifetime_hours(connection: Connection, tenant: str) -> int | None:
    """Return the lifetime of uploads that state none; None if it has no end."""
    row = queries().fetch_upload_lifetime(connection, tenant=tenant)
    return row.upload_hours if row else None


def set_upload_lifetime(connection: Connection, tenant: str, hours: int | None) -> None:
    """Store the lifetime of a tenant's uploads that state none."""
    queries().set_upload_lifetime(connection, tenant=tenant, hours=hours)


def list_tenants(connection: Connection) -> list[ListedTenant]:
    """Return the tenants that were created or have something, by name."""
    return [
        ListedTenant(row.tenant, row.notes, row.documents, row.questions, row.keys, row.created_at)
        for row in queries().list_tenants(connection)
    ]


def delete_tenant(connection: Connection, tenant: str) -> Sequence[EmptiedTable]:
    """Delete a tenant's rows from all tables; return the tables that had some."""
    rows = queries().delete_tenant(connection, tenant=tenant, names=list(own_tables()))
    return [EmptiedTable(row.relation, row.deleted, row.remaining) for row in rows]
