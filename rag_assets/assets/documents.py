"""Documents from their source, and their pages. Their sections become `notes`."""

import dagster as dg

from rag_assets.keys import DATABASE_WRITES, DOCUMENTS, OWNERS
from rag_assets.metadata import LISTED, arrival_metadata, documents_table, labelled, problems_table
from rag_assets.partitions import batches, monthly
from rag_assets.runs.failures import told_as_failure
from rag_assets.runs.months import MonthEvents, MonthOutcome, materialize_months
from rag_resources.application.documents import reader_version
from rag_resources.core.types import TimeWindow
from rag_resources.languages.messages import _
from rag_resources.resources import RagResource
from rag_resources.settings import Settings
from rag_resources.store.document_list import status_word


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
            labelled(arrival_metadata(report)), partition_key=max(context.partition_keys)
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
                    "problems": dg.MetadataValue.md(problems_table(report)),
                    "by_document": dg.MetadataValue.md(
                        documents_table(rag.documents.month(window, limit=LISTED))
                    ),
                },
                {"pages": report.pages},
            )

        yield from materialize_months(context, month)

    return document_pages
