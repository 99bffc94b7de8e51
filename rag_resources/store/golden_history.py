"""Rows of `golden_history`, which the triggers of `golden_dataset` write."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from rag_resources.core.golden import GoldenEntry
from rag_resources.core.golden_changes import (
    GoldenChange,
    GoldenVersion,
    RecordedChange,
    replay,
)
from rag_resources.core.golden_places import place_from_json
from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries


def golden_versions(connection: Connection) -> list[GoldenVersion]:
    """Return every version of the golden dataset, oldest first."""
    return list(
        replay(
            RecordedChange(
                version=row.version,
                change=GoldenChange(_entry(row.old_entry), _entry(row.new_entry)),
                changed_at=row.changed_at,
                changed_by=row.changed_by,
                origin=row.origin,
            )
            for row in queries().golden_history(connection)
        )
    )


def _entry(row: Mapping[str, Any] | None) -> GoldenEntry | None:
    """Read a row of `golden_dataset` as `to_jsonb` wrote it."""
    if row is None:
        return None
    return GoldenEntry(
        query=row["query"],
        relevant_note_ids=tuple(UUID(note_id) for note_id in row["relevant_note_ids"]),
        expected_answer=row["expected_answer"],
        category=row["category"],
        difficulty=row["difficulty"],
        tags=tuple(row["tags"]),
        golden_id=UUID(row["id"]),
        created_at=datetime.fromisoformat(row["created_at"]),
        updated_at=datetime.fromisoformat(row["updated_at"]),
        # Rows written before places existed have none.
        places=tuple(place_from_json(place) for place in row.get("places", ())),
    )
