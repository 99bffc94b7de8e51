"""Rows of readings of documents, and of their new pages that wait to replace the old ones."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from rag_resources.core.documents import Page, PageFailure
from rag_resources.core.extraction_diff import ExtractionDiff
from rag_resources.core.page_json import item_from_json, item_to_json
from rag_resources.core.types import TimeWindow
from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries
from rag_resources.languages.messages import restored, to_stored


@dataclass(frozen=True, slots=True)
class Extraction:
    """A reading of a document's file.

    Attributes:
        state: `read`, `held`, `applied`, `dropped` or `failed`; the table says what they mean.
        diff: The difference from the pages that it would replace; None for a first reading.
        failure: Why the file could not be read to its end; empty if it was.
    """

    extraction_id: int
    document_id: UUID
    file_sha256: bytes
    reader: str
    reader_hash: str
    state: str
    page_count: int
    word_count: int
    diff: ExtractionDiff | None
    failure: str
    seconds: float
    extracted_at: datetime


def documents_to_extract(
    connection: Connection,
    window: TimeWindow,
    *,
    tenant: str,
    readers: Mapping[str, str],
    limits: Mapping[str, Any],
) -> list[UUID]:
    """Return the documents of a window that the present readers have not read, newest first.

    Args:
        connection: In a transaction.
        window: Range of arrival times.
        tenant: The owner.
        readers: Hash of the reader of each media type.
        limits: The limits of reading; a failed reading is only repeated under other limits.
    """
    rows = queries().documents_to_extract(
        connection,
        tenant=tenant,
        first=window.start,
        after_last=window.end,
        readers=Jsonb(dict(readers)),
        limits=Jsonb(dict(limits)),
    )
    return [row.id for row in rows]


def insert_extracted(
    connection: Connection, extraction_id: int, items: Iterable[Page | PageFailure]
) -> None:
    """Write pages and failures that wait to replace others."""
    rows = [
        {
            "extraction_id": extraction_id,
            "page_number": item.number,
            "content": Jsonb(item_to_json(item)),
        }
        for item in items
    ]
    queries().insert_extracted_pages(connection, rows)


def finish_extraction(
    connection: Connection,
    document_id: UUID,
    extraction_id: int,
    *,
    state: str,
    pages: Sequence[Page | PageFailure],
    diff: ExtractionDiff | None,
    failure: str,
    seconds: float,
) -> None:
    """Store how a reading ended; it replaces the document's readings that still wait."""
    queries().drop_waiting_extractions(
        connection, document_id=document_id, extraction_id=extraction_id
    )
    queries().finish_extraction(
        connection,
        extraction_id=extraction_id,
        state=state,
        page_count=len(pages),
        word_count=sum(page.word_count for page in pages if isinstance(page, Page)),
        diff=Jsonb(diff.to_json()) if diff else None,
        failure=Jsonb(to_stored(failure)) if failure else None,
        seconds=seconds,
    )


def latest_extraction(connection: Connection, document_id: UUID, state: str) -> Extraction | None:
    """Return the latest reading of a document in a state; None if there is none."""
    extractions = list_extractions(connection, document_id)
    return next((each for each in extractions if each.state == state), None)


def list_extractions(connection: Connection, document_id: UUID) -> list[Extraction]:
    """Return the readings of a document, latest first."""
    rows = queries().list_extractions(connection, document_id=document_id)
    return [_extraction(row) for row in rows]


def list_extracted(connection: Connection, extraction_id: int) -> list[Page | PageFailure]:
    """Return the pages and failures of a reading that waits, in order."""
    rows = queries().list_extracted_pages(connection, extraction_id=extraction_id)
    return [item_from_json(row.content) for row in rows]


def close_extraction(connection: Connection, extraction_id: int, state: str) -> None:
    """Store that a reading was applied or dropped, and delete its own pages."""
    queries().set_extraction_state(connection, extraction_id=extraction_id, state=state)
    queries().delete_extracted_pages(connection, extraction_id=extraction_id)


@dataclass(frozen=True, slots=True)
class HeldReading:
    """A new reading that loses too much and waits for a person.

    Attributes:
        title: The document's title.
        diff: What it would change.
        read_at: When it was made, by the database's clock.
    """

    document_id: UUID
    title: str
    diff: ExtractionDiff
    read_at: datetime


def held_extractions(
    connection: Connection, window: TimeWindow, *, tenant: str
) -> list[HeldReading]:
    """Return the readings that wait for a person, of documents that arrived in a window."""
    rows = queries().held_extractions(
        connection, tenant=tenant, first=window.start, after_last=window.end
    )
    return [
        HeldReading(
            row.document_id, row.title, ExtractionDiff.from_json(row.diff), row.extracted_at
        )
        for row in rows
    ]


def list_passages(connection: Connection, document_id: UUID) -> list[Any]:
    """Return the chunks of a document: id, note_id, start_char, end_char, content."""
    return list(queries().document_passages(connection, document_id=document_id))


def _extraction(row: Any) -> Extraction:
    return Extraction(
        row.id,
        row.document_id,
        bytes(row.file_sha256),
        row.reader,
        row.reader_hash,
        row.state,
        row.page_count,
        row.word_count,
        ExtractionDiff.from_json(row.diff) if row.diff else None,
        restored(row.failure) if row.failure else "",
        row.seconds,
        row.extracted_at,
    )
