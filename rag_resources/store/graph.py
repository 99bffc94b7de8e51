"""Rows of the causal graph: its queue, entities, mentions and relationships.

Extraction from notes is in `graph.reading`; searching the graph is in `store.graph_search`.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID, uuid5

from rag_resources.core.causal import CausalStatement, event_key
from rag_resources.core.graph_version import GraphPart
from rag_resources.core.mentions import EntityKind, Mention, entity_id
from rag_resources.core.text import Span
from rag_resources.core.types import TimeWindow
from rag_resources.database.claims import with_brief_locks
from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries

NAME_CHARS = 400
"""Most characters of an event's text that are kept as its name."""

_STATEMENTS = UUID("b7a2c3f4-0d3a-5c62-8a05-4f7d3b1c9e21")


@dataclass(frozen=True, slots=True)
class QueuedNote:
    """A claimed note of the queue."""

    note_id: UUID
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ChunkToRead:
    """A chunk of a note to read."""

    chunk_id: UUID
    content: str


@dataclass(frozen=True, slots=True)
class NoteToRead:
    """A claimed note with its chunks, in order."""

    note_id: UUID
    tenant: str
    title: str
    tags: tuple[str, ...]
    chunks: tuple[ChunkToRead, ...]


@dataclass(frozen=True, slots=True)
class GraphGaps:
    """The gaps of a part of the graph in the notes of a time window.

    Attributes:
        notes: Chunked notes.
        waiting: Chunked notes that it has not read.
        found: Mentions or statements.
        out_of_bounds: Those that end after their chunk.
    """

    notes: int
    waiting: int
    found: int
    out_of_bounds: int

    @property
    def total(self) -> int:
        """Gaps of all kinds."""
        return self.waiting + self.out_of_bounds


@dataclass(frozen=True, slots=True)
class Extraction:
    """The mentions or statements found in a note, by chunk, and the extractor that found them."""

    note: NoteToRead
    mentions: Mapping[UUID, Sequence[Mention]]
    statements: Mapping[UUID, Sequence[CausalStatement]]
    extractor: str
    version: str


def register_part(connection: Connection, part: GraphPart, *, version: str) -> None:
    """Register a part of the graph; all chunked notes are queued if its version changed.

    Args:
        connection: In a transaction.
        part: The part of the graph.
        version: The version of the extractor.

    Raises:
        IndexingError: Another session does not release its lock on the chunks.
    """
    if queries().fetch_graph_version(connection, part=part) != version:
        with_brief_locks(connection, lambda: _register(connection, part, version))


def _register(connection: Connection, part: GraphPart, version: str) -> None:
    queries().lock_for_graph(connection)
    # Another run may have registered it since the first look.
    if queries().fetch_graph_version(connection, part=part) == version:
        return
    queries().set_graph_version(connection, part=part, version=version)
    queries().request_whole_graph(connection, part=part)


def claim_queued(
    connection: Connection,
    part: GraphPart,
    window: TimeWindow,
    *,
    skipped: Collection[UUID],
    batch_size: int,
) -> list[QueuedNote]:
    """Lock the newest unclaimed queued notes of a time window, until commit."""
    rows = queries().claim_graph_notes(
        connection,
        part=part,
        month_start=window.start,
        month_end=window.end,
        skipped=list(skipped),
        batch_size=batch_size,
    )
    return [QueuedNote(*row) for row in rows]


def count_queued(
    connection: Connection, part: GraphPart, window: TimeWindow, *, skipped: Collection[UUID] = ()
) -> int:
    """Count the queued notes of a time window, claimed or not."""
    count: int = queries().count_graph_notes(
        connection,
        part=part,
        month_start=window.start,
        month_end=window.end,
        skipped=list(skipped),
    )
    return count


def is_current(
    connection: Connection, versions: Mapping[GraphPart, str], window: TimeWindow
) -> bool:
    """Whether parts have these versions, and have read every chunked note of a window."""
    current: bool = queries().graph_is_current(
        connection,
        parts=list(versions),
        versions=list(versions.values()),
        month_start=window.start,
        month_end=window.end,
    )
    return current


def select_notes(connection: Connection, note_ids: Sequence[UUID]) -> list[NoteToRead]:
    """Return claimed notes with their chunks; a note without chunks is left out."""
    return [
        NoteToRead(
            row.note_id,
            row.tenant_id,
            row.title,
            tuple(row.tags),
            tuple(map(ChunkToRead, row.chunk_ids, row.contents)),
        )
        for row in queries().select_notes_to_read(connection, note_ids=list(note_ids))
    ]


def keep_chunks(connection: Connection, note: NoteToRead) -> bool:
    """Lock the chunks of a note until commit; False if one is deleted or being deleted."""
    ids = [chunk.chunk_id for chunk in note.chunks]
    return len(list(queries().keep_chunks(connection, owners=ids))) == len(ids)


def replace_mentions(connection: Connection, extraction: Extraction) -> int:
    """Replace the mentions of a note whose chunks are kept; return how many it has."""
    note = extraction.note
    named = {
        (chunk_id, mention.span.start, found.id): (found, mention.span)
        for chunk_id, mentions in extraction.mentions.items()
        for mention in mentions
        for found in [_entity(note.tenant, mention.kind, mention.key, mention.name)]
    }
    _add_entities(connection, note.tenant, [found for found, _ in named.values()])
    rows = {
        "entities": [key[2] for key in named],
        "chunks": [key[0] for key in named],
        "starts": [key[1] for key in named],
        "ends": [span.end for _, span in named.values()],
    }
    queries().delete_other_mentions(
        connection, chunk_ids=[chunk.chunk_id for chunk in note.chunks], **rows
    )
    queries().add_mentions(
        connection,
        extractor=extraction.extractor,
        version=extraction.version,
        tenants=[note.tenant] * len(named),
        notes=[note.note_id] * len(named),
        **rows,
    )
    return len(named)


def replace_statements(connection: Connection, extraction: Extraction) -> int:
    """Replace the causal statements of a note whose chunks are kept; return how many it has."""
    note = extraction.note
    contents = {chunk.chunk_id: chunk.content for chunk in note.chunks}
    rows = {
        row.statement_id: row
        for chunk_id, statements in extraction.statements.items()
        for statement in statements
        if (row := _row(note, chunk_id, contents[chunk_id], statement)) is not None
    }
    _add_entities(
        connection, note.tenant, [end for row in rows.values() for end in (row.cause, row.effect)]
    )
    queries().delete_other_relationships(connection, chunk_ids=list(contents), ids=list(rows))
    queries().add_relationships(
        connection,
        extractor=extraction.extractor,
        version=extraction.version,
        tenants=[note.tenant] * len(rows),
        notes=[note.note_id] * len(rows),
        **_columns(list(rows.values())),
    )
    return len(rows)


def complete_pending(
    connection: Connection, part: GraphPart, note_ids: Sequence[UUID]
) -> list[UUID]:
    """Remove notes from the queue of a part; return those that were in it."""
    rows = queries().complete_pending_graph(connection, part=part, note_ids=list(note_ids))
    return [row.note_id for row in rows]


def forget_orphans(connection: Connection) -> None:
    """Delete the entities that nothing names, of tenants whose notes have all been read."""
    queries().forget_orphans(connection)


def count_gaps(connection: Connection, part: GraphPart, window: TimeWindow) -> GraphGaps:
    """Count the gaps of a part of the graph in the notes of a time window."""
    row = queries().count_graph_gaps(
        connection, part=part, month_start=window.start, month_end=window.end
    )
    return GraphGaps(*row)


@dataclass(frozen=True, slots=True)
class _Entity:
    """A row of `entities`, without its tenant."""

    id: UUID
    kind: EntityKind
    key: str
    name: str


@dataclass(frozen=True, slots=True)
class _StatementRow:
    """A causal statement and its two events."""

    statement_id: UUID
    chunk_id: UUID
    cause: _Entity
    effect: _Entity
    statement: CausalStatement


def _entity(
    tenant: str, kind: EntityKind, key: str, name: str, note_id: UUID | None = None
) -> _Entity:
    return _Entity(entity_id(tenant, kind, key, note_id), kind, key, name)


def _event(note: NoteToRead, content: str, span: Span) -> _Entity:
    name = " ".join(content[span.start : span.end].split())[:NAME_CHARS]
    key = event_key(content, span)
    return _entity(note.tenant, EntityKind.EVENT, key, name, note.note_id)


def _row(
    note: NoteToRead, chunk_id: UUID, content: str, statement: CausalStatement
) -> _StatementRow | None:
    """Return the row of a statement; None if an event would be the cause of itself."""
    cause, effect = (_event(note, content, span) for span in (statement.cause, statement.effect))
    if cause.id == effect.id:
        return None
    spans = (statement.marker, statement.cause, statement.effect)
    place = ".".join(f"{span.start}-{span.end}" for span in spans)
    own = uuid5(_STATEMENTS, f"{chunk_id}.{statement.relation}.{place}")
    return _StatementRow(own, chunk_id, cause, effect, statement)


def _columns(rows: Sequence[_StatementRow]) -> dict[str, list[object]]:
    found = [row.statement for row in rows]
    return {
        "ids": [row.statement_id for row in rows],
        "sources": [row.cause.id for row in rows],
        "targets": [row.effect.id for row in rows],
        "chunks": [row.chunk_id for row in rows],
        "types": [item.relation for item in found],
        "confidences": [item.confidence for item in found],
        "markers": [item.marker_name for item in found],
        "marker_starts": [item.marker.start for item in found],
        "marker_ends": [item.marker.end for item in found],
        "cause_starts": [item.cause.start for item in found],
        "cause_ends": [item.cause.end for item in found],
        "effect_starts": [item.effect.start for item in found],
        "effect_ends": [item.effect.end for item in found],
    }


def _add_entities(connection: Connection, tenant: str, found: Sequence[_Entity]) -> None:
    """Store entities, and keep them until commit.

    The first attempt waits for a concurrent deletion of an entity with its last note. The entity is
    then missing, so there is a second attempt.
    """
    # In a fixed order, so that two runs do not deadlock.
    missing = {entity.id: entity for entity in sorted(found, key=lambda item: item.id)}
    while missing:
        items = list(missing.values())
        ids = {"tenants": [tenant] * len(items), "ids": [item.id for item in items]}
        queries().add_entities(
            connection,
            kinds=[item.kind for item in items],
            keys=[item.key for item in items],
            names=[item.name for item in items],
            **ids,
        )
        for row in queries().keep_entities(connection, **ids):
            del missing[row.id]
