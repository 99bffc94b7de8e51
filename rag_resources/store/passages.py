"""What is shown of results, and what tells them apart: their texts and their vectors.

Finding them is `store.search`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

import numpy as np

from rag_resources.core.places import DocumentPlace, places_of
from rag_resources.core.types import Chunk, Note, Vectors
from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries
from rag_resources.store.documents import fetch_spans


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk, or a note found as a whole, and the note it is cut from.

    Attributes:
        chunk: A whole note is a chunk from its first to its last character, with the note's id.
        place: Where in its document the chunk stands; None for a note that is no section of one.
    """

    chunk: Chunk
    note: Note
    place: DocumentPlace | None = None


def fetch_passages(
    connection: Connection, found: Sequence[tuple[UUID, UUID]]
) -> dict[UUID, Passage]:
    """Read what was found, in one round trip; in two if some of it stands in documents.

    Args:
        connection: Any.
        found: Chunk id and note id of each; the note's id twice where it was found as a whole.

    Returns:
        By chunk id; what is gone or has expired is left out.
    """
    rows = queries().fetch_passages(
        connection,
        chunk_ids=[chunk_id for chunk_id, _ in found],
        note_ids=[note_id for _, note_id in found],
    )
    notes: dict[UUID, Note] = {}
    passages = {}
    sections: dict[UUID, _Section] = {}
    for row in rows:  # The first row of a note has its content.
        if row.note_id not in notes:
            notes[row.note_id] = Note(row.note_id, row.title, row.note_content, row.created_at)
        note = notes[row.note_id]
        if row.content is None:
            chunk = Chunk(note.note_id, note.note_id, 0, 0, len(note.content), note.content)
        else:
            chunk = Chunk(
                row.id, row.note_id, row.chunk_index, row.start_char, row.end_char, row.content
            )
        passages[row.id] = Passage(chunk, note)
        if row.document_id:
            sections[row.id] = _Section(row.document_id, tuple(row.heading_path))
    return passages | _placed(connection, passages, sections) if sections else passages


@dataclass(frozen=True, slots=True)
class _Section:
    """What the note of a passage is a section of."""

    document_id: UUID
    heading_path: tuple[str, ...]


def _placed(
    connection: Connection,
    passages: Mapping[UUID, Passage],
    sections: Mapping[UUID, _Section],
) -> dict[UUID, Passage]:
    """Return the passages that stand in documents with their places, by chunk id."""
    chunks = [passages[chunk_id].chunk for chunk_id in sections]
    ranges = [(chunk.note_id, chunk.start_char, chunk.end_char) for chunk in chunks]
    placed = {}
    for chunk, spans in zip(chunks, fetch_spans(connection, ranges), strict=True):
        places = places_of(spans, chunk.start_char, chunk.end_char)
        if places:
            section = sections[chunk.chunk_id]
            place = DocumentPlace(section.document_id, section.heading_path, places)
            placed[chunk.chunk_id] = replace(passages[chunk.chunk_id], place=place)
    return placed


def fetch_result_vectors(
    connection: Connection, model: str, found: Sequence[tuple[UUID, UUID]], note_model: str
) -> dict[UUID, Vectors]:
    """Read the standard vectors of what was found, in one round trip.

    Args:
        connection: Any.
        model: The model of the chunks.
        found: As `fetch_passages` takes it.
        note_model: The model that finds whole notes: if it is another, theirs are left out, as
            vectors of two models cannot be compared.

    Returns:
        By chunk id, each `(dimension,)` float32, L2-normalised; what has none is left out.
    """
    whole = {chunk_id for chunk_id, note_id in found if chunk_id == note_id}
    rows = queries().fetch_result_vectors(
        connection,
        model=model,
        chunk_ids=[chunk_id for chunk_id, _ in found if chunk_id not in whole],
        note_ids=list(whole) if note_model == model else [],
    )
    return {row.id: _normalised(row.embedding.to_numpy().astype(np.float32)) for row in rows}


def _normalised(vector: Vectors) -> Vectors:
    """Half precision moves the norm a little away from 1."""
    normalised: Vectors = vector / np.linalg.norm(vector)
    return normalised
