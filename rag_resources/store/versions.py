"""Reads the current versions, for evaluations, promotion, migration, report and status."""

from collections.abc import Sequence

from rag_resources.core.golden import GoldenEntry, golden_hash
from rag_resources.core.measurement import Present
from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries
from rag_resources.store.golden import list_golden


def read_present(connection: Connection, entries: Sequence[GoldenEntry] | None = None) -> Present:
    """Return the versions of everything except configurations.

    Args:
        connection: Any.
        entries: The golden dataset, if the caller has already read it.
    """
    row = queries().read_versions(connection)
    return Present(
        golden_hash=golden_hash(list_golden(connection) if entries is None else entries),
        model_digests=row.model_digests,
        chunking_hashes=tuple(row.chunking_hashes),
        index_version=row.index_version,
    )
