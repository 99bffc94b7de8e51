"""Checks of the notes."""

from datetime import UTC

import dagster as dg

from rag_assets.keys import NOTES
from rag_assets.runs.partitions import full_window
from rag_resources.core.messages import Message
from rag_resources.resources import RagResource

EXAMPLES = 10


@dg.asset_check(asset=NOTES, description=Message.CHECK_OUTSIDE)
def notes_inside_partitions(rag: RagResource) -> dg.AssetCheckResult:
    """Name the notes outside all partitions, and the setting that would include them."""
    inside = full_window(rag.settings)
    outside = rag.notes.outside(inside, limit=EXAMPLES)
    if outside is None:
        return dg.AssetCheckResult(passed=True, metadata={"outside": 0})
    description = Message.OUTSIDE_NOTES.format(
        count=outside.count,
        first=f"{outside.earliest:%Y-%m-%d}",
        last=f"{outside.latest:%Y-%m-%d}",
        examples=", ".join(outside.examples),
    )
    if outside.earliest < inside.start:
        month = f"{outside.earliest.astimezone(UTC):%Y-%m}"
        description += Message.OUTSIDE_EARLY.format(month=month)
    if outside.latest >= inside.end:
        description += Message.OUTSIDE_FUTURE
    return dg.AssetCheckResult(
        passed=False,
        severity=dg.AssetCheckSeverity.WARN,
        metadata={"outside": outside.count},
        description=description,
    )
