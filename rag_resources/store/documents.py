"""Rows of documents: files, their pages, and which parts of them are notes.

Their types are in `core.documents`; implementations of its reader protocol read the files.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from rag_resources.core.documents import (
    Document,
    DocumentReader,
    Page,
    PageFailure,
    Section,
    check_section,
)
from rag_resources.core.places import Box, NoteSpan
from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries

EXTRACTING = "extracting"
"""The stage stored for pages that could not be read."""


def insert_document(
    connection: Connection, document: Document, *, tenant: str, source: str
) -> UUID:
    """Write a document with its first address; return its id."""
    document_id: UUID = queries().insert_document(
        connection,
        tenant=tenant,
        source=source,
        title=document.title,
        media_type=document.media_type,
        metadata=Jsonb(dict(document.metadata)),
        file_sha256=document.file_sha256,
        page_count=document.page_count,
        arrived_at=document.arrived_at,
    )
    queries().insert_document_address(
        connection,
        tenant=tenant,
        source=source,
        address=document.address,
        document_id=document_id,
    )
    return document_id


def write_pages(
    connection: Connection,
    document_id: UUID,
    read: Sequence[Page | PageFailure],
    *,
    reader: DocumentReader,
) -> None:
    """Store the pages and failures of a reader, in the caller's transaction.

    If the text of a page changes, the sections on it must be written again in the same
    transaction.
    """
    pages = [_page_row(item, reader) for item in read if isinstance(item, Page)]
    failures = [_failure_row(item) for item in read if isinstance(item, PageFailure)]
    queries().upsert_document_page(
        connection, [row | {"document_id": document_id} for row in pages]
    )
    queries().upsert_document_failure(
        connection, [row | {"document_id": document_id} for row in failures]
    )


def write_sections(
    connection: Connection,
    document_id: UUID,
    sections: Mapping[UUID, Section],
    pages: Mapping[int, Page],
) -> None:
    """Store which section of a document each note is, and where its text is on the pages.

    Args:
        connection: In a transaction.
        document_id: The document of the sections.
        sections: By note id; the content of each note is the section's text.
        pages: Pages of the document, by number.

    Raises:
        InvalidParameterError: The spans of a section do not cover its text.
    """
    for section in sections.values():
        check_section(section, pages)
    queries().link_section(
        connection,
        [
            {
                "note_id": note_id,
                "document_id": document_id,
                "section_index": section.index,
                "heading_path": list(section.heading_path),
            }
            for note_id, section in sections.items()
        ],
    )
    queries().delete_note_spans(connection, note_ids=list(sections))
    queries().insert_note_span(
        connection,
        [
            _span_row(span) | {"note_id": note_id, "document_id": document_id}
            for note_id, section in sections.items()
            for span in section.spans
        ],
    )


def fetch_spans(
    connection: Connection, ranges: Sequence[tuple[UUID, int, int]]
) -> list[list[NoteSpan]]:
    """Read the spans that overlap ranges of notes, in one round trip.

    Args:
        connection: Any.
        ranges: Note id, start and end of each.

    Returns:
        The spans of each range, in order. They are not clipped: the first and the last may extend
        beyond the range.
    """
    found: list[list[NoteSpan]] = [[] for _ in ranges]
    rows = queries().fetch_spans(
        connection,
        note_ids=[note_id for note_id, _, _ in ranges],
        starts=[start for _, start, _ in ranges],
        ends=[end for _, _, end in ranges],
    )
    for row in rows:
        box = Box(*row.box) if row.box else None
        found[row.number - 1].append(
            NoteSpan(
                row.start_char,
                row.end_char,
                row.page_number,
                row.page_start,
                box,
                row.sheet,
                row.cells,
            )
        )
    return found


def delete_document(connection: Connection, document_id: UUID) -> None:
    """Delete a document with its pages and notes, and everything derived from them."""
    queries().delete_document(connection, document_id=document_id)


def _page_row(page: Page, reader: DocumentReader) -> dict[str, Any]:
    return {
        "page_number": page.number,
        "sheet": page.sheet,
        "reader": reader.name,
        "reader_hash": reader.reader_hash,
        "route": page.route.value,
        "text": page.text,
        "removed": Jsonb(
            [{"start": r.start, "end": r.end, "reason": r.reason} for r in page.removed]
        ),
        "words": page.words,
        "quality": page.quality,
        "has_images": page.has_images,
        "has_tables": page.has_tables,
        "has_multiple_columns": page.has_multiple_columns,
        "word_count": page.word_count,
    }


def _failure_row(failure: PageFailure) -> dict[str, Any]:
    return {
        "page_number": failure.number,
        "stage": EXTRACTING,
        "code": failure.code,
        "details": Jsonb(dict(failure.details)),
    }


def _span_row(span: NoteSpan) -> dict[str, Any]:
    box = span.box
    return {
        "start_char": span.start,
        "end_char": span.end,
        "page_number": span.page,
        "page_start": span.page_start,
        "box": [box.left, box.top, box.right, box.bottom] if box else None,
        "cells": span.cells,
    }
