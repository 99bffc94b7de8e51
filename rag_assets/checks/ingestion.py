"""Checks of the notes."""

import dagster as dg

from rag_assets.assets.ingestion import notes
from rag_assets.partitions import full_window
from rag_resources.core.messages import Message
from rag_resources.resources import RagResource
from rag_resources.store.notes import list_outside

EXAMPLES = 10


@dg.asset_check(asset=notes, description=Message.CHECK_OUTSIDE)
def notes_inside_partitions(rag: RagResource) -> dg.AssetCheckResult:
    """Name the notes that no month's run processes, and the setting that brings them in."""
    with rag.application.database.transaction() as connection:
        count, examples = list_outside(connection, full_window(), limit=EXAMPLES)
    if not count:
        return dg.AssetCheckResult(passed=True, metadata={"outside": 0})
    dates = [note.created_at for note in examples]
    return dg.AssetCheckResult(
        passed=False,
        severity=dg.AssetCheckSeverity.WARN,
        metadata={"outside": count},
        description=Message.OUTSIDE_NOTES.format(
            count=count,
            first=f"{min(dates):%Y-%m-%d}",
            last=f"{max(dates):%Y-%m-%d}",
            month=f"{min(dates):%Y-%m}",
            examples=", ".join(note.external_id for note in examples),
        ),
    )
