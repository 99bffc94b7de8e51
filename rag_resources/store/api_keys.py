"""Rows of `api_keys`."""

from dataclasses import dataclass
from datetime import datetime

from rag_resources.core.api_keys import ApiRole
from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries


@dataclass(frozen=True, slots=True)
class ListedKey:
    """A key as its tenant sees it, without the secret."""

    key_id: str
    name: str
    role: ApiRole
    created_at: datetime
    revoked_at: datetime | None


@dataclass(frozen=True, slots=True)
class StoredKey:
    """The stored part of a key, against which a presented key is checked."""

    tenant: str
    role: ApiRole
    secret_sha256: bytes


def insert_key(
    connection: Connection, key_id: str, *, name: str, role: ApiRole, secret_sha256: bytes
) -> ListedKey:
    """Store a key of the connection's tenant."""
    row = queries().insert_api_key(
        connection, id=key_id, name=name, role=role.value, secret_sha256=secret_sha256
    )
    return ListedKey(key_id, name, role, row.created_at, None)


def list_keys(connection: Connection) -> list[ListedKey]:
    """Return the keys of the connection's tenant, oldest first."""
    return [
        ListedKey(row.id, row.name, ApiRole(row.role), row.created_at, row.revoked_at)
        for row in queries().list_api_keys(connection)
    ]


def revoke_key(connection: Connection, key_id: str) -> bool:
    """Revoke a key of the connection's tenant; False if there is none that is valid."""
    return bool(queries().revoke_api_key(connection, id=key_id))


def fetch_key(connection: Connection, key_id: str) -> StoredKey | None:
    """Return a valid key of any tenant."""
    row = queries().fetch_api_key(connection, id=key_id)
    if row is None:
        return None
    return StoredKey(row.tenant_id, ApiRole(row.role), bytes(row.secret_sha256))


def has_any_key(connection: Connection) -> bool:
    """Return whether any tenant has ever had a key."""
    return bool(queries().any_api_key(connection))
