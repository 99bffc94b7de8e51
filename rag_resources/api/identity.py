"""Identifies the caller by the request's key: its tenant, role, filters and rate limit."""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from ipaddress import ip_address
from math import ceil
from threading import Lock
from typing import Annotated, TypeVar

import anyio.to_thread
import structlog
from cachetools import TTLCache
from fastapi import Depends, Request
from limits import RateLimitItem, parse
from limits.errors import StorageError
from limits.storage import MemoryStorage, RedisStorage
from limits.strategies import MovingWindowRateLimiter

from rag_resources.api.problems import ProblemError, later
from rag_resources.api.tokens import Tokens, is_token
from rag_resources.application import Application
from rag_resources.application.keys import KEY_CACHE_S
from rag_resources.core.api_keys import ApiRole, parse_key, read_scope
from rag_resources.core.errors import DatabaseError, InvalidFiltersError
from rag_resources.core.filters import RetrievalFilters, narrowed, parse_filters
from rag_resources.languages.messages import _
from rag_resources.settings import Settings
from rag_resources.store.api_keys import StoredKey

_CACHED_KEYS = 10_000
_INVALID_KEY = _(
    "The key is not valid, has expired or was revoked. Whoever runs the service sees the keys with "
    "“rag key list” and creates another with “rag key create NAME”."
)
_OUTAGE_S = 3_600
"""How long the last known keys are valid while the database does not answer."""

_FORWARDED = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip")
"""Headers that proxies add."""

FoundT = TypeVar("FoundT")

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of a request.

    Attributes:
        key_id: Its key's id; empty for this machine while there are no keys.
        filters: What a scoped key restricts every search to; None for a whole key.
    """

    tenant: str
    role: ApiRole
    key_id: str = ""
    filters: RetrievalFilters | None = None

    def within(self, asked: RetrievalFilters | None) -> RetrievalFilters | None:
        """Return the filters of a search of this caller.

        Raises:
            ProblemError: 403: the request names notes outside the key's filters.
        """
        if self.filters is None:
            return asked
        found = narrowed(self.filters, asked or RetrievalFilters())
        if found is None:
            raise ProblemError(
                HTTPStatus.FORBIDDEN, _("The filter asks for what the key does not show.")
            )
        return found


class _UnknownError(Exception):
    """The database, a login service or Redis has to be asked, and waited for."""


class Door:
    """Checks keys.

    Args:
        settings: The environment.
        application: Used to look keys up.
    """

    def __init__(self, settings: Settings, application: Application) -> None:
        self._settings = settings
        self._application = application
        self._known: TTLCache[str, StoredKey | None] = TTLCache(_CACHED_KEYS, KEY_CACHE_S)
        self._open: TTLCache[str, bool] = TTLCache(1, KEY_CACHE_S)
        self._last_known: TTLCache[str, StoredKey | None] = TTLCache(_CACHED_KEYS, _OUTAGE_S)
        self._last_open: TTLCache[str, bool] = TTLCache(1, _OUTAGE_S)
        self._lock = Lock()
        self._limiter = _limiter(settings)
        self._tokens = Tokens(settings) if settings.jwt_jwks_url else None
        self._limit: RateLimitItem | None = (
            parse(settings.api_rate_limit) if settings.api_rate_limit else None
        )

    async def caller_of(self, request: Request) -> Caller:
        """Return the caller of a request: at once if its key is cached, else by a thread.

        Raises:
            ProblemError: 401: there is no valid key; 429: it was used too often.
            DatabaseError: The key cannot be looked up.
        """
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
        self._count(caller, asks=asks)
        return caller

    def _checked(self, given: str, *, asks: bool) -> Caller:
        if self._tokens is not None and is_token(given):
            if not asks:
                raise _UnknownError
            bearer = self._tokens.bearer(given)
            if bearer is None:
                raise _unauthorized(
                    _("The token is not valid or has expired. Ask whoever issued it for another.")
                )
            return Caller(bearer.tenant, bearer.role, f"jwt-{bearer.subject}")
        presented = parse_key(given)
        stored = self._stored(presented.key_id, asks=asks) if presented else None
        if presented is None or stored is None:
            raise _unauthorized(_INVALID_KEY)
        if not presented.is_genuine(stored.secret_sha256):
            raise _unauthorized(_INVALID_KEY)
        if presented.scope is None:
            return Caller(stored.tenant, stored.role, presented.key_id)
        scope = read_scope(presented.scope)
        if scope is None or scope.expires_at <= time.time():
            raise _unauthorized(_INVALID_KEY)
        try:
            filters = parse_filters(scope.filters)
        except InvalidFiltersError:
            raise _unauthorized(_INVALID_KEY) from None
        return Caller(stored.tenant, ApiRole.READER, presented.key_id, filters)

    def _stored(self, key_id: str, *, asks: bool) -> StoredKey | None:
        return self._looked_up(
            key_id,
            self._known,
            self._last_known,
            lambda: self._application.keys.find(key_id),
            asks=asks,
        )

    def _is_open(self, request: Request, *, asks: bool) -> bool:
        """Whether a request needs no key: there are none, and it comes from this machine.

        The Host header is checked too. Otherwise any web page could reach the API by a DNS name of
        its own that points here (DNS rebinding). A page elsewhere is refused by its origin, and
        what a proxy passes on needs a key.

        Raises:
            ProblemError: 403: a page of another origin sent it.
        """
        if self._tokens is not None or not self._settings.api_open:
            return False
        host = request.client.host if request.client else ""
        headers = request.headers
        is_near = is_loopback(host) and is_loopback(request.url.hostname or "")
        if not is_near or any(name in headers for name in _FORWARDED):
            return False
        is_open = self._looked_up(
            "", self._open, self._last_open, lambda: not self._application.keys.any(), asks=asks
        )
        if is_open and _is_foreign(request):
            raise ProblemError(
                HTTPStatus.FORBIDDEN,
                _("A page of another origin may not use the API without a key."),
            )
        return is_open

    def _looked_up(
        self,
        name: str,
        cached: TTLCache[str, FoundT],
        last: TTLCache[str, FoundT],
        look: Callable[[], FoundT],
        *,
        asks: bool,
    ) -> FoundT:
        """Return the value of the database, or the last known one if it does not answer."""
        # Each cache is read only once, because an entry may expire between two reads.
        with self._lock, suppress(KeyError):
            return cached[name]
        if not asks:
            raise _UnknownError
        try:
            found = look()
        except DatabaseError:
            with self._lock, suppress(KeyError):
                cached[name] = known = last[name]
                return known
            raise
        with self._lock:
            cached[name] = last[name] = found
        return found

    def _count(self, caller: Caller, *, asks: bool) -> None:
        if self._limit is not None:
            if self._settings.redis_url is not None and not asks:
                raise _UnknownError
            self._hit(self._limit, caller.key_id)

    def _hit(self, limit: RateLimitItem, who: str) -> None:
        try:
            if self._limiter.hit(limit, who):
                return
        except StorageError as error:  # Without Redis, nothing is counted and nobody refused.
            _log.warning("rate_limit_off", error=type(error).__name__)
            return
        reset_at = self._limiter.get_window_stats(limit, who).reset_time
        seconds = max(1, ceil(reset_at - time.time()))
        raise later(
            _("Too many requests with this key. Try again in {seconds} s."),
            seconds=seconds,
            status=HTTPStatus.TOO_MANY_REQUESTS,
        )


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


def _limiter(settings: Settings) -> MovingWindowRateLimiter:
    if settings.redis_url is None:
        return MovingWindowRateLimiter(MemoryStorage())
    return MovingWindowRateLimiter(
        RedisStorage(
            settings.redis_url.get_secret_value(),
            wrap_exceptions=True,
            socket_timeout=1.0,
            socket_connect_timeout=1.0,
        )
    )


def _unauthorized(message: str) -> ProblemError:
    return ProblemError(HTTPStatus.UNAUTHORIZED, message, headers={"WWW-Authenticate": "Bearer"})


# Coroutines: FastAPI runs plain functions in threads, which takes longer than they do.
async def _reader(request: Request) -> Caller:
    caller: Caller = await request.app.state.door.caller_of(request)
    return caller


def _needs(role: ApiRole, caller: Caller) -> Caller:
    if caller.filters is not None:
        raise ProblemError(HTTPStatus.FORBIDDEN, _("A key with filters can only search."))
    if not caller.role.covers(role):
        message = _(
            "The key is of “{role}” and this needs “{needed}”: whoever runs the service creates "
            "one with “rag key create NAME --role {needed}”."
        ).format(role=caller.role.value, needed=role.value)
        raise ProblemError(HTTPStatus.FORBIDDEN, message)
    return caller


async def _whole_reader(caller: Annotated[Caller, Depends(_reader)]) -> Caller:
    return _needs(ApiRole.READER, caller)


async def _writer(caller: Annotated[Caller, Depends(_reader)]) -> Caller:
    return _needs(ApiRole.WRITER, caller)


async def _operator(request: Request, caller: Annotated[Caller, Depends(_reader)]) -> Caller:
    settings: Settings = request.app.state.settings
    if caller.tenant != settings.tenant:
        raise ProblemError(
            HTTPStatus.FORBIDDEN, _("Only an owner of the server's own tenant may read this.")
        )
    return _needs(ApiRole.OWNER, caller)


Searcher = Annotated[Caller, Depends(_reader)]
"""Anyone with a key, scoped ones too."""
Reader = Annotated[Caller, Depends(_whole_reader)]
Writer = Annotated[Caller, Depends(_writer)]
Operator = Annotated[Caller, Depends(_operator)]
