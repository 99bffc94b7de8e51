"""The half migrated notes of a crash test, and the only two states in which each may be seen."""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from rag_resources.core.configuration import ChunkingConfig
from rag_resources.core.retrievers import VectorKind
from rag_resources.core.types import Chunk, Note, NoteRecord, TimeWindow
from rag_resources.database.pool import Database
from rag_resources.indexing.chunk import build_chunks, chunk_window
from rag_resources.indexing.embed import embed_chunks, embed_notes
from rag_resources.ingestion.ingest import ingest
from rag_resources.store.chunks import refresh_statistics
from rag_resources.store.models import register_model
from rag_resources.store.notes import note_id
from tests.embedders import HashEmbedder

TENANT, SOURCE = "ana", "diario"
START = datetime(2025, 1, 1, tzinfo=UTC)
MONTHS = (
    TimeWindow(datetime(2025, 3, 1, tzinfo=UTC), datetime(2025, 4, 1, tzinfo=UTC)),
    TimeWindow(datetime(2025, 2, 1, tzinfo=UTC), datetime(2025, 3, 1, tzinfo=UTC)),
    TimeWindow(START, datetime(2025, 2, 1, tzinfo=UTC)),
)
"""Newest first, as they are backfilled."""

OLD = ChunkingConfig(max_tokens=48, overlap_tokens=0, min_tokens=0)
NEW = ChunkingConfig(max_tokens=32, overlap_tokens=8, min_tokens=4)
FIRST_MODEL, SECOND_MODEL = "first_model", "second_model"

_PLACES = "Orriols Paiporta Catarroja Teruel Vallibona Barracas Xàtiva Ruzafa Benimaclet Sagunto"
_NOTES = 240
_EDITED_EACH = 7
_NEW_EACH = 3

Spans = tuple[tuple[UUID, int, int, int], ...]


@dataclass(frozen=True)
class Expected:
    """The permitted states of a note.

    Attributes:
        word: A word that no other note has.
        old: Its chunks before the run: id, index, bounds; none for a note that is new.
        new: Those the run gives it.
    """

    word: str
    old: Spans
    new: Spans


def embedders() -> tuple[HashEmbedder, HashEmbedder]:
    """The model that the notes were indexed with before, and the one they migrate to."""
    return HashEmbedder(FIRST_MODEL), HashEmbedder(SECOND_MODEL, dimension=48)


def prepare(database: Database, seed: int) -> Mapping[UUID, Expected]:
    """Fill an empty database: most notes indexed the old way, some edited since, some new.

    Returns:
        The permitted states of each note from now on.
    """
    chance = random.Random(seed)
    before = [_record(number, chance) for number in range(_NOTES)]
    after = [
        _record(number, chance) if number % _EDITED_EACH == 0 else record
        for number, record in enumerate(before)
    ]
    indexed = [record for number, record in enumerate(before) if number % _NEW_EACH]
    first, _ = embedders()
    with database.transaction() as connection:
        register_model(
            connection, first.info, {VectorKind.CHUNK, VectorKind.CONTEXTUAL, VectorKind.NOTE}
        )
    ingest(database, indexed, tenant=TENANT, source=SOURCE)
    for month in MONTHS:
        embed_notes(database, first, month)
        chunk_window(database, month, OLD)
        embed_chunks(database, first, month)
    with database.transaction() as connection:
        refresh_statistics(connection)
    ingest(database, after, tenant=TENANT, source=SOURCE)
    old = {record.external_id: record for record in indexed}
    return {
        note_id(TENANT, SOURCE, record.external_id): Expected(
            word=_word(number),
            old=_spans(old.get(record.external_id), OLD),
            new=_spans(record, NEW),
        )
        for number, record in enumerate(after)
    }


def _record(number: int, chance: random.Random) -> NoteRecord:
    places = _PLACES.split()
    sentences = [
        f"El día {number}-{chance.randrange(10_000)} fuimos a {chance.choice(places)} con Vera."
        for _ in range(chance.randint(5, 14))
    ]
    # In the first sentence, which every chunk's prefix repeats: whatever is cut keeps the word.
    text = f"Apunte {_word(number)} del cuaderno. " + " ".join(sentences)
    created_at = START + timedelta(hours=number * 9)
    return NoteRecord(str(number), "", text, created_at)


def _word(number: int) -> str:
    return f"clave{number:04}"


def _spans(record: NoteRecord | None, config: ChunkingConfig) -> Spans:
    if record is None:
        return ()
    identity = note_id(TENANT, SOURCE, record.external_id)
    note = Note(identity, record.title, record.content, record.created_at)
    return tuple(_span(chunk) for chunk in build_chunks(note, config))


def _span(chunk: Chunk) -> tuple[UUID, int, int, int]:
    return (chunk.chunk_id, chunk.chunk_index, chunk.start_char, chunk.end_char)
