"""Checks of the notes."""

from datetime import UTC

import dagster as dg

from rag_assets.keys import NOTES
from rag_assets.labels import labelled
from rag_assets.runs.partitions import full_window
from rag_resources.core.messages import Message
from rag_resources.core.tables import markdown_table
from rag_resources.resources import RagResource
from rag_resources.settings import EARLIEST_MONTH

EXAMPLES = 10


@dg.asset_check(asset=NOTES, description=Message.CHECK_REJECTED)
def rejected_records(rag: RagResource) -> dg.AssetCheckResult:
    """Name the records that the last reading of each source could not read."""
    found, count = rag.notes.rejections(limit=EXAMPLES)
    if not count:
        return dg.AssetCheckResult(passed=True, metadata=labelled({"rejected": 0}))
    rows = ((item.location, item.reason) for item in found)
    return dg.AssetCheckResult(
        passed=False,
        severity=dg.AssetCheckSeverity.WARN,
        metadata=labelled(
            {
                "rejected": count,
                "rejected_records": dg.MetadataValue.md(
                    markdown_table((Message.COLUMN_WHERE, Message.COLUMN_REASON), rows)
                ),
            }
        ),
        description=Message.REJECTED_RECORDS.format(count=count),
    )


@dg.asset_check(asset=NOTES, description=Message.CHECK_OUTSIDE)
def notes_inside_partitions(rag: RagResource) -> dg.AssetCheckResult:
    """Name the notes outside all partitions, and the setting that would include them."""
    inside = full_window(rag.settings)
    outside = rag.notes.outside(inside, limit=EXAMPLES)
    if outside is None:
        return dg.AssetCheckResult(passed=True, metadata=labelled({"outside": 0}))
    description = Message.OUTSIDE_NOTES.format(
        count=outside.count,
        first=f"{outside.earliest:%Y-%m-%d}",
        last=f"{outside.latest:%Y-%m-%d}",
        examples=", ".join(outside.examples),
    )
    if outside.earliest < inside.start:
        month = f"{outside.earliest.astimezone(UTC):%Y-%m}"
        ancient = month < EARLIEST_MONTH
        description += (
            Message.OUTSIDE_ANCIENT if ancient else Message.OUTSIDE_EARLY.format(month=month)
        )
    if outside.latest >= inside.end:
        description += Message.OUTSIDE_FUTURE
    return dg.AssetCheckResult(
        passed=False,
        severity=dg.AssetCheckSeverity.WARN,
        metadata=labelled({"outside": outside.count}),
        description=description,
    )
