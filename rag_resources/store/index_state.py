"""The version of the index: what cached answers are kept under, and what an evaluation is of.

Triggers give it a new number whenever what is searched changes, whoever changes it; how, and why
that is exact, stands in `sql/migrations/0002_index_version.sql`.
"""

from dataclasses import dataclass
from datetime import datetime

from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries


@dataclass(frozen=True, slots=True)
class IndexVersion:
    """One state of what a tenant can find.

    Attributes:
        number: Grows with every change, also with those that are rolled back.
        lineage: Which database, and since which start of its server: numbers of another lineage
            mean other states.
        next_expiry: When the tenant's next note expires; aware, None if none will.
        settled: Whether an answer found from now on may be kept under this version. Otherwise a
            change is under way whose number is taken, and the answer may lack it.
    """

    number: int
    lineage: str
    next_expiry: datetime | None
    settled: bool


def read_index_version(connection: Connection, tenant: str) -> IndexVersion:
    """Read the version before searching.

    Args:
        connection: Not in the transaction that searches: its snapshot could be older.
        tenant: Whose notes are searched.
    """
    return IndexVersion(*queries().read_index_version(connection, tenant=tenant))


def index_version(connection: Connection) -> int:
    """Return the number alone, to compare with that of an earlier moment."""
    number: int = queries().index_version(connection)
    return number


def bump_index_version(connection: Connection) -> None:
    """Give the index a new version for a change that no trigger sees: an index was built."""
    queries().bump_index_version(connection)
