"""Notes for readers with their content, and the tags. Writing and finding is in `store.notes`."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries


class OpenNote(BaseModel):
    """A note with its content: the row, and the JSON of it.

    Attributes:
        external_id: Its id, for a note that came from no source.
        document_id: The document that it is a section of; None if it is not a section.
        headings: The headings above that section, outermost first.
    """

    model_config = ConfigDict(
        alias_generator=to_camel, validate_by_name=True, from_attributes=True, frozen=True
    )

    id: UUID
    source: str
    external_id: str
    title: str
    content: str
    created_at: datetime
    updated_at: datetime
    tags: list[str]
    metadata: dict[str, Any]
    content_sha256: str = Field(alias="contentSha256")
    document_id: UUID | None
    headings: list[str]


def open_note(connection: Connection, note_id: UUID, *, tenant: str) -> OpenNote | None:
    """Return a note of a tenant; None if there is none of this id."""
    row = queries().open_note(connection, note_id=note_id, tenant=tenant)
    return OpenNote.model_validate(row) if row else None


class NoteOrigin(NamedTuple):
    """Where a note comes from; `document_id` if it is a section of a document."""

    document_id: UUID | None
    source: str
    tags: list[str]


def list_origins(
    connection: Connection, note_ids: Sequence[UUID], *, tenant: str
) -> Mapping[UUID, NoteOrigin]:
    """Return where notes of a tenant come from, by note."""
    rows = queries().list_note_origins(connection, note_ids=list(note_ids), tenant=tenant)
    return {row.id: NoteOrigin(row.document_id, row.source, row.tags) for row in rows}


def list_sections(connection: Connection, document_id: UUID, *, tenant: str) -> Sequence[UUID]:
    """Return the first thousand notes that are sections of a document, in its order."""
    rows = queries().list_section_ids(connection, document_id=document_id, tenant=tenant)
    return tuple(row.id for row in rows)


def list_tags(connection: Connection, *, tenant: str, limit: int) -> Sequence[tuple[str, int]]:
    """Return the tags of a tenant's notes with their numbers of notes, the most used first."""
    rows = queries().list_tags(connection, tenant=tenant, row_limit=limit)
    return [(row.tag, row.notes) for row in rows]
