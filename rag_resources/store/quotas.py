"""The limits of a tenant in `tenants`, and its present usage."""

from collections.abc import Collection, Mapping
from typing import Any
from uuid import UUID

from rag_resources.core.errors import QuotaError
from rag_resources.core.quotas import Account, Quota, Usage
from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries


def read_quota(connection: Connection, tenant: str) -> Quota:
    """Return the limits of a tenant; a quota without limits if the tenant was never created."""
    row = queries().fetch_quota(connection, tenant=tenant)
    return _quota(row) if row else Quota()


def write_quota(connection: Connection, tenant: str, quota: Quota) -> None:
    """Store the limits of a tenant, in place of earlier ones; creates the tenant if necessary."""
    queries().upsert_quota(
        connection,
        tenant=tenant,
        max_notes=quota.notes,
        max_bytes=quota.size_bytes,
        questions_a_minute=quota.questions_a_minute,
        upload_hours=quota.upload_hours,
    )


def read_usage(connection: Connection, tenant: str) -> Usage:
    """Count a tenant's notes and bytes, by a scan of its notes."""
    row = queries().count_usage(connection, tenant=tenant)
    return Usage(row.notes, int(row.size_bytes))


def open_account(connection: Connection, tenant: str) -> Account | None:
    """Count a tenant's usage, and keep others from adding to it until commit.

    Returns:
        None if the tenant has no limit; then nothing is locked.
    """
    row = queries().fetch_quota(connection, tenant=tenant)
    if row is None or not _quota(row).limits_contents:
        return None
    row = queries().lock_quota(connection, tenant=tenant)
    quota = _quota(row) if row else Quota()
    return Account(tenant, quota, read_usage(connection, tenant))


def require_room(
    connection: Connection, tenant: str, *, notes: int = 0, size_bytes: int = 0
) -> None:
    """Check that notes fit into a tenant's quota, which stays locked until commit.

    Raises:
        QuotaError: They do not fit.
    """
    account = open_account(connection, tenant)
    problem = account.add(notes=notes, size_bytes=size_bytes) if account else None
    if problem is not None:
        raise QuotaError(problem)


def note_sizes(connection: Connection, note_ids: Collection[UUID]) -> Mapping[UUID, int]:
    """Return the size in bytes of the text of each given note that exists."""
    rows = queries().list_note_sizes(connection, note_ids=list(note_ids))
    return {row.id: row.size_bytes for row in rows}


def _quota(row: Any) -> Quota:
    return Quota(
        notes=row.max_notes,
        size_bytes=row.max_bytes,
        questions_a_minute=row.questions_a_minute,
        upload_hours=row.upload_hours,
    )
