"""Reads the documents of a window; the new pages wait until they replace the earlier ones.

The child process is in `documents.extraction`; replacing pages is in `documents.applying`.
"""

import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from rag_resources.core.documents import Page, PageFailure
from rag_resources.core.errors import ExtractionError, InvalidParameterError
from rag_resources.core.extraction_config import ExtractionConfig
from rag_resources.core.extraction_diff import ExtractionDiff, compare_readings
from rag_resources.core.sections import sections_of
from rag_resources.core.types import TimeWindow
from rag_resources.database.pool import Connection, Database
from rag_resources.database.queries import queries
from rag_resources.documents.extraction import extract
from rag_resources.documents.readers import READERS, reader_of
from rag_resources.files import Files
from rag_resources.languages.messages import _
from rag_resources.store.documents import fetch_document, list_pages, write_failure
from rag_resources.store.extractions import (
    documents_to_extract,
    finish_extraction,
    insert_extracted,
    latest_extraction,
    list_passages,
)

BATCH_PAGES = 20
PARALLEL_READERS = 2
FAILED, READ, HELD = "failed", "read", "held"


@dataclass
class ExtractReport:
    """The outcome of reading the documents of a window.

    Attributes:
        failures: Documents that could not be read to their end: title and reason.
        held: Documents whose new reading waits for a person: title and difference.
    """

    documents: int = 0
    pages: int = 0
    failed_pages: int = 0
    failures: list[tuple[str, str]] = field(default_factory=list)
    held: list[tuple[str, ExtractionDiff]] = field(default_factory=list)

    def add(self, other: "ExtractReport") -> None:
        """Add another report."""
        self.documents += other.documents
        self.pages += other.pages
        self.failed_pages += other.failed_pages
        self.failures += other.failures
        self.held += other.held


def readers(config: ExtractionConfig) -> dict[str, str]:
    """Return the hash of the reader of each media type."""
    return {kind: reader_of(kind).reader_hash for kind in READERS}


def extract_window(
    database: Database,
    files: Files,
    window: TimeWindow,
    config: ExtractionConfig,
    *,
    tenant: str,
) -> ExtractReport:
    """Read the documents of a window that the present readers have not read, several in parallel.

    Each is read in one transaction, which holds the claim on it. A run that is killed leaves no
    rows, and the next one reads the document again.
    """
    limits = _limits(config)
    with database.transaction() as connection:
        waiting = documents_to_extract(
            connection, window, tenant=tenant, readers=readers(config), limits=limits
        )
    report = ExtractReport()
    work = partial(_extract, database, files, config, limits)
    with ThreadPoolExecutor(PARALLEL_READERS) as pool:
        for part in pool.map(work, waiting):
            report.add(part)
    return report


def _limits(config: ExtractionConfig) -> Mapping[str, Any]:
    """Return the limits of readings; a failed reading is repeated under other limits."""
    return config.model_dump(include={"timeout_s", "memory_mb", "pages"})


def _extract(
    database: Database,
    files: Files,
    config: ExtractionConfig,
    limits: Mapping[str, Any],
    document_id: UUID,
) -> ExtractReport:
    with database.transaction() as connection:
        queries().set_document_status(connection, document_id=document_id, status="extracting")
    with database.bulk() as connection:
        if not queries().claim_extraction(connection, document_id=document_id):
            return ExtractReport()
        document = fetch_document(connection, document_id)
        if document is None:
            return ExtractReport()
        reader = reader_of(document.media_type)
        extraction_id = queries().insert_extraction(
            connection,
            document_id=document_id,
            file_sha256=document.file_sha256,
            reader=reader.name,
            reader_hash=reader.reader_hash,
            limits=Jsonb(dict(limits)),
        )
        started = time.monotonic()
        items, failure = _read_into(
            connection, extraction_id, files, document.file_url, document.media_type, config
        )
        failure = failure or _silence(items)
        diff = _difference(connection, document_id, document.file_sha256, items, config)
        state = _state(items, diff, config)
        finish_extraction(
            connection,
            document_id,
            extraction_id,
            state=state,
            pages=items,
            diff=diff[0] if diff else None,
            failure=failure,
            seconds=time.monotonic() - started,
        )
        _tell(connection, document_id, state, failure, is_first=diff is None)
    report = ExtractReport(documents=1, pages=sum(isinstance(item, Page) for item in items))
    report.failed_pages = len(items) - report.pages
    if failure:
        report.failures.append((document.title, failure))
    if state == HELD and diff:
        report.held.append((document.title, diff[0]))
    return report


def _read_into(
    connection: Connection,
    extraction_id: int,
    files: Files,
    file_url: str,
    media_type: str,
    config: ExtractionConfig,
) -> tuple[list[Page | PageFailure], str]:
    """Read a file and write its pages; return them, and why it was not read to its end, if so."""
    items: list[Page | PageFailure] = []
    failure, written = "", 0
    try:
        with tempfile.TemporaryFile() as file:
            file.write(files.read(file_url))
            file.flush()
            for item in extract(file, media_type, config):
                items.append(item)
                if len(items) - written >= BATCH_PAGES:
                    insert_extracted(connection, extraction_id, items[written:])
                    written = len(items)
    except (ExtractionError, InvalidParameterError) as error:
        failure = error.message
    insert_extracted(connection, extraction_id, items[written:])
    return items, failure


def _silence(items: Sequence[Page | PageFailure]) -> str:
    """Return why a document without text has none, unless the notices of its pages say so."""
    said = any(isinstance(item, PageFailure) or item.text.strip() or item.notices for item in items)
    return "" if said else _("The file is empty.")


def _difference(
    connection: Connection,
    document_id: UUID,
    file_sha256: bytes,
    items: Sequence[Page | PageFailure],
    config: ExtractionConfig,
) -> tuple[ExtractionDiff, bool] | None:
    """Compare a reading with the stored pages, if there are any.

    Returns:
        The difference, and whether it is of the same file.
    """
    before = [stored.page for stored in list_pages(connection, document_id)]
    if not before:
        return None
    after = [item for item in items if isinstance(item, Page)]
    diff = compare_readings(
        before,
        after,
        passages=[passage.content for passage in list_passages(connection, document_id)],
        new_texts=[section.text for section in sections_of(after)],
    )
    applied = latest_extraction(connection, document_id, "applied")
    return diff, applied is not None and applied.file_sha256 == bytes(file_sha256)


def _state(
    items: Sequence[Page | PageFailure],
    diff: tuple[ExtractionDiff, bool] | None,
    config: ExtractionConfig,
) -> str:
    """Return the state of a reading: another file may contain less text, another reader may not."""
    if diff is not None and diff[1] and not diff[0].is_within:
        return HELD
    return READ if items else FAILED


def _tell(
    connection: Connection, document_id: UUID, state: str, failure: str, *, is_first: bool
) -> None:
    """Store the document's status after a reading; pages and notes stay as they are."""
    status = "chunking" if state == READ else "partial"
    if state == FAILED:
        write_failure(connection, document_id, failure)
        status = "failed" if is_first else status
    queries().set_document_status(connection, document_id=document_id, status=status)
