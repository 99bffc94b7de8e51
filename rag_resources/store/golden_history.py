"""Rows of `golden_history`, which the triggers of `golden_dataset` write."""

from rag_resources.core.golden_changes import (
    GoldenChange,
    GoldenVersion,
    RecordedChange,
    replay,
)
from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries
from rag_resources.store.golden import entry_of_row


def golden_versions(connection: Connection) -> list[GoldenVersion]:
    """Return every version of the golden dataset, oldest first."""
    return list(
        replay(
            RecordedChange(
                version=row.version,
                change=GoldenChange(
                    row.old_entry and entry_of_row(row.old_entry),
                    row.new_entry and entry_of_row(row.new_entry),
                ),
                changed_at=row.changed_at,
                changed_by=row.changed_by,
                origin=row.origin,
            )
            for row in queries().golden_history(connection)
        )
    )
