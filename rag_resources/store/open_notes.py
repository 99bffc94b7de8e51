"""Notes as readers open them. Writing and finding is in `store.notes`."""

from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, computed_field
from pydantic.alias_generators import to_camel

from rag_resources.core.blocks import read


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

    @computed_field  # type: ignore[prop-decorator]
    @property
    def links(self) -> list[str]:
        """The names of the notes that its text links to."""
        return [*read(self.content).links]


class NoteOrigin(NamedTuple):
    """Where a note comes from; `document_id` if it is a section of a document."""

    document_id: UUID | None
    source: str
    tags: list[str]
