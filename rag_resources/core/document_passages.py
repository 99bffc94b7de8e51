"""The metadata of a passage of a document besides its place (which is in `core.places`)."""

import re
import unicodedata
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from rag_resources.core.blocks import read
from rag_resources.core.places import DocumentPlace
from rag_resources.core.temporal_context import Change

_NAME_CHARS = 60
_BARRED = re.compile(r"\S \| \S")
"""Cells as readers of documents write them, without the bars at the ends that Markdown has."""


@dataclass(frozen=True, slots=True)
class DocumentPassage:
    """A chunk among the chunks of its document, or a section that has no chunks yet.

    Attributes:
        document: Title of the document.
        position: Number of the chunk in the document, from 0.
        total_chunks: Chunks of its section; 0 if it has none yet.
        previous_chunk_id: The chunk before it in its section.
        next_chunk_id: The chunk after it in its section.
        quality: Lowest quality of its pages; None if none was assessed.
        changes: In the tables of a sheet, from one period to the next.
    """

    document: str
    position: int = 0
    total_chunks: int = 0
    previous_chunk_id: UUID | None = None
    next_chunk_id: UUID | None = None
    quality: float | None = None
    changes: tuple[Change, ...] = ()

    def to_json(self, place: DocumentPlace, content: str) -> dict[str, Any]:
        """Return the camelCase form, with the fields derived from the place and the text."""
        page = place.places[0].page
        path = place.heading_path
        kinds = {block.kind for block in read(content).blocks}
        changes = [change.to_json() for change in self.changes]
        return {
            "documentChunkId": f"{short_name(self.document)}_p{page}_c{self.position}",
            "section": path[0] if path else None,
            "heading": path[-1] if path else None,
            "page": page,
            "totalChunks": self.total_chunks,
            "previousChunkId": str(self.previous_chunk_id) if self.previous_chunk_id else None,
            "nextChunkId": str(self.next_chunk_id) if self.next_chunk_id else None,
            "containsTable": "row" in kinds or bool(_BARRED.search(content)),
            "containsList": "item" in kinds,
            "qualityScore": self.quality,
            **({"temporalContext": changes} if changes else {}),
        }


def short_name(title: str) -> str:
    """Return a title as part of an identifier: small letters, digits and hyphens."""
    letters = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", letters).strip("-")[:_NAME_CHARS].rstrip("-") or "documento"
