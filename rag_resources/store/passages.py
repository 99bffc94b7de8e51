"""Reads the texts of results, to show them, and their vectors, for diversity.

Finding results belongs in `store.search`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import numpy as np

from rag_resources.core.document_passages import DocumentPassage
from rag_resources.core.places import DocumentPlace, places_of
from rag_resources.core.temporal_context import Change, temporal_context
from rag_resources.core.types import Chunk, Note, Vectors
from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries
from rag_resources.store.documents import fetch_spans


@dataclass(frozen=True, slots=True)
class Passage:
    """A found chunk or whole note, and the note it belongs to.

    Attributes:
        chunk: A whole note is represented as a chunk of all its characters, with the note's id.
        place: Where the chunk is in its document; None if the note is not a section of one.
        document: Further facts about it as a part of its document; None without a place.
    """

    chunk: Chunk
    note: Note
    place: DocumentPlace | None = None
    document: DocumentPassage | None = None


def passages_of(connection: Connection, rows: Iterable[Any]) -> dict[UUID, Passage]:
    """Return the passages of rows of the query `search`, by chunk id.

    Takes a round trip if some belong to documents.

    Args:
        connection: Any.
        rows: The first of each note has its content.
    """
    notes: dict[UUID, Note] = {}
    passages = {}
    sections: dict[UUID, _Section] = {}
    for row in rows:  # The first row of a note has its content.
        if row.note_id not in notes:
            notes[row.note_id] = Note(
                row.note_id,
                row.title,
                row.note_content,
                row.created_at,
                external_id=row.external_id,
            )
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
    """The document section that a passage's note is."""

    document_id: UUID
    heading_path: tuple[str, ...]


def _placed(
    connection: Connection,
    passages: Mapping[UUID, Passage],
    sections: Mapping[UUID, _Section],
) -> dict[UUID, Passage]:
    """Return the passages that belong to documents, with their places, by chunk id."""
    chunks = [passages[chunk_id].chunk for chunk_id in sections]
    ranges = [(chunk.note_id, chunk.start_char, chunk.end_char) for chunk in chunks]
    placed = {}
    for chunk, spans in zip(chunks, fetch_spans(connection, ranges), strict=True):
        places = places_of(spans, chunk.start_char, chunk.end_char)
        if places:
            section = sections[chunk.chunk_id]
            place = DocumentPlace(section.document_id, section.heading_path, places)
            placed[chunk.chunk_id] = replace(passages[chunk.chunk_id], place=place)
    among = _among_documents(connection, list(placed.values()))
    return {
        chunk_id: replace(passage, document=among.get(chunk_id))
        for chunk_id, passage in placed.items()
    }


def _among_documents(
    connection: Connection, passages: Sequence[Passage]
) -> dict[UUID, DocumentPassage]:
    """Return the facts about passages as parts of their documents, by chunk id."""
    if not passages:
        return {}
    chunks = [passage.chunk for passage in passages]
    rows = queries().fetch_document_passages(
        connection,
        chunk_ids=[chunk.chunk_id for chunk in chunks],
        note_ids=[chunk.note_id for chunk in chunks],
        starts=[chunk.start_char for chunk in chunks],
        ends=[chunk.end_char for chunk in chunks],
    )
    changes = _changes(connection, passages)
    return {
        row.id: DocumentPassage(
            row.title,
            row.earlier_chunks,
            row.total_chunks,
            row.previous_id,
            row.next_id,
            row.quality,
            changes.get(row.id, ()),
        )
        for row in rows
    }


def _changes(connection: Connection, passages: Sequence[Passage]) -> dict[UUID, tuple[Change, ...]]:
    """Return the changes in the tables of passages of sheets, by chunk id."""
    of_sheets = [passage for passage in passages if passage.place and passage.place.places[0].sheet]
    if not of_sheets:
        return {}
    # The row before a passage may be outside of it.
    whole = [(passage.note.note_id, 0, len(passage.note.content)) for passage in of_sheets]
    return {
        passage.chunk.chunk_id: temporal_context(
            passage.note.content, spans, passage.chunk.start_char, passage.chunk.end_char
        )
        for passage, spans in zip(of_sheets, fetch_spans(connection, whole), strict=True)
    }


def fetch_result_vectors(
    connection: Connection, model: str, found: Sequence[tuple[UUID, UUID]], *, by_notes: bool
) -> dict[UUID, Vectors]:
    """Read the standard vectors of the found passages, in one round trip.

    Args:
        connection: Any.
        model: The model of the vectors.
        found: Chunk id and note id of each passage.
        by_notes: Whether whole notes were found.

    Returns:
        By chunk id, each `(dimension,)` float32, L2-normalised; passages without one are left out.
    """
    ids = [chunk_id for chunk_id, _ in found]
    rows = queries().fetch_result_vectors(
        connection,
        model=model,
        chunk_ids=[] if by_notes else ids,
        note_ids=ids if by_notes else [],
    )
    return {row.id: _normalised(row.embedding.to_numpy().astype(np.float32)) for row in rows}


def _normalised(vector: Vectors) -> Vectors:
    """Normalise again, since rounding to half precision changes the norm slightly."""
    normalised: Vectors = vector / np.linalg.norm(vector)
    return normalised
