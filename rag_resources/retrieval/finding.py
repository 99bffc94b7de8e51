"""Finds candidates: all retrievers together, or one by one if that fails.

Together they take one statement, based on the plan of an earlier question. The statement also
returns the present plan. If the plan has changed, planning and searching take a statement each.

The statements themselves are in `retrieval.searching`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import psycopg
import structlog

from rag_resources.core.deadline import Deadline
from rag_resources.core.errors import (
    DatabaseTimeoutError,
    DatabaseUnavailableError,
    DependencyOpenError,
)
from rag_resources.core.retrievers import KINDS, RetrieverName
from rag_resources.core.types import Ranking
from rag_resources.database.readers import Reads
from rag_resources.resilience.breakers import Breakers
from rag_resources.resilience.deadlines import FAIR_MS, blames, share
from rag_resources.resilience.retry import retried
from rag_resources.retrieval.found import Found
from rag_resources.retrieval.searching import Search
from rag_resources.store.index_state import read_index_version
from rag_resources.store.search import SearchPlan

# Shares of the time left: for all retrievers together before each is tried alone, and for each one
# tried alone, so that some time always remains to fetch the passages.
_SHARE_TOGETHER = 0.4
_SHARE_ALONE = 0.45
# Share of the time left for following links; the results of the others are already there.
_SHARE_FOLLOWING = 0.5
# Most plans kept for later questions: one for each tenant and model, of a few bytes each.
_MOST_PLANS = 1_000
# SQLSTATE classes that mean the connection is lost or about to be: 08 connection exception, 57
# operator intervention (PostgreSQL documentation, appendix A).
_CONNECTION_CLASSES = ("08", "57")

_log = structlog.get_logger()


class Finder:
    """Finds candidates in one database.

    Args:
        database: Open.
        breakers: Skip a retriever that has failed too often, and all of them while the database is
            down.
    """

    def __init__(self, database: Reads, breakers: Breakers) -> None:
        self._database = database
        self._breakers = breakers
        self._plans: dict[tuple[object, ...], SearchPlan] = {}

    def find(self, search: Search, names: Sequence[RetrieverName]) -> Found:
        """Search with the given retrievers; each one that fails is replaced by its stand-ins.

        Raises:
            DatabaseUnavailableError: The database does not answer, even after retries.
            DependencyOpenError: The database has failed too often recently.
            DatabaseError: The passages could not be fetched.
            psycopg.Error: The passages could not be fetched.
        """
        deadline = search.request.deadline
        # Opening a connection takes time, too.
        fair = deadline.remaining_ms >= FAIR_MS
        with self._breakers["database"].guard(lambda error: fair and _is_lost(error)):
            direct = [name for name in names if KINDS[name].searches_by != "links"]
            found = retried(lambda: self._find(search, direct), deadline=deadline)
            for name in names:
                if name not in direct and search.follows(found, name):
                    found = self._followed(search, found, name)
            return found

    def _find(self, search: Search, names: Sequence[RetrieverName]) -> Found:
        return self._together(search, names) or self._apart(search, names)

    def _followed(self, search: Search, found: Found, name: RetrieverName) -> Found:
        """Add what links from the found chunks lead to; if that fails, return only those found."""
        until = share(search.request.deadline, _SHARE_FOLLOWING)
        try:
            with (
                self._breakers[search.dependency(name)].guard(blames(until)),
                self._database.snapshot(until) as connection,
            ):
                return search.followed(connection, found, name)
        except Exception as error:  # noqa: BLE001 -- what the others found is there, whatever it is
            return replace(found, failures={**found.failures, name: error})

    def _together(self, search: Search, names: Sequence[RetrieverName]) -> Found | None:
        """Search with all retrievers together; return None if that fails."""
        breakers = [self._breakers[search.dependency(name)] for name in names]
        if not all(breaker.is_closed for breaker in breakers):
            return None
        until = share(search.request.deadline, _SHARE_TOGETHER)
        try:
            found = self._at_once(search, names, until) or self._in_steps(search, names, until)
        except Exception as error:
            if _is_lost(error):
                raise
            return None  # Running each alone will show which one failed, and why.
        for breaker in breakers:
            breaker.succeeded()
        return found

    def _at_once(
        self, search: Search, names: Sequence[RetrieverName], until: Deadline
    ) -> Found | None:
        """Search in one statement under the plan of an earlier question; None if it has changed."""
        key = search.plan_key(names)
        plan = self._plans.get(key) if search.fits_one_statement else None
        if plan is None:
            return None
        try:
            with self._database.autocommit(until) as connection:
                found = search.at_once(connection, names, plan)
        except Exception as error:
            if isinstance(error, DatabaseTimeoutError) or _is_lost(error):
                raise
            # For example, the statement names the tables of a model that was retired. It is logged:
            # if it persists, each question is searched twice, and nothing else shows that.
            _log.warning("one_statement_failed", error=type(error).__name__)
            found = None
        if found is None:
            self._plans.pop(key, None)
        return found

    def _in_steps(self, search: Search, names: Sequence[RetrieverName], until: Deadline) -> Found:
        """Plan, search and fetch, and keep the plan for the next question."""
        # One snapshot keeps candidates, their notes and the notes not yet chunked consistent.
        with self._database.snapshot(until) as connection:
            request = search.request
            version = read_index_version(connection, request.tenant) if request.cached else None
            found = search.fetch(connection, search.rankings(connection, names), names)
        if search.plan and search.fits_one_statement:
            if len(self._plans) >= _MOST_PLANS:
                self._plans.clear()
            self._plans[search.plan_key(names)] = search.plan
        return replace(found, version=version)

    def _apart(self, search: Search, names: Sequence[RetrieverName]) -> Found:
        """Run each retriever on its own, then the stand-ins of those that failed."""
        attempts = _Attempts()
        self._try(search, names, attempts)
        while stand_ins := attempts.stand_ins():
            self._try(search, stand_ins, attempts)
        if not attempts.rankings:
            # An open breaker skips a dependency while others can serve; nothing else can serve now.
            self._try(search, attempts.refused(), attempts, insist=True)
        if not attempts.rankings:
            return Found(failures=attempts.failures)
        rankings = [ranking for found in attempts.rankings.values() for ranking in found]
        return replace(
            self._fetched(search, rankings, tuple(attempts.rankings)), failures=attempts.failures
        )

    def _fetched(
        self, search: Search, rankings: Sequence[Ranking], worked: Sequence[RetrieverName]
    ) -> Found:
        """Fuse lists and fetch passages; if looking scores up fails, do so without them."""
        deadline = search.request.deadline
        try:
            with self._database.snapshot(deadline) as connection:
                return search.fetch(connection, rankings, worked)
        except Exception as error:
            if isinstance(error, DatabaseTimeoutError) or _is_lost(error):
                raise
            search.stages.degrade("scores", error, component="database")
            with self._database.snapshot(deadline) as connection:
                return search.fetch(connection, rankings, worked, looks_up=False)

    def _try(
        self,
        search: Search,
        names: Sequence[RetrieverName],
        attempts: "_Attempts",
        *,
        insist: bool = False,
    ) -> None:
        for name in names:
            try:
                found = self._alone(search, name, tuple(attempts.rankings), insist=insist)
            except Exception as error:
                if _is_lost(error):
                    raise
                attempts.failures[name] = error
            else:
                attempts.rankings[name] = found
                attempts.failures.pop(name, None)

    def _alone(
        self,
        search: Search,
        name: RetrieverName,
        beside: Sequence[RetrieverName],
        *,
        insist: bool,
    ) -> list[Ranking]:
        # Embed first: a failing model is not a failing search, and needs no connection.
        search.embed(name, insist=insist)
        until = share(search.request.deadline, _SHARE_ALONE)
        with (
            self._breakers[search.dependency(name)].guard(blames(until), insist=insist),
            self._database.snapshot(until) as connection,
        ):
            return search.rankings(connection, [name], beside=beside)


@dataclass
class _Attempts:
    """The outcome of running retrievers one by one.

    Attributes:
        rankings: The results of those that answered.
        failures: Why the others failed.
    """

    rankings: dict[RetrieverName, list[Ranking]] = field(default_factory=dict)
    failures: dict[RetrieverName, Exception] = field(default_factory=dict)

    def stand_ins(self) -> list[RetrieverName]:
        """Return the stand-ins of the retrievers that failed.

        A failed retriever adds none once one of its stand-ins has answered.
        """
        asked = self.rankings.keys() | self.failures.keys()
        wanted = {
            stand_in: None
            for name in self.failures
            if not self.rankings.keys() & set(KINDS[name].stand_ins)
            for stand_in in KINDS[name].stand_ins
            if stand_in not in asked
        }
        return list(wanted)

    def refused(self) -> list[RetrieverName]:
        """Return the retrievers that were skipped because their circuit breaker is open."""
        return [
            name for name, error in self.failures.items() if isinstance(error, DependencyOpenError)
        ]


def _is_lost(error: Exception) -> bool:
    """Whether the connection was lost and its queries need retrying.

    It was not if the server answered with an error about this one statement: a lock, too little
    memory, an unreadable file.
    """
    if not isinstance(error, DatabaseUnavailableError):
        return False
    cause = error.__cause__
    state = cause.sqlstate if isinstance(cause, psycopg.Error) else None
    return state is None or state.startswith(_CONNECTION_CLASSES)
