"""Keys of the HTTP API: their form, their check, and scoped keys made from them.

A key is `rag_ID_SECRET`. The database has the id and the SHA-256 of the secret, which is random, so
that no slow hash is needed. A scoped key carries filters and an expiry, signed with that hash: the
holder of a key makes one without asking the server, and it can only search.
"""

import base64
import binascii
import hashlib
import hmac
import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

_PREFIX = "rag_"
_SCOPED_PREFIX = "ragscoped_"


class ApiRole(StrEnum):
    """The role of a key; each role includes the rights of those after it."""

    OWNER = "owner"
    WRITER = "writer"
    READER = "reader"

    def covers(self, needed: "ApiRole") -> bool:
        """Whether this role includes the rights of another."""
        order = list(ApiRole)
        return order.index(self) <= order.index(needed)


@dataclass(frozen=True, slots=True)
class PresentedKey:
    """A key as a request brought it, not checked yet.

    Attributes:
        key_id: The id to look up.
        secret: The secret of a whole key; empty in a scoped one.
        scope: The signed text of a scoped key; None in a whole one.
        signature: The signature of the scope.
    """

    key_id: str
    secret: str = ""
    scope: str | None = None
    signature: str = ""

    def is_genuine(self, secret_sha256: bytes) -> bool:
        """Whether the holder has, or the signer had, the secret with this hash."""
        if self.scope is None:
            return hmac.compare_digest(hash_secret(self.secret), secret_sha256)
        expected = _signature(f"{self.key_id}.{self.scope}", secret_sha256)
        return hmac.compare_digest(expected, self.signature.encode())


@dataclass(frozen=True, slots=True)
class Scope:
    """The restrictions of a scoped key.

    Attributes:
        filters: As `core.filters.parse_filters` reads them.
        expires_at: Seconds since 1970 in UTC.
    """

    filters: dict[str, Any]
    expires_at: int


def hash_secret(secret: str) -> bytes:
    """Return the hash of a secret that is stored."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def whole_key(key_id: str, secret: str) -> str:
    """Return the key that is shown once."""
    return f"{_PREFIX}{key_id}_{secret}"


def scoped_key(key: str, scope: Scope) -> str:
    """Make a key that can only search, only within filters, until it expires.

    Raises:
        ValueError: The key is not a whole key.
    """
    presented = parse_key(key)
    if presented is None or presented.scope is not None:
        raise ValueError("not a whole key")
    written = json.dumps({"filters": scope.filters, "expiresAt": scope.expires_at})
    payload = base64.urlsafe_b64encode(written.encode()).decode().rstrip("=")
    signed = f"{presented.key_id}.{payload}"
    signature = _signature(signed, hash_secret(presented.secret)).decode()
    return f"{_SCOPED_PREFIX}{signed}.{signature}"


def parse_key(text: str) -> PresentedKey | None:
    """Read a key; None if it does not have the form of one."""
    if text.startswith(_SCOPED_PREFIX):
        parts = text.removeprefix(_SCOPED_PREFIX).split(".")
        if len(parts) == 3 and text.isascii():
            return PresentedKey(parts[0], scope=parts[1], signature=parts[2])
        return None
    key_id, _, secret = text.removeprefix(_PREFIX).partition("_")
    if not (text.startswith(_PREFIX) and key_id and secret and text.isascii()):
        return None
    return PresentedKey(key_id, secret)


def read_scope(payload: str) -> Scope | None:
    """Read the restrictions of a scoped key; None if they are not valid."""
    try:
        padded = payload + "=" * (-len(payload) % 4)
        read = json.loads(base64.urlsafe_b64decode(padded))
        return Scope(dict(read["filters"]), int(read["expiresAt"]))
    except (binascii.Error, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None


def _signature(signed: str, key: bytes) -> bytes:
    return hmac.new(key, signed.encode(), hashlib.sha256).hexdigest().encode()
