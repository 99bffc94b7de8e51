"""Finding candidates whatever fails: both searches in one statement while all is well, else apart.

What is searched is `retrieval.searching`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import psycopg

from rag_resources.core.errors import DatabaseUnavailableError, DependencyOpenError
from rag_resources.core.types import Ranking
from rag_resources.database.pool import Database
from rag_resources.resilience.breakers import Breakers
from rag_resources.resilience.retry import retried
from rag_resources.retrieval.limits import FAIR_MS, blames, share
from rag_resources.retrieval.searching import Found, Half, Search

# Of the time that is left: what both searches together may take before each is tried alone, and
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

    def find(self, search: Search, halves: Sequence[Half]) -> Found:
        """Search by the halves given; by the other one if none of them answers.

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
            return retried(lambda: self._find(search, halves), deadline=deadline)

    def _find(self, search: Search, halves: Sequence[Half]) -> Found:
        found = self._together(search, halves) or self._apart(search, halves, {})
        if not found.worked:
            others = [half for half in Half if half not in halves]
            found = self._apart(search, others, found.failures)
        if not found.worked:
            # A breaker spares a failing dependency while there is another: now there is none.
            refused = [
                half
                for half, error in found.failures.items()
                if isinstance(error, DependencyOpenError)
            ]
            found = self._apart(search, refused, found.failures, insist=True)
        return found

    def _together(self, search: Search, halves: Sequence[Half]) -> Found | None:
        """Search in one statement; None if that cannot be done."""
        breakers = [self._breakers[search.dependency(half)] for half in halves]
        if not all(breaker.is_closed for breaker in breakers):
            return None
        until = share(search.request.deadline, _SHARE_TOGETHER)
        try:
            # One snapshot: what is found, what it is cut from and what is searched whole agree.
            with self._database.snapshot(until) as connection:
                found = search.fetch(connection, search.rankings(connection, halves), halves)
        except Exception as error:
            if _is_lost(error):
                raise
            return None  # Which half it was, and why, is seen when each runs alone.
        for breaker in breakers:
            breaker.succeeded()
        return found

    def _apart(
        self,
        search: Search,
        halves: Sequence[Half],
        failures: Mapping[Half, Exception],
        *,
        insist: bool = False,
    ) -> Found:
        """Search by each half on its own.

        Args:
            search: What is searched.
            halves: In this order.
            failures: Of halves tried before.
            insist: Whether to try what its breaker keeps out.
        """
        failed = dict(failures)
        rankings: list[Ranking] = []
        worked: list[Half] = []
        for half in halves:
            try:
                rankings += self._alone(search, half, worked, insist=insist)
            except Exception as error:
                if _is_lost(error):
                    raise
                failed[half] = error
            else:
                worked.append(half)
                failed.pop(half, None)
        if not worked:
            return Found(failures=failed)
        with self._database.snapshot(search.request.deadline) as connection:
            return replace(search.fetch(connection, rankings, worked), failures=failed)

    def _alone(
        self, search: Search, half: Half, beside: Sequence[Half], *, insist: bool
    ) -> list[Ranking]:
        if half is Half.SEMANTIC:
            # First, as a model's failure is not the search's, nor worth a connection.
            search.vectors.of(search.request.config.model, insist=insist)
        until = share(search.request.deadline, _SHARE_ALONE)
        with (
            self._breakers[search.dependency(half)].guard(blames(until), insist=insist),
            self._database.snapshot(until) as connection,
        ):
            return search.rankings(connection, [half], beside=beside)


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
