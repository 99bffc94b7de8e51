"""Lists documents for people: the stored facts and the progress of each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, computed_field
from pydantic.alias_generators import to_camel

from rag_resources.core.document_stages import StageState, stages_of
from rag_resources.core.documents import Page
from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.page_numbers import numbers_in_words
from rag_resources.core.quoting import shown
from rag_resources.core.sections import MIN_QUALITY
from rag_resources.core.types import TimeWindow
from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries
from rag_resources.languages.messages import _, restored
from rag_resources.store.documents import StoredPage, list_pages
from rag_resources.store.extractions import Extraction, list_extractions
from rag_resources.store.notes import uuid_or_none

ALWAYS = TimeWindow(
    datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC, microsecond=0)
)


@dataclass(frozen=True, slots=True)
class DocumentFailure:
    """A page that could not be read, and why in Spanish; `page` None is the whole document."""

    page: int | None
    stage: str
    reason: str


class DocumentSummary(BaseModel):
    """A document: the row, and the JSON of it.

    Attributes:
        addresses: Each with `source`, `address` and `missingSince`; those of its source first.
        page_count: Pages of the file; None before it was read.
        pages: Pages that were read.
        needs_ocr: Pages without text that nobody has reviewed.
        low_quality: Pages below the quality required for search that nobody has reviewed.
        quality: Average of its pages; None if it was not assessed.
        failed_stages: The stages in which the document, or a page, failed.
        failed_page: Of the first failure; None if that is of the whole document.
        reason: Why, as it is stored; None if there was no failure.
        held: Whether a new reading waits for a person.
    """

    model_config = ConfigDict(
        alias_generator=to_camel, validate_by_name=True, from_attributes=True, frozen=True
    )

    document_id: UUID = Field(validation_alias="id", serialization_alias="id")
    source: str
    title: str
    media_type: str
    metadata: Mapping[str, Any]
    status: str
    arrived_at: datetime
    updated_at: datetime
    file_sha256: bytes | None = Field(exclude=True)
    file_bytes: int | None
    addresses: Annotated[
        Sequence[Mapping[str, Any]], BeforeValidator(lambda given: given or ())
    ] = Field(exclude=True)
    page_count: int | None
    pages: int
    words: int = Field(exclude=True)
    needs_ocr: int
    low_quality: int
    quality: float | None
    failures: int = Field(exclude=True)
    failed_stages: frozenset[str] = Field(exclude=True)
    failed_page: int | None = Field(exclude=True)
    stage: str | None = Field(exclude=True)
    reason: Mapping[str, Any] | None = Field(exclude=True)
    notes: int
    chunks: int
    held: bool

    @property
    def is_missing(self) -> bool:
        """Whether its file is at none of its addresses any more."""
        return bool(self.addresses) and all(own["missingSince"] for own in self.addresses)

    @property
    def first_failure(self) -> DocumentFailure | None:
        """That of the whole document or of the first page; None if there was none."""
        if not self.reason:
            return None
        return DocumentFailure(self.failed_page, self.stage or "", restored(self.reason))

    @computed_field  # type: ignore[prop-decorator]
    @property
    def address(self) -> str:
        """Its address in its own source, which stays when the same file comes from elsewhere."""
        return str(self.addresses[0]["address"]) if self.addresses else str(self.document_id)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def stages(self) -> Mapping[str, StageState]:
        """How far it is in each stage."""
        has_file = self.file_sha256 is not None
        return stages_of(self.status, self.failed_stages, has_file=has_file)


@dataclass(frozen=True, slots=True)
class UnreadDocument:
    """A document that could not be read: its address, and why in Spanish."""

    location: str
    reason: str


@dataclass(frozen=True, slots=True)
class DocumentDetails:
    """The parts of a document."""

    pages: Sequence[StoredPage]
    failures: Sequence[DocumentFailure]
    extractions: Sequence[Extraction]


@dataclass(frozen=True, slots=True)
class MonthCount:
    """The counts of the documents that arrived in a window.

    Attributes:
        statuses: Number of documents by status.
        pages: Pages of all files.
        failed_pages: Pages that could not be read.
        failures: Documents and pages that failed, by stage.
    """

    statuses: Mapping[str, int]
    pages: int
    failed_pages: int
    failures: Mapping[str, tuple[int, int]]

    @property
    def documents(self) -> int:
        """Number of documents."""
        return sum(self.statuses.values())

    def stages_over(self, most: float) -> list[str]:
        """Return the stages in which a larger share of the documents, or of the pages, failed."""
        return [
            stage
            for stage, (documents, pages) in self.failures.items()
            if documents > most * self.documents or pages > most * self.pages
        ]


@dataclass(frozen=True, slots=True)
class MonthDocument:
    """The progress of a document of a month, in words for people.

    Attributes:
        pages: How many of its pages were read; see `pages_read`.
        reason: One reason why something could not be read; empty if everything was read.
    """

    address: str
    status: str
    pages: str
    reason: str


@dataclass(frozen=True, slots=True)
class PageQuality:
    """The distribution of the quality of pages, each value in [0, 1].

    Attributes:
        quantiles: The tenth, fiftieth and ninetieth percentile.
        low: Number of pages below the quality required for search.
    """

    mean: float
    quantiles: tuple[float, float, float]
    low: int


def refresh_statuses(connection: Connection, window: TimeWindow = ALWAYS) -> None:
    """Bring the statuses of the documents of a window up to date with their notes."""
    queries().refresh_document_statuses(
        connection, first=window.start, after_last=window.end, min_quality=MIN_QUALITY
    )


def list_documents(
    connection: Connection,
    *,
    tenant: str | None,
    name: str | None = None,
    status: str | None = None,
    limit: int | None = None,
) -> tuple[list[DocumentSummary], int]:
    """Return the documents of a tenant, latest arrival first, and their number without the limit.

    Args:
        connection: In a transaction.
        tenant: The owner; None: the tenant of the connection.
        name: Only those with this id, address or title.
        status: Only those with this status.
        limit: The most to return; None returns all.
    """
    rows = list(
        queries().list_documents(
            connection,
            tenant=tenant,
            name=name,
            id=uuid_or_none(name),
            status=status,
            row_limit=limit,
            min_quality=MIN_QUALITY,
        )
    )
    return [DocumentSummary.model_validate(row) for row in rows], rows[0].total if rows else 0


def fetch_summary(
    connection: Connection, document_id: UUID, *, tenant: str
) -> DocumentSummary | None:
    """Return the document with an id; None if the tenant has none."""
    found, _ = list_documents(connection, tenant=tenant, name=str(document_id))
    return next((each for each in found if each.document_id == document_id), None)


def find_document(connection: Connection, name: str, *, tenant: str) -> DocumentSummary:
    """Return the document with an id, an address or a title.

    Raises:
        InvalidParameterError: There is none, or several have this name.
    """
    found = [] if "\0" in name else list_documents(connection, tenant=tenant, name=name)[0]
    if not found:
        raise InvalidParameterError(
            _(
                "There is no document “{name}”: give its id, its address or its title. “rag "
                "document list” lists them."
            ).format(name=shown(name)),
            name=name,
        )
    if len(found) > 1:
        known = ", ".join(f"{each.address} ({each.document_id})" for each in found)
        raise InvalidParameterError(
            _(
                "There are several documents “{name}”: give the address or the id of one: "
                "{documents}."
            ).format(name=shown(name), documents=known),
            name=name,
        )
    return found[0]


def page_of(pages: Sequence[StoredPage], number: int) -> Page:
    """Return the page with a number.

    Raises:
        InvalidParameterError: It was not read.
    """
    read = {stored.page.number: stored.page for stored in pages}
    if number not in read:
        message = _(
            "No page {page} of this document was read. Its pages that were: {pages}."
        ).format(page=number, pages=numbers_in_words(read))
        raise InvalidParameterError(message, page=number)
    return read[number]


def read_details(connection: Connection, document_id: UUID) -> DocumentDetails:
    """Return the pages, failures and readings of a document."""
    rows = queries().list_document_failures(connection, document_id=document_id)
    failures = [DocumentFailure(row.page_number, row.stage, restored(row.reason)) for row in rows]
    return DocumentDetails(
        list_pages(connection, document_id), failures, list_extractions(connection, document_id)
    )


def count_missing(connection: Connection) -> int:
    """Count the tenant's documents whose file is at none of their addresses any more."""
    return int(queries().count_missing_documents(connection))


def list_unread(connection: Connection, *, limit: int) -> list[UnreadDocument]:
    """Return the latest documents of the connection's tenant that could not be read."""
    unread, _ = list_documents(connection, tenant=None, status="failed", limit=limit)
    return [
        UnreadDocument(each.address, each.first_failure.reason if each.first_failure else "")
        for each in unread
    ]


def list_document_ids(connection: Connection, window: TimeWindow, *, tenant: str) -> list[UUID]:
    """Return the documents of a window that have pages, latest arrival first."""
    rows = queries().list_document_ids(
        connection, tenant=tenant, first=window.start, after_last=window.end
    )
    return [row.id for row in rows]


def count_documents(connection: Connection, window: TimeWindow, *, tenant: str) -> MonthCount:
    """Count the documents that arrived in a window."""
    rows = list(
        queries().count_documents(
            connection, tenant=tenant, first=window.start, after_last=window.end
        )
    )
    failures = queries().count_document_failures(
        connection, tenant=tenant, first=window.start, after_last=window.end
    )
    return MonthCount(
        {row.status: row.documents for row in rows},
        int(sum(row.pages for row in rows)),
        int(sum(row.failed_pages for row in rows)),
        {row.stage: (row.documents, row.pages) for row in failures},
    )


def list_month_documents(
    connection: Connection, window: TimeWindow, *, tenant: str, limit: int
) -> list[MonthDocument]:
    """Return the documents of a window; those not read, or only in part, come first."""
    rows = queries().list_month_documents(
        connection, tenant=tenant, first=window.start, after_last=window.end, row_limit=limit
    )
    return [
        MonthDocument(
            row.address or "",
            status_word(row.status),
            pages_read(row.pages, row.page_count),
            _reason(row),
        )
        for row in rows
    ]


def status_word(status: str) -> str:
    """Return the word for a status, or for the stage that it names."""
    words = {
        "pending": _("pending"),
        "downloading": _("downloading"),
        "extracting": _("reading"),
        "chunking": _("being chunked"),
        "embedding": _("embedding"),
        "completed": _("complete"),
        "partial": _("partial"),
        "failed": _("failed"),
    }
    return words.get(status, status)


def pages_read(pages: int, whole: int | None) -> str:
    """Return how many pages were read, such as `3`, or `3/5` of a file with more."""
    return str(pages) if whole in (None, pages) else f"{pages}/{whole}"


def page_quality(connection: Connection, window: TimeWindow, *, tenant: str) -> PageQuality | None:
    """Return the quality of the stored pages of a window; None if none was assessed."""
    for row in queries().page_quality(
        connection,
        tenant=tenant,
        first=window.start,
        after_last=window.end,
        min_quality=MIN_QUALITY,
    ):
        return PageQuality(row.mean, tuple(row.quantiles), row.low)
    return None


def _reason(row: Any) -> str:
    """Return the reason of a failure; empty if there is no failure."""
    return restored(row.reason) if row.reason else ""
