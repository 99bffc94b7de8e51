"""Keys of the HTTP API: rows of `api_keys`."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from rag_resources.core.api_keys import ApiRole, hash_secret, whole_key
from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.quoting import shown
from rag_resources.database.pool import Database
from rag_resources.database.queries import queries
from rag_resources.languages.messages import _

KEY_CACHE_S = 5
"""How long a process of the API may still accept a key that was revoked."""

_MAX_NAME_CHARS = 100


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


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of one tenant; looking up a presented key is the exception."""

    database: Database

    def create(self, name: str, role: ApiRole) -> tuple[str, ListedKey]:
        """Create a key.

        Returns:
            The whole key, which is not stored and cannot be shown again, and what is stored.

        Raises:
            InvalidParameterError: The name is blank, too long or cannot be stored.
        """
        if not (name.strip() and name.isprintable() and len(name) <= _MAX_NAME_CHARS):
            raise InvalidParameterError(
                _("The name must have between 1 and {maximum} visible characters.").format(
                    maximum=_MAX_NAME_CHARS
                ),
                name=name,
            )
        key_id, secret = secrets.token_hex(8), secrets.token_urlsafe(32)
        with self.database.transaction() as connection:
            row = queries().insert_api_key(
                connection,
                id=key_id,
                name=name,
                role=role.value,
                secret_sha256=hash_secret(secret),
            )
        stored = ListedKey(key_id, name, role, row.created_at, None)
        return whole_key(key_id, secret), stored

    def list(self) -> Sequence[ListedKey]:
        """Return the keys, revoked ones too, oldest first."""
        with self.database.transaction() as connection:
            rows = list(queries().list_api_keys(connection))
        return [
            ListedKey(row.id, row.name, ApiRole(row.role), row.created_at, row.revoked_at)
            for row in rows
        ]

    def revoke(self, key_id: str) -> None:
        """Revoke a key.

        Raises:
            InvalidParameterError: There is no such key, or it is revoked already.
        """
        with self.database.transaction() as connection:
            if not queries().revoke_api_key(connection, id=key_id):
                raise InvalidParameterError(
                    _("“{name}” does not exist.").format(name=shown(key_id))
                )

    def find(self, key_id: str) -> StoredKey | None:
        """Return a valid key of any tenant, to check a presented one against."""
        with self.database.transaction() as connection:
            row = queries().fetch_api_key(connection, id=key_id)
        if row is None:
            return None
        return StoredKey(row.tenant_id, ApiRole(row.role), bytes(row.secret_sha256))

    def any(self) -> bool:
        """Return whether any tenant has ever had a key."""
        with self.database.transaction() as connection:
            return bool(queries().any_api_key(connection))
