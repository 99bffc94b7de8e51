"""Use cases of the documents: registering, reading, storing, reviewing and deleting them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from rag_resources.core.configuration import canonical_hash
from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.extraction_config import ExtractionConfig
from rag_resources.core.path_pattern import PathPattern
from rag_resources.core.places import Box
from rag_resources.core.types import RejectedRecord, TimeWindow
from rag_resources.database.pool import Database
from rag_resources.database.queries import queries
from rag_resources.documents.applying import ApplyReport, apply_window
from rag_resources.documents.arrival import ArrivalReport, arrive
from rag_resources.documents.deletion import delete_document, purge_documents, restore_document
from rag_resources.documents.extracting import (
    ExtractReport,
    extract_window,
    readers,
)
from rag_resources.documents.folder import FoundFile, folder_files
from rag_resources.documents.review import Decision, ToReview, list_reviews, review_document
from rag_resources.documents.uploads import SOURCE as UPLOADS
from rag_resources.documents.uploads import Upload, describe, register
from rag_resources.documents.verification import (
    Verified,
    picture_of_page,
    verify_document,
    verify_window,
)
from rag_resources.documents.web import WebAddress, is_web, web_addresses, web_files
from rag_resources.files import Files, open_files
from rag_resources.languages.messages import _
from rag_resources.settings import Settings
from rag_resources.store.document_files import announce, list_addresses
from rag_resources.store.document_list import (
    DocumentDetails,
    DocumentSummary,
    MonthCount,
    MonthDocument,
    PageQuality,
    UnreadDocument,
    count_documents,
    count_missing,
    fetch_summary,
    find_document,
    list_documents,
    list_month_documents,
    list_unread,
    page_quality,
    read_details,
    refresh_statuses,
)
from rag_resources.store.extractions import HeldReading, held_extractions

__all__ = ["ArrivalReport", "Documents", "ExtractReport", "MonthCount", "reader_version"]


def reader_version(config: ExtractionConfig) -> str:
    """Return the version of all readers together."""
    return canonical_hash(readers(config))


SOURCE = "documents"
"""The source of the documents that `DOCUMENTS_SOURCE` names."""


@dataclass(frozen=True, slots=True)
class Documents:
    """The documents of a database."""

    database: Database
    settings: Settings

    @property
    def is_configured(self) -> bool:
        """Whether there is a source of documents."""
        return self.settings.documents_source is not None

    @property
    def config(self) -> ExtractionConfig:
        """The limits of reading."""
        return self.settings.extraction

    @property
    def files(self) -> Files:
        """Where copies of the files are kept.

        Raises:
            InvalidParameterError: The settings name no place that is as durable as the database.
        """
        if not self.settings.keeps_files:
            raise InvalidParameterError(
                _(
                    "With DATABASE_URL it must also be said where the copies of the documents are "
                    "kept: set FILES_URL."
                )
            )
        return open_files(self.settings.files_address)

    def arrive(self) -> ArrivalReport:
        """Register the files of the source; without a source there are none.

        Raises:
            InvalidSourceError: The folder or list cannot be read.
            InvalidParameterError: The pattern is wrong, or copies cannot be kept.
            SettingsChangedError: The source is another one than before.
        """
        source = self.settings.documents_source
        if source is None:
            return ArrivalReport()
        files = self.files
        pattern = self.settings.documents_pattern
        found = self._found(source, PathPattern(pattern) if pattern else None)
        return arrive(
            self.database,
            files,
            found,
            tenant=self.settings.tenant,
            source=SOURCE,
            config=self.config,
        )

    def _found(
        self, source: str, pattern: PathPattern | None
    ) -> Iterator[FoundFile | RejectedRecord]:
        if not is_web(source):
            return folder_files(Path(source), pattern=pattern)
        addresses = list(web_addresses(source, pattern=pattern))
        named = {"tenant": self.settings.tenant, "source": SOURCE}
        with self.database.transaction() as connection:
            announce(
                connection,
                {
                    each.url: (each.title, each.fields)
                    for each in addresses
                    if isinstance(each, WebAddress)
                },
                **named,
            )
            known = {
                address: stored.etag
                for address, stored in list_addresses(connection, **named).items()
                if stored.etag and stored.file_sha256
            }
        return web_files(
            addresses,
            known,
            self.settings.rag_home / "downloads",
            allow_private=self.settings.download_allow_private,
            megabytes=self.config.file_mb,
        )

    def addresses(self) -> Sequence[str]:
        """Return the addresses of the source that are known."""
        with self.database.transaction() as connection:
            return list(
                list_addresses(
                    connection,
                    tenant=self.settings.tenant,
                    source=SOURCE,
                )
            )

    def arrivals(self, addresses: Collection[str]) -> Sequence[datetime]:
        """Return when the documents at these addresses of the source arrived, if they did."""
        with self.database.transaction() as connection:
            rows = queries().list_arrivals(
                connection,
                tenant=self.settings.tenant,
                source=SOURCE,
                addresses=list(addresses),
            )
            return [row.arrived_at for row in rows]

    def extract(self, window: TimeWindow) -> ExtractReport:
        """Read the documents of all tenants that the present readers have not read."""
        report = ExtractReport()
        for tenant in self._owners(window):
            report.add(
                extract_window(self.database, self.files, window, self.config, tenant=tenant)
            )
        return report

    def apply(self, window: TimeWindow) -> ApplyReport:
        """Write the pages and notes of the documents of a window that were read."""
        report = ApplyReport()
        for tenant in self._owners(window):
            report.add(apply_window(self.database, window, tenant=tenant))
        return report

    def any_in(self, window: TimeWindow) -> bool:
        """Whether any tenant has documents that arrived in a window."""
        return bool(self._owners(window))

    def _owners(self, window: TimeWindow) -> Sequence[str]:
        with self.database.transaction() as connection:
            rows = queries().list_document_owners(
                connection, first=window.start, after_last=window.end
            )
            return [row.tenant_id for row in rows]

    def held(self, window: TimeWindow) -> Sequence[HeldReading]:
        """Return the new readings that wait for a person."""
        with self.database.transaction() as connection:
            return held_extractions(connection, window, tenant=self.settings.tenant)

    def count(self, window: TimeWindow) -> MonthCount:
        """Count the documents that arrived in a window, by status."""
        with self.database.transaction() as connection:
            refresh_statuses(connection, window)
            return count_documents(connection, window, tenant=self.settings.tenant)

    def month(self, window: TimeWindow, *, limit: int) -> Sequence[MonthDocument]:
        """Return how far the documents of a window are, those with problems first."""
        with self.database.transaction() as connection:
            return list_month_documents(
                connection, window, tenant=self.settings.tenant, limit=limit
            )

    def quality(self, window: TimeWindow) -> PageQuality | None:
        """Return the quality of a window's pages; None if none was assessed."""
        with self.database.transaction() as connection:
            return page_quality(connection, window, tenant=self.settings.tenant)

    # --- Uploads

    def register(self, upload: Upload, content: bytes) -> DocumentSummary:
        """Register an upload as a document; see `documents.uploads.register`."""
        document_id = register(self.database, self.files, upload, content)
        return self.find(str(document_id))

    def waiting_uploads(self) -> Mapping[UUID, datetime]:
        """Return the arrival times of the uploads, of all tenants, that are not read yet."""
        with self.database.transaction() as connection:
            rows = queries().list_waiting_uploads(connection, source=UPLOADS)
            return {row.id: row.arrived_at for row in rows}

    # --- For a person

    def list(self, *, limit: int | None = None) -> tuple[list[DocumentSummary], int]:
        """Return the latest documents, and how many there are without the limit."""
        with self.database.transaction() as connection:
            refresh_statuses(connection)
            return list_documents(connection, tenant=self.settings.tenant, limit=limit)

    def unread(self, *, limit: int) -> Sequence[UnreadDocument]:
        """Return the latest documents that could not be read, as their statuses say."""
        with self.database.transaction() as connection:
            return list_unread(connection, limit=limit)

    def count_missing(self) -> int:
        """Count the documents whose file is at none of their addresses any more."""
        with self.database.transaction() as connection:
            return count_missing(connection)

    def find(self, name: str) -> DocumentSummary:
        """Return the document with an id, an address or a title.

        Raises:
            InvalidParameterError: There is none, or several have this name.
        """
        with self.database.transaction() as connection:
            refresh_statuses(connection)
            return find_document(connection, name, tenant=self.settings.tenant)

    def find_by_id(self, document_id: UUID) -> DocumentSummary | None:
        """Return the document with an id; None if there is none."""
        with self.database.transaction() as connection:
            refresh_statuses(connection)
            return fetch_summary(connection, document_id, tenant=self.settings.tenant)

    def details(self, document: DocumentSummary) -> DocumentDetails:
        """Return the pages, failures and readings of a document."""
        with self.database.transaction() as connection:
            return read_details(connection, document.document_id)

    def describe(
        self, document_id: UUID, *, title: str | None, changes: Mapping[str, Any]
    ) -> DocumentSummary | None:
        """Change title and metadata of an uploaded document; see `documents.uploads.describe`."""
        tenant = self.settings.tenant
        with self.database.transaction() as connection:
            return describe(connection, document_id, tenant=tenant, title=title, changes=changes)

    def delete(self, document: DocumentSummary, *, reason: str = "") -> int:
        """Delete a document with everything that has its text; return the number of its notes."""
        return delete_document(
            self.database,
            self.files,
            document.document_id,
            tenant=self.settings.tenant,
            reason=reason,
        )

    def purge_expired(self) -> int:
        """Delete the documents whose grace period after expiry is over; return how many."""
        if not self.settings.keeps_files:
            return 0  # Without copies there are no documents.
        hours = self.settings.expired_grace_hours
        return purge_documents(self.database, self.files, grace_hours=hours)

    def restore(self, address: str) -> bool:
        """Let the source bring a deleted document back; False if none was deleted there."""
        return restore_document(self.database, address, tenant=self.settings.tenant)

    def reviews(self) -> Sequence[ToReview]:
        """Return what a person should review: poor pages, pages without text, held readings."""
        return list_reviews(self.database, tenant=self.settings.tenant)

    def review(
        self, document: DocumentSummary, decision: Decision, *, page: int | None = None
    ) -> ApplyReport:
        """Store a person's decision about a page, or about a held reading.

        Raises:
            InvalidParameterError: There is nothing to decide.
        """
        return review_document(
            self.database,
            document.document_id,
            decision,
            tenant=self.settings.tenant,
            page=page,
        )

    def verify(self, document: DocumentSummary) -> Verified:
        """Look up every passage of a document in its file again."""
        return verify_document(self.database, self.files, document.document_id, self.config)

    def picture(
        self, document: DocumentSummary, page: int, *, boxes: Sequence[Box] | None = None
    ) -> bytes:
        """Return a page of a PDF document as PNG, with boxes; None marks all of its lines.

        Raises:
            InvalidParameterError: The document is no PDF, or its copy is gone.
            ExtractionError: The page cannot be read.
        """
        return picture_of_page(
            self.database, self.files, document.document_id, page, self.config, boxes=boxes
        )

    def verify_window(self, window: TimeWindow) -> Verified:
        """Look up every passage of the documents of a window in its file again."""
        return verify_window(
            self.database, self.files, window, self.config, tenant=self.settings.tenant
        )
