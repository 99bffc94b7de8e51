"""Fingerprints of a database's contents by month and part; see `sql/schema.sql`.

Whether an evaluation is still current is decided in `core.evidence`.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from uuid import UUID

from psycopg.types.json import Jsonb

from rag_resources.core.configuration import RetrievalConfig
from rag_resources.core.evidence import (
    NO_MONTH,
    ChangedNotes,
    Contents,
    Moved,
    SearchSettings,
    searched_parts,
)
from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries


@dataclass(frozen=True, slots=True)
class Reading:
    """What a configuration searches at one moment.

    Attributes:
        fingerprints: By month and part.
        revisions: How often each month and part was written to.
        read_at: By the database's clock.
    """

    fingerprints: Mapping[tuple[str, str], str]
    revisions: Mapping[tuple[str, str], int]
    read_at: datetime

    @property
    def contents(self) -> Contents:
        """The fingerprints, as an evaluation records them."""
        found: dict[str, dict[str, str]] = {}
        for (month, part), fingerprint in self.fingerprints.items():
            found.setdefault(month, {})[part] = fingerprint
        return found

    def rewritten(self, later: "Reading") -> set[tuple[str, str]]:
        """Return the months and parts that were written to between this and a later reading."""
        return {
            key for key, revision in later.revisions.items() if self.revisions.get(key) != revision
        }


def count_contents(connection: Connection) -> None:
    """Recompute, in the caller's transaction, the fingerprints of months written to since the last.

    Not in a snapshot, because two at a time must not see the same marks. On a standby nothing is
    counted, and those months then look as if they were being written to.
    """
    if not queries().is_read_only(connection):
        queries().lock_contents(connection)
        queries().count_changed_months(connection)


def forget_contents(connection: Connection) -> None:
    """Delete past contents that no latest evaluation names."""
    queries().lock_contents(connection)
    queries().forget_contents(connection)


def read_contents(
    connection: Connection, config: RetrievalConfig, settings: SearchSettings
) -> Reading:
    """Return what a configuration searches, as of the last count."""
    read_at: datetime = queries().read_clock(connection)
    parts = list(searched_parts(config))
    rows = list(queries().read_contents(connection, tenant=settings.tenant, parts=parts))
    own = {(NO_MONTH, "settings"): settings.fingerprint}
    return Reading(
        {**{(row.month, row.part): row.fingerprint for row in rows}, **own},
        {**{(row.month, row.part): row.revision for row in rows}, **dict.fromkeys(own, 0)},
        read_at,
    )


def read_changes(
    connection: Connection,
    moved: Sequence[Moved],
    *,
    tenant: str,
    measured_at: datetime,
    relevant: Collection[UUID],
) -> ChangedNotes:
    """Count a tenant's changed notes in the moved parts, and those that have expired since.

    Args:
        connection: Any, after `count_contents`.
        moved: The months and parts that differ.
        tenant: The tenant whose notes count.
        measured_at: When the evaluation began, by the database's clock.
        relevant: The notes that golden questions name.
    """
    row = queries().read_changes(
        connection,
        tenant=tenant,
        moved=Jsonb([asdict(item) for item in moved]),
        measured_at=measured_at,
        relevant=list(relevant),
    )
    return ChangedNotes(*row)
