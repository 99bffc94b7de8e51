"""Rows of documents: files, their pages, and which parts of them are notes.

Their types are in `core.documents`; implementations of its reader protocol read the files.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from rag_resources.core.documents import (
    Page,
    PageFailure,
    Route,
    Section,
    check_section,
)
from rag_resources.core.page_json import BLOCKS, REMOVALS, parts_to_json
from rag_resources.core.places import Box, NoteSpan
from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries
from rag_resources.languages.messages import to_stored

EXTRACTING = "extracting"
"""The stage stored for pages that could not be read."""
DOWNLOADING = "downloading"
"""The stage stored for files that could not be fetched; also the status before fetching."""


def write_pages(
    connection: Connection,
    document_id: UUID,
    read: Sequence[Page | PageFailure],
    *,
    reader: str,
    reader_hash: str,
) -> None:
    """Store a complete reading in place of the earlier one, in the caller's transaction.

    If the text of a page changes, the sections on it must be written again in the same
    transaction.
    """
    numbers = [item.number for item in read if isinstance(item, Page)]
    queries().delete_other_pages(connection, document_id=document_id, numbers=numbers)
    queries().delete_document_failures(connection, document_id=document_id, stage=EXTRACTING)
    own = {"reader": reader, "reader_hash": reader_hash}
    pages = [_page_row(item) | own for item in read if isinstance(item, Page)]
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


@dataclass(frozen=True, slots=True)
class StoredPage:
    """A page as it is stored.

    Attributes:
        review: What a person decided about it: `accepted`, `dropped`, or empty.
    """

    page: Page
    reader_hash: str
    review: str


def list_pages(connection: Connection, document_id: UUID) -> list[StoredPage]:
    """Return the pages of a document, in order."""
    return [_stored_page(row) for row in queries().list_pages(connection, document_id=document_id)]


def fetch_document(connection: Connection, document_id: UUID) -> Any | None:
    """Return the row of a document; None if it is gone."""
    return next(iter(queries().fetch_document(connection, document_id=document_id)), None)


def lock_document(connection: Connection, document_id: UUID, *, tenant: str) -> Any | None:
    """Return the row of a document, locked until commit; None if it is gone or another tenant's.

    Until commit, no person can delete a note, no file of the tenant can be registered, and no other
    document of the tenant can be written.
    """
    queries().lock_tombstones(connection)
    queries().lock_documents(connection, tenant=tenant)
    return next(iter(queries().lock_document(connection, document_id=document_id)), None)


def write_failure(
    connection: Connection, document_id: UUID, failure: str, *, stage: str = EXTRACTING
) -> None:
    """Store why a document, or the rest of it, could not be read."""
    row = {
        "document_id": document_id,
        "page_number": None,
        "stage": stage,
        "reason": Jsonb(to_stored(failure)),
    }
    queries().upsert_document_failure(connection, [row])


def delete_document(connection: Connection, document_id: UUID) -> None:
    """Delete a document with its pages and notes, and everything derived from them."""
    queries().delete_document(connection, document_id=document_id)


def _page_row(page: Page) -> dict[str, Any]:
    return {
        "page_number": page.number,
        "sheet": page.sheet,
        "route": page.route.value,
        "text": page.text,
        "blocks": Jsonb(parts_to_json(page.blocks)),
        "removed": Jsonb(parts_to_json(page.removed)),
        "quality": page.quality,
        "has_images": page.has_images,
        "has_tables": page.has_tables,
        "has_multiple_columns": page.has_multiple_columns,
        "word_count": page.word_count,
        "notices": list(page.notices),
        "left_out": Jsonb(dict(page.left_out)),
        "metadata": Jsonb(dict(page.metadata)),
    }


def _failure_row(failure: PageFailure) -> dict[str, Any]:
    return {
        "page_number": failure.number,
        "stage": EXTRACTING,
        "reason": Jsonb(to_stored(failure.reason)),
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


def _stored_page(row: Any) -> StoredPage:
    page = Page(
        number=row.page_number,
        text=row.text,
        route=Route(row.route),
        sheet=row.sheet,
        blocks=BLOCKS.validate_python(row.blocks),
        removed=REMOVALS.validate_python(row.removed),
        quality=row.quality,
        has_images=row.has_images,
        has_tables=row.has_tables,
        has_multiple_columns=row.has_multiple_columns,
        notices=tuple(row.notices),
        left_out=row.left_out,
        metadata=row.metadata,
    )
    return StoredPage(page, row.reader_hash, row.review or "")
