"""Identifies the caller by the request's key: its tenant and its role."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from ipaddress import ip_address
from threading import Lock
from typing import Annotated, Any

import anyio.to_thread
from cachetools import TTLCache
from fastapi import Depends, Request, Security
from fastapi.security import HTTPBearer

from rag_resources.api.problems import ProblemError, unavailable
from rag_resources.application import Application
from rag_resources.core.api_keys import ApiRole, parse_key
from rag_resources.languages.messages import _
from rag_resources.settings import Settings
from rag_resources.store.api_keys import KEY_CACHE_S, StoredKey

_CACHED_KEYS = 10_000
_INVALID_KEY = _(
    "The key is not valid or was revoked. Whoever runs the service sees the keys with "
    "“rag key list” and creates another with “rag key create NAME”."
)

_FORWARDED = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip")
"""Headers that proxies add."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of a request.

    Attributes:
        key_id: Its key's id; empty for this machine while there are no keys.
    """

    tenant: str
    role: ApiRole
    key_id: str = ""


class _UnknownError(Exception):
    """The database has to be asked, and waited for."""


class Door:
    """Checks keys.

    Args:
        settings: The environment.
        application: Used to look keys up.
    """

    def __init__(self, settings: Settings, application: Application) -> None:
        self._settings = settings
        self._application = application
        self._known: TTLCache[str, StoredKey | bool | None] = TTLCache(_CACHED_KEYS, KEY_CACHE_S)
        self._lock = Lock()

    async def caller_of(self, request: Request) -> Caller:
        """Return the caller of a request: at once if its key is cached, else by a thread.

        Raises:
            ProblemError: 401: there is no valid key; 503: the database does not answer.
            DatabaseError: The key cannot be looked up.
        """
        if not request.app.state.has_database.is_set():
            raise unavailable()
        with suppress(_UnknownError):
            return self._caller_of(request, asks=False)
        return await anyio.to_thread.run_sync(partial(self._caller_of, request, asks=True))

    def _caller_of(self, request: Request, *, asks: bool) -> Caller:
        """Return the caller of a request.

        Raises:
            ProblemError: As for `caller_of`.
            _UnknownError: The key is not cached, and `asks` is false.
        """
        scheme, __, given = request.headers.get("authorization", "").partition(" ")
        # Some clients always send a key; it is ignored while there are none.
        if self._is_open(request, asks=asks):
            caller = Caller(self._settings.tenant, ApiRole.OWNER)
        elif given.strip() and scheme.lower() == "bearer":
            caller = self._checked(given.strip(), asks=asks)
        else:
            raise _unauthorized(
                _(
                    "The key is missing: send it in the header Authorization: Bearer KEY. Create "
                    "one with rag key create NAME."
                )
            )
        request.state.key_id = caller.key_id or None
        return caller

    def _checked(self, given: str, *, asks: bool) -> Caller:
        presented = parse_key(given)
        if presented is not None:
            find = partial(self._application.keys.find, presented.key_id)
            stored = self._looked_up(presented.key_id, find, asks=asks)
            if stored is not None and presented.is_genuine(stored.secret_sha256):
                return Caller(stored.tenant, stored.role, presented.key_id)
        raise _unauthorized(_INVALID_KEY)

    def _is_open(self, request: Request, *, asks: bool) -> bool:
        """Whether a request needs no key: there are none, and it comes from this machine.

        The Host header is checked too. Otherwise any web page could reach the API by a DNS name of
        its own that points here (DNS rebinding). A page elsewhere is refused by its origin, and
        what a proxy passes on needs a key.

        Raises:
            ProblemError: 403: a page of another origin sent it.
        """
        host = request.client.host if request.client else ""
        is_near = is_loopback(host) and is_loopback(request.url.hostname or "")
        # nginx adds no header unless told to, and speaks HTTP 1.0 then, which no client does.
        is_passed_on = request.scope["http_version"] == "1.0" or any(
            name in request.headers for name in _FORWARDED
        )
        if not self._settings.api_open or not is_near or is_passed_on:
            return False
        if self._looked_up("", self._application.keys.any, asks=asks):
            return False
        if _is_foreign(request):
            raise ProblemError(
                HTTPStatus.FORBIDDEN,
                _("A page of another origin may not use the API without a key."),
            )
        return True

    def _looked_up(self, name: str, look: Callable[[], Any], *, asks: bool) -> Any:
        """Return what the database says of a name, or said of it a few seconds ago."""
        # The cache is read only once, because an entry may expire between two reads.
        with self._lock, suppress(KeyError):
            return self._known[name]
        if not asks:
            raise _UnknownError
        found = look()
        with self._lock:
            self._known[name] = found
        return found


def _is_foreign(request: Request) -> bool:
    """Say whether a web page of another origin sent a request; programs send no such headers."""
    origin = request.headers.get("origin")
    if origin is not None:
        return origin != f"{request.url.scheme}://{request.url.netloc}"
    return request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin")


def is_loopback(host: str) -> bool:
    """Whether a name or address is this machine's own."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _unauthorized(message: str) -> ProblemError:
    return ProblemError(HTTPStatus.UNAUTHORIZED, message, headers={"WWW-Authenticate": "Bearer"})


_BEARER = HTTPBearer(scheme_name="key", auto_error=False)
"""Describes the key in the OpenAPI schema."""


# Coroutines: FastAPI runs plain functions in threads, which takes longer than they do.
async def _caller(request: Request, _key: Annotated[object, Security(_BEARER)]) -> Caller:
    caller: Caller = await request.app.state.door.caller_of(request)
    return caller


def _needs(role: ApiRole, caller: Caller) -> Caller:
    if not caller.role.covers(role):
        message = _(
            "The key is of “{role}” and this needs “{needed}”: whoever runs the service creates "
            "one with “rag key create NAME --role {needed}”."
        ).format(role=caller.role.value, needed=role.value)
        raise ProblemError(HTTPStatus.FORBIDDEN, message)
    return caller


async def _reader(caller: Annotated[Caller, Depends(_caller)]) -> Caller:
    return _needs(ApiRole.READER, caller)


async def _writer(caller: Annotated[Caller, Depends(_caller)]) -> Caller:
    return _needs(ApiRole.WRITER, caller)


async def _operator(caller: Annotated[Caller, Depends(_caller)]) -> Caller:
    return _needs(ApiRole.OPERATOR, caller) if caller.key_id else caller


Reader = Annotated[Caller, Depends(_reader)]
Writer = Annotated[Caller, Depends(_writer)]
Operator = Annotated[Caller, Depends(_operator)]
