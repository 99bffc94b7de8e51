"""Checks of the notes."""

import dagster as dg

from rag_assets.keys import NOTES
from rag_assets.labels import labelled
from rag_assets.runs.partitions import full_window
from rag_resources.core.tables import markdown_table
from rag_resources.ingestion.ingest import outside_in_words
from rag_resources.languages.messages import _
from rag_resources.resources import RagResource

EXAMPLES = 10


@dg.asset_check(asset=NOTES, description=_("All records of the source could be read."))
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
                    markdown_table((_("Where"), _("Reason")), rows)
                ),
            }
        ),
        description=_(
            "Records that the last reading could not read: {count}. Correct each in its file; the "
            "next run picks it up."
        ).format(count=count),
    )


@dg.asset_check(asset=NOTES, description=_("No note is outside the monthly partitions."))
def notes_inside_partitions(rag: RagResource) -> dg.AssetCheckResult:
    """Name the notes outside all partitions, and the setting that would include them."""
    inside = full_window(rag.settings)
    outside = rag.notes.outside(inside, limit=EXAMPLES)
    if outside is None:
        return dg.AssetCheckResult(passed=True, metadata=labelled({"outside": 0}))
    return dg.AssetCheckResult(
        passed=False,
        severity=dg.AssetCheckSeverity.WARN,
        metadata=labelled({"outside": outside.count}),
        description=outside_in_words(outside),
    )
