"""Reads which range of a page became which range of a note."""

from dataclasses import dataclass
from uuid import UUID

from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries
from rag_resources.store.notes import uuid_or_none


@dataclass(frozen=True, slots=True)
class PageRun:
    """A range of a note that was copied, unchanged, from a page.

    Attributes:
        content: The content of the whole note.
        start: Offset into the note.
        end: After the last character.
        page_start: Offset of the range into the text of the page.
    """

    note_id: UUID
    content: str
    start: int
    end: int
    page_start: int


def find_page_runs(
    connection: Connection, document: str, page: int, *, tenant: str
) -> list[PageRun]:
    """Return the ranges of notes that a page became, in the order of the page.

    Args:
        connection: Any.
        document: Id, address or title of a document.
        page: Its number, from 1.
        tenant: The document's tenant.
    """
    rows = queries().find_page_runs(
        connection, name=document, id=uuid_or_none(document), page=page, tenant=tenant
    )
    return [
        PageRun(row.note_id, row.content, row.start_char, row.end_char, row.page_start)
        for row in rows
    ]
