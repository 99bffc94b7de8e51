"""The version of the index, used as a cache key and stored with every evaluation.

Triggers raise its number whenever a tenant's searched data change, whoever changes them.
`sql/schema.sql` explains how, and why that is exact.
"""

from dataclasses import dataclass
from datetime import datetime

from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries


@dataclass(frozen=True, slots=True)
class IndexVersion:
    """One state of what a tenant can find.

    Attributes:
        number: Grows with every committed change of what the tenant can find.
        lineage: Identifies the database and the last start of its server. Numbers of different
            lineages cannot be compared.
        next_expiry: When the tenant's next note expires; timezone-aware; None if none will.
    """

    number: int
    lineage: str
    next_expiry: datetime | None


def read_index_version(connection: Connection, tenant: str) -> IndexVersion:
    """Read the version.

    Args:
        connection: In the transaction that searches, in one snapshot.
        tenant: The tenant whose notes are searched.
    """
    return IndexVersion(*queries().read_index_version(connection, tenant=tenant))


def bump_index_version(connection: Connection) -> None:
    """Raise the version after a change that no trigger sees, such as building an index."""
    queries().bump_index_version(connection)
