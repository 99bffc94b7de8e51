"""Lists what a person should review in documents, and carries out the person's decisions."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from rag_resources.core.documents import Route
from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.extraction_diff import ExtractionDiff
from rag_resources.core.sections import is_searchable
from rag_resources.database.pool import Connection, Database
from rag_resources.database.queries import queries
from rag_resources.documents.applying import (
    ACCEPTED,
    DROPPED,
    ApplyReport,
    apply_reading,
    write_notes,
)
from rag_resources.languages.messages import _
from rag_resources.store.document_list import DocumentSummary, list_documents, page_of
from rag_resources.store.documents import (
    StoredPage,
    list_pages,
    lock_document,
)
from rag_resources.store.extractions import (
    Extraction,
    close_extraction,
    latest_extraction,
    list_extractions,
)


class Decision(StrEnum):
    """A person's decision."""

    ACCEPT = "accept"
    """Make the page searchable, or let the new reading replace the pages."""

    DROP = "drop"
    """Leave the page out for good, or keep the earlier pages."""


class Concern(StrEnum):
    """Why a person should review it."""

    LOW_QUALITY = "low_quality"
    NEEDS_OCR = "needs_ocr"
    HELD = "held"


@dataclass(frozen=True, slots=True)
class ToReview:
    """A page, or a new reading of a whole document, that waits for a decision.

    Attributes:
        page: Its number; None for a reading.
        diff: What the reading would change.
    """

    document: DocumentSummary
    concern: Concern
    page: int | None = None
    quality: float | None = None
    diff: ExtractionDiff | None = None


def list_reviews(database: Database, *, tenant: str) -> list[ToReview]:
    """Return what waits for a decision, by document."""
    with database.transaction() as connection:
        documents, _ = list_documents(connection, tenant=tenant)
        return [
            each
            for document in documents
            if document.held or document.low_quality or document.needs_ocr
            for each in concerns_of(
                document,
                list_pages(connection, document.document_id),
                list_extractions(connection, document.document_id),
            )
        ]


def review_document(
    database: Database,
    document_id: UUID,
    decision: Decision,
    *,
    tenant: str,
    page: int | None = None,
) -> ApplyReport:
    """Store a decision and carry it out, in one transaction.

    Args:
        database: Open.
        document_id: The document.
        decision: What the person decided.
        tenant: The owner.
        page: The page; None decides about the held reading.

    Raises:
        InvalidParameterError: There is nothing to decide, or another run works on the document.
    """
    report = ApplyReport()
    with database.transaction() as connection:
        document = lock_document(connection, document_id, tenant=tenant)
        if document is None:
            raise InvalidParameterError(
                _("Another process is working on this document. Try again in a moment.")
            )
        if page is None:
            _decide_reading(connection, document_id, decision, tenant, report)
        else:
            page_of(list_pages(connection, document_id), page)
            chosen = ACCEPTED if decision is Decision.ACCEPT else DROPPED
            queries().review_page(
                connection, document_id=document_id, page_number=page, review=chosen
            )
            write_notes(connection, document, report)
    return report


def _decide_reading(
    connection: Connection,
    document_id: UUID,
    decision: Decision,
    tenant: str,
    report: ApplyReport,
) -> None:
    held = latest_extraction(connection, document_id, "held")
    if held is None:
        raise InvalidParameterError(
            _(
                "No new reading of this document waits for a decision. To decide on a page, give "
                "--page."
            )
        )
    if decision is Decision.DROP:
        close_extraction(connection, held.extraction_id, "dropped")
        return
    queries().set_extraction_state(connection, extraction_id=held.extraction_id, state="read")
    apply_reading(connection, document_id, tenant, report)


def concerns_of(
    document: DocumentSummary, pages: Sequence[StoredPage], readings: Sequence[Extraction]
) -> list[ToReview]:
    """Return the parts of a document that wait for a decision: a new reading first, then pages."""
    held = [reading for reading in readings if document.held and reading.state == "held"]
    found = [ToReview(document, Concern.HELD, diff=reading.diff) for reading in held[:1]]
    for stored in pages:
        page = stored.page
        if stored.review:
            continue
        if page.route is Route.NONE:
            if page.notices:  # Without one it is blank.
                found.append(ToReview(document, Concern.NEEDS_OCR, page.number))
        elif not is_searchable(page):
            found.append(ToReview(document, Concern.LOW_QUALITY, page.number, page.quality))
    return found
