"""Documents from their source, and their pages. Their sections become `notes`."""

from collections.abc import Sequence

import dagster as dg

from rag_assets.keys import DOCUMENTS, OWNERS
from rag_assets.labels import labelled
from rag_assets.runs.failures import told_as_failure
from rag_assets.runs.months import MonthEvents, MonthOutcome, materialize_months
from rag_assets.runs.partitions import batches, monthly
from rag_assets.runs.pools import DATABASE_WRITES
from rag_resources.application.documents import ArrivalReport, ExtractReport, reader_version
from rag_resources.core.tables import markdown_table
from rag_resources.core.types import RejectedRecord, TimeWindow
from rag_resources.languages.messages import _
from rag_resources.resources import RagResource
from rag_resources.settings import Settings
from rag_resources.store.document_list import MonthDocument, status_word

LISTED = 50


def build_documents_asset(settings: Settings) -> dg.AssetsDefinition:
    """Build the asset `documents`."""

    @dg.asset(
        partitions_def=monthly(settings),
        backfill_policy=batches,
        pool=DATABASE_WRITES,
        group_name="ingestion",
        owners=OWNERS,
        kinds={"python", "postgres"},
        description=_(
            "The files of DOCUMENTS_SOURCE, by month of arrival. A copy of each is kept; what has "
            "not changed is not read again."
        ),
    )
    def documents(context: dg.AssetExecutionContext, rag: RagResource) -> MonthEvents:
        """Register the files of the source, which is read once for all months of the run."""
        if not rag.documents.is_configured:
            context.log.info(_("There are no documents: DOCUMENTS_SOURCE is not set."))
        with told_as_failure():
            report = rag.documents.arrive()
        for rejected in report.rejected:
            context.log.warning("%s: %s", rejected.location, rejected.reason)
        context.add_asset_metadata(
            labelled(_arrival_metadata(report)), partition_key=max(context.partition_keys)
        )

        def month(window: TimeWindow) -> MonthOutcome:
            counted = rag.documents.count(window)
            return MonthOutcome(
                {
                    "documents": counted.documents,
                    **{status_word(status): count for status, count in counted.statuses.items()},
                }
            )

        yield from materialize_months(context, month)

    return documents


def build_document_pages_asset(settings: Settings) -> dg.AssetsDefinition:
    """Build the asset `document_pages`."""

    @dg.asset(
        partitions_def=monthly(settings),
        backfill_policy=batches,
        # Another reader makes the months stale.
        code_version=reader_version(settings.extraction),
        pool=DATABASE_WRITES,
        deps=[DOCUMENTS],
        group_name="ingestion",
        owners=OWNERS,
        kinds={"python", "postgres"},
        description=_(
            "The pages of the documents, read one by one in a process with limits. A new reader "
            "makes the months outdated; what was read waits until “notes” puts it in place of "
            "what was there."
        ),
    )
    def document_pages(context: dg.AssetExecutionContext, rag: RagResource) -> MonthEvents:
        """Read the documents that the present readers have not read."""

        def month(window: TimeWindow) -> MonthOutcome:
            if not rag.documents.any_in(window):
                return MonthOutcome({"documents": 0})
            before = rag.documents.count(window)
            report = rag.documents.extract(window)
            for title, reason in report.failures:
                context.log.warning("%s: %s", title, reason)
            return MonthOutcome(
                {
                    "documents": before.documents,
                    "read": report.documents,
                    "pages": report.pages,
                    "failed_pages": report.failed_pages,
                    "failed_documents": len(report.failures),
                    "held": len(report.held),
                    "problems": dg.MetadataValue.md(_problems(report)),
                    "by_document": dg.MetadataValue.md(
                        _by_document(rag.documents.month(window, limit=LISTED))
                    ),
                },
                {"pages": report.pages},
            )

        yield from materialize_months(context, month)

    return document_pages


def _arrival_metadata(report: ArrivalReport) -> dict[str, dg.MetadataValue | int]:
    return {
        **{arrival.value: count for arrival, count in report.counts.items()},
        "rejected": len(report.rejected),
        "rejected_files": _listed(report.rejected),
        "left_out": len(report.left_out),
        "left_out_files": _listed(report.left_out),
        "missing": len(report.missing),
        "missing_files": dg.MetadataValue.md(
            "\n".join(f"- `{address}`" for address in report.missing[:LISTED])
        ),
    }


def _listed(records: list[RejectedRecord]) -> dg.MetadataValue:
    return dg.MetadataValue.md(
        "\n".join(f"- `{each.location}`: {each.reason}" for each in records[:LISTED])
    )


def _problems(report: ExtractReport) -> str:
    """Return a table of the documents that were not read to their end, or wait for a person."""
    rows = [
        *report.failures,
        *(
            (
                title,
                _(
                    "the new reading loses {words:.1%} of the words and {passages:.1%} of the "
                    "passages"
                ).format(words=diff.lost_words, passages=diff.lost_citations),
            )
            for title, diff in report.held
        ),
    ]
    return markdown_table(_("| Document | Problem |"), rows[:LISTED]) if rows else ""


def _by_document(documents: Sequence[MonthDocument]) -> str:
    """Return a table of the progress of each document."""
    rows = [(each.address, status_word(each.status), each.pages, each.reason) for each in documents]
    return markdown_table(_("| Document | Status | Pages | Reason |"), rows)
