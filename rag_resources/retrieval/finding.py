"""Finding candidates whatever fails: in one statement while all is well, else one by one.

What is searched is `retrieval.searching`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import psycopg

from rag_resources.core.errors import DatabaseUnavailableError, DependencyOpenError
from rag_resources.core.retrievers import KINDS, RetrieverName
from rag_resources.core.types import Ranking
from rag_resources.database.pool import Database
from rag_resources.resilience.breakers import Breakers
from rag_resources.resilience.retry import retried
from rag_resources.retrieval.limits import FAIR_MS, blames, share
from rag_resources.retrieval.searching import Found, Search

# Of the time that is left: what all retrievers together may take before each is tried alone, and
# what each of those may take, so that some is always left to fetch what was found.
_SHARE_TOGETHER = 0.4
_SHARE_ALONE = 0.45
# SQLSTATE classes of a connection that is gone, or about to go: 08 connection exception, 57
# operator intervention (PostgreSQL documentation, appendix A).
_CONNECTION_CLASSES = ("08", "57")


class Finder:
    """Finds candidates in one database.

    Args:
        database: Open.
        breakers: Keep out a search that has failed too often, and all of them while the database
            does not answer.
    """

    def __init__(self, database: Database, breakers: Breakers) -> None:
        self._database = database
        self._breakers = breakers

    def find(self, search: Search, names: Sequence[RetrieverName]) -> Found:
        """Search by the retrievers given, and by the stand-ins of those that fail.

        Raises:
            DatabaseUnavailableError: The database does not answer, also after the retries.
            DependencyOpenError: It has failed too often of late.
            DatabaseError: What was found could not be fetched.
            psycopg.Error: What was found could not be fetched.
        """
        deadline = search.request.deadline
        # Also a connection takes its time to be made.
        fair = deadline.remaining_ms >= FAIR_MS
        with self._breakers["database"].guard(lambda error: fair and _is_lost(error)):
            return retried(lambda: self._find(search, names), deadline=deadline)

    def _find(self, search: Search, names: Sequence[RetrieverName]) -> Found:
        return self._together(search, names) or self._apart(search, names)

    def _together(self, search: Search, names: Sequence[RetrieverName]) -> Found | None:
        """Search in one statement; None if that cannot be done."""
        breakers = [self._breakers[search.dependency(name)] for name in names]
        if not all(breaker.is_closed for breaker in breakers):
            return None
        until = share(search.request.deadline, _SHARE_TOGETHER)
        try:
            # One snapshot: what is found, what it is cut from and what is searched whole agree.
            with self._database.snapshot(until) as connection:
                found = search.fetch(connection, search.rankings(connection, names), names)
        except Exception as error:
            if _is_lost(error):
                raise
            return None  # Which retriever it was, and why, is seen when each runs alone.
        for breaker in breakers:
            breaker.succeeded()
        return found

    def _apart(self, search: Search, names: Sequence[RetrieverName]) -> Found:
        """Search by each retriever on its own, then by stand-ins."""
        attempts = _Attempts()
        self._try(search, names, attempts)
        self._try(search, attempts.stand_ins(), attempts)
        if not attempts.rankings:
            # A breaker spares a failing dependency while there is another: now there is none.
            self._try(search, attempts.refused(), attempts, insist=True)
        if not attempts.rankings:
            return Found(failures=attempts.failures)
        rankings = [ranking for found in attempts.rankings.values() for ranking in found]
        with self._database.snapshot(search.request.deadline) as connection:
            found = search.fetch(connection, rankings, tuple(attempts.rankings))
        return replace(found, failures=attempts.failures)

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
        # First, as a model's failure is not the search's, nor worth a connection.
        search.embed(name, insist=insist)
        until = share(search.request.deadline, _SHARE_ALONE)
        with (
            self._breakers[search.dependency(name)].guard(blames(until), insist=insist),
            self._database.snapshot(until) as connection,
        ):
            return search.rankings(connection, [name], beside=beside)


@dataclass
class _Attempts:
    """What came of asking retrievers one by one.

    Attributes:
        rankings: The lists of those that answered.
        failures: Why the others did not.
    """

    rankings: dict[RetrieverName, list[Ranking]] = field(default_factory=dict)
    failures: dict[RetrieverName, Exception] = field(default_factory=dict)

    def stand_ins(self) -> list[RetrieverName]:
        """Return who is to be asked in place of those that failed.

        Nobody, for a retriever one of whose stand-ins has answered already.
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
        """Return those that were not asked as their breaker is open."""
        return [
            name for name, error in self.failures.items() if isinstance(error, DependencyOpenError)
        ]


def _is_lost(error: Exception) -> bool:
    """Whether an error is of the connection: all that was asked through it is to be asked again.

    It is not if the server answered, with whatever it lacked for this one statement: a lock, some
    memory, a file that it can read.
    """
    if not isinstance(error, DatabaseUnavailableError):
        return False
    cause = error.__cause__
    state = cause.sqlstate if isinstance(cause, psycopg.Error) else None
    return state is None or state.startswith(_CONNECTION_CLASSES)
