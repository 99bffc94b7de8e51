"""Verifies JSON Web Tokens of an external login service with the keys that it publishes."""

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any, TypeGuard

import httpx
import jwt
import structlog

from rag_resources.core.api_keys import ApiRole
from rag_resources.settings import Settings

FRESH_S = 600
"""How long published keys are used without asking again."""
RETRY_S = 30
"""Seconds until the keys are fetched again for an unknown key id, since anybody can invent one."""
OUTAGE_S = 86_400
"""How long published keys are used while the service does not answer."""
TIMEOUT_S = 5.0
LEEWAY_S = 30
# Only those with a public key: with a shared secret, whoever verifies tokens could forge them.
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "ES512", "EdDSA")
"""Tolerated difference of the clocks."""
_MOST_TENANT_CHARS = 100

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Bearer:
    """Who a token is for.

    Attributes:
        subject: A digest of issuer and subject, for limits and logs.
    """

    tenant: str
    role: ApiRole
    subject: str


def is_token(given: str) -> bool:
    """Whether a bearer looks like a JSON Web Token rather than like one of our keys."""
    return given.count(".") == 2 and given.startswith("ey")


class Tokens:
    """Verifies tokens against the published keys of an issuer.

    Args:
        settings: Has a JWKS address, an issuer and an audience.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = Lock()
        self._keys: Mapping[str, jwt.PyJWK] = {}
        self._fetched_at = self._asked_at = float("-inf")

    def bearer(self, token: str) -> Bearer | None:
        """Return the bearer of a token; None if it is not valid, or names no tenant or role."""
        settings = self._settings
        try:
            key = self._key(str(jwt.get_unverified_header(token).get("kid", "")))
            if key is None:
                return None
            claims = jwt.decode(
                token,
                key,
                algorithms=list(ALGORITHMS),
                audience=settings.jwt_audience,
                issuer=settings.jwt_issuer,
                leeway=LEEWAY_S,
                options={"require": ["exp", "iss", "aud"]},
            )
        except jwt.PyJWTError as error:
            _log.info("token_refused", error=type(error).__name__)
            return None
        tenant, role = claims.get(settings.jwt_tenant_claim), _role(claims, settings)
        if not _is_tenant(tenant) or role is None:
            _log.info("token_refused", error="claims")
            return None
        subject = f"{claims['iss']} {claims.get('sub', '')}"
        return Bearer(tenant, role, hashlib.sha256(subject.encode()).hexdigest()[:16])

    def _key(self, key_id: str) -> jwt.PyJWK | None:
        with self._lock:
            now = time.monotonic()
            age, waited = now - self._fetched_at, now - self._asked_at
            if (age > FRESH_S or key_id not in self._keys) and waited > RETRY_S:
                self._asked_at = now
                self._fetch(now)
            if now - self._fetched_at > OUTAGE_S:
                return None
            return self._keys.get(key_id)

    def _fetch(self, now: float) -> None:
        try:
            response = httpx.get(str(self._settings.jwt_jwks_url), timeout=TIMEOUT_S)
            response.raise_for_status()
            published = jwt.PyJWKSet.from_dict(response.json())
        except (httpx.HTTPError, ValueError, AttributeError, jwt.PyJWTError) as error:
            _log.warning("jwks_unavailable", error=type(error).__name__)
            return
        self._keys = {key.key_id or "": key for key in published.keys}
        self._fetched_at = now


def _is_tenant(value: Any) -> TypeGuard[str]:
    return (
        isinstance(value, str)
        and 0 < len(value.strip()) <= _MOST_TENANT_CHARS
        and (value.isprintable())
    )


def _role(claims: Mapping[str, Any], settings: Settings) -> ApiRole | None:
    """Return the highest role that a claim names; it is a text or a list of texts."""
    value = claims.get(settings.jwt_role_claim)
    named = value if isinstance(value, list) else [value]
    return next((role for role in ApiRole if role.value in named), None)
