"""Keys of the HTTP API: their form and their check.

A key is `rag_ID_SECRET`. The database has the id and the SHA-256 of the secret, which is random, so
that no slow hash is needed.
"""

import hashlib
import hmac
from dataclasses import dataclass
from enum import StrEnum

_PREFIX = "rag_"


class ApiRole(StrEnum):
    """The role of a key; of a tenant's, each includes the rights of those after it."""

    OPERATOR = "operator"
    """Of the server: reads its numbers, and no notes."""
    OWNER = "owner"
    WRITER = "writer"
    READER = "reader"

    def covers(self, needed: "ApiRole") -> bool:
        """Whether this role includes the rights of another."""
        if ApiRole.OPERATOR in (self, needed):
            return self is needed
        order = list(ApiRole)
        return order.index(self) <= order.index(needed)


@dataclass(frozen=True, slots=True)
class PresentedKey:
    """A key as a request brought it, not checked yet."""

    key_id: str
    secret: str

    def is_genuine(self, secret_sha256: bytes) -> bool:
        """Whether the holder has the secret with this hash."""
        return hmac.compare_digest(hash_secret(self.secret), secret_sha256)


def hash_secret(secret: str) -> bytes:
    """Return the hash of a secret that is stored."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def whole_key(key_id: str, secret: str) -> str:
    """Return the key that is shown once."""
    return f"{_PREFIX}{key_id}_{secret}"


def parse_key(text: str) -> PresentedKey | None:
    """Read a key; None if it does not have the form of one."""
    key_id, _, secret = text.removeprefix(_PREFIX).partition("_")
    if not (text.startswith(_PREFIX) and key_id and secret and text.isascii()):
        return None
    return PresentedKey(key_id, secret)
