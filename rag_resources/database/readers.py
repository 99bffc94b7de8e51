"""Reads from standbys that are fresh enough, and otherwise from the primary.

A standby is fresh while it has replayed everything that the primary had written some seconds ago.
Threads compare their positions in the write-ahead log: the times that PostgreSQL keeps say nothing
while nobody writes. Pools are in `pool`.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Protocol

import psycopg
import structlog

from rag_resources.core.deadline import Deadline
from rag_resources.core.errors import DatabaseError, DatabaseUnavailableError
from rag_resources.database.connection import LimitedConnection
from rag_resources.database.migrations import connect, place
from rag_resources.database.pool import Database
from rag_resources.database.queries import queries

PROBE_S = 0.5
PROBE_MS = 1_000.0
_REMEMBERED = 240
"""Positions of the primary that are kept: two minutes of probes."""

_log = structlog.get_logger()


class Reads(Protocol):
    """Lends connections for reading: a `Database`, or `Readers`."""

    def snapshot(
        self, deadline: Deadline | None = None
    ) -> AbstractContextManager[LimitedConnection]:
        """See `Database.snapshot`."""
        ...

    def autocommit(
        self, deadline: Deadline | None = None
    ) -> AbstractContextManager[LimitedConnection]:
        """See `Database.autocommit`."""
        ...

    def one_source(self) -> AbstractContextManager[None]:
        """Read everything in the block from one server."""
        ...


class Readers:
    """Lends connections to the freshest standby, or to the primary if none is fresh enough.

    Args:
        primary: Open.
        standbys: Not opened yet; opened by a thread, so that one that is down delays nothing.
        staleness_s: How far, in seconds, a standby may lag behind the primary.
    """

    def __init__(
        self, primary: Database, standbys: Sequence[Database], *, staleness_s: float
    ) -> None:
        self._primary = primary
        self._standbys = [_Standby(database) for database in standbys]
        self._staleness_s = staleness_s
        self._written: deque[tuple[float, Decimal]] = deque(maxlen=_REMEMBERED)
        self._pinned: ContextVar[Database | None] = ContextVar("pinned", default=None)
        self._ended = threading.Event()
        # A thread for each server: one that does not answer delays no other's probe.
        self._threads = [
            threading.Thread(target=self._repeat, args=[probe], name="readers", daemon=True)
            for probe in (self._probe_primary, *map(self._probing, self._standbys))
        ]
        self._told = 0

    def open(self) -> "Readers":
        """Begin to watch the servers."""
        for thread in self._threads:
            thread.start()
        return self

    def close(self) -> None:
        """Close the standbys' pools."""
        self._ended.set()
        for thread in self._threads:
            thread.join(2 * PROBE_MS / 1000)
        for standby in self._standbys:
            standby.close()

    @contextmanager
    def one_source(self) -> Iterator[None]:
        """Read everything in the block from one server, unless that server is lost.

        Two standbys may be at different points. Data that belongs together, such as an answer and
        the version of the index that it is cached under, is therefore read from one.
        """
        token = self._pinned.set(self.current)
        try:
            yield
        finally:
            self._pinned.reset(token)

    @property
    def current(self) -> Database:
        """The pool that reads use now: the freshest standby's, or the primary's."""
        fresh = self._fresh()
        return fresh[0].database if fresh else self._primary

    @property
    def staleness_s(self) -> list[float | None]:
        """The most that each standby may lag behind the primary; None if that is not known."""
        now = time.monotonic()
        return [
            None if standby.fresh_at is None else now - standby.fresh_at
            for standby in self._standbys
        ]

    @property
    def used(self) -> list[bool]:
        """Whether each standby is fresh enough to be read now."""
        fresh = self._fresh()
        return [standby in fresh for standby in self._standbys]

    @property
    def addresses(self) -> list[str]:
        """Host and port of each standby."""
        return [standby.database.address for standby in self._standbys]

    @contextmanager
    def snapshot(self, deadline: Deadline | None = None) -> Iterator[LimitedConnection]:
        """Lend a connection as `Database.snapshot` does."""
        with self._lending() as database, database.snapshot(deadline) as connection:
            yield connection

    @contextmanager
    def autocommit(self, deadline: Deadline | None = None) -> Iterator[LimitedConnection]:
        """Lend a connection as `Database.autocommit` does."""
        with self._lending() as database, database.autocommit(deadline) as connection:
            yield connection

    @contextmanager
    def _lending(self) -> Iterator[Database]:
        """Yield the pool to read from; a standby that is lost is not used before its next probe.

        So a retry reads from another server.
        """
        pinned, fresh = self._pinned.get(), self._fresh()
        chosen = next((s for s in fresh if pinned is None or s.database is pinned), None)
        if pinned is self._primary or chosen is None:
            yield self._primary
            return
        try:
            yield chosen.database
        except DatabaseUnavailableError:
            chosen.fresh_at = None
            raise

    def _fresh(self) -> list["_Standby"]:
        """Return the standbys within the bound, freshest first."""
        oldest = time.monotonic() - self._staleness_s
        usable = [s for s in self._standbys if s.fresh_at is not None and s.fresh_at >= oldest]
        return sorted(usable, key=lambda standby: -(standby.fresh_at or 0))

    def _repeat(self, probe: Callable[[], None]) -> None:
        while not self._ended.is_set():
            probe()
            self._ended.wait(PROBE_S)

    def _probe_primary(self) -> None:
        """Record the primary's present position in the write-ahead log."""
        now = time.monotonic()
        with suppress(DatabaseError, psycopg.Error), self._primary.autocommit(_soon()) as lent:
            self._written.append((now, queries().write_position(lent)))

    def _probing(self, standby: "_Standby") -> Callable[[], None]:
        """Return the probe of a standby; it logs when the number of standbys in use changes."""

        def probe() -> None:
            standby.probe(tuple(self._written))
            used = len(self._fresh())
            if used != self._told:
                self._told = used
                _log.warning("readers_changed", used=used, configured=len(self._standbys))

        return probe


class _Standby:
    """A standby, and the time up to which it has all writes of the primary.

    Attributes:
        fresh_at: It has all that was written before this, by the monotonic clock; None: unknown.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self.fresh_at: float | None = None
        self._is_open = False

    def probe(self, written: Sequence[tuple[float, Decimal]]) -> None:
        """Read its position in the write-ahead log."""
        try:
            if not self._is_open:
                self.database.open()
                self._is_open = True
            with self.database.autocommit(_soon()) as connection:
                replayed = queries().replay_position(connection)
        except (DatabaseError, psycopg.Error):
            self.fresh_at = None
            return
        # A server that was promoted goes its own way: it may lack what the primary writes.
        known = [] if replayed is None else [at for at, upto in written if upto <= replayed]
        self.fresh_at = max(known, default=None)

    def close(self) -> None:
        """Close its pool."""
        if self._is_open:
            self.database.close()


class StandbyState(StrEnum):
    """Whether a standby can be read from."""

    CURRENT = "current"
    BEHIND = "behind"
    LOST = "lost"
    NO_STANDBY = "no_standby"
    """Not a standby any more, as after a promotion."""


@dataclass(frozen=True, slots=True)
class StandbyStatus:
    """The present state of a standby.

    Attributes:
        address: Host and port.
        state: Whether it can be read from.
        behind_bytes: How much of the write-ahead log it lacks; None if that is not known.
    """

    address: str
    state: StandbyState
    behind_bytes: int | None = None


def look_at_standbys(primary_url: str, urls: Sequence[str]) -> list[StandbyStatus]:
    """Return how far each standby lags behind the primary's position of a moment before.

    Raises:
        DatabaseUnavailableError: The primary does not answer.
    """
    with connect(primary_url) as primary:
        written = queries().reached_position(primary)
    return [_look(url, int(written)) for url in urls]


def _look(url: str, written: int) -> StandbyStatus:
    try:
        with connect(url, variable="DATABASE_READ_URL") as connection:
            replayed = queries().replay_position(connection)
    except (DatabaseUnavailableError, psycopg.Error):
        return StandbyStatus(place(url), StandbyState.LOST)
    if replayed is None:
        return StandbyStatus(place(url), StandbyState.NO_STANDBY)
    behind = max(0, written - int(replayed))
    state = StandbyState.BEHIND if behind else StandbyState.CURRENT
    return StandbyStatus(place(url), state, behind)


def _soon() -> Deadline:
    return Deadline.after(PROBE_MS, time.monotonic)
