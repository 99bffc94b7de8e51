"""A small corpus in a real database, filled anew by every example, and the pipeline over it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from rag_resources.core.configuration import ChunkingConfig, RetrievalConfig
from rag_resources.core.filters import RetrievalFilters
from rag_resources.core.fusion_config import FusionConfig
from rag_resources.core.retrievers import RankedList, VectorKind
from rag_resources.core.text import content_sha256
from rag_resources.core.types import NoteRecord, RetrievalResponse, ScoredChunk, TimeWindow
from rag_resources.database.pool import Connection, Database
from rag_resources.indexing.chunk import ChunkReport, build_chunks, chunk_window
from rag_resources.indexing.embed import embed_chunks, embed_each, embed_notes
from rag_resources.indexing.embedding_queue import EmbedReport
from rag_resources.providers.protocols import Embedder, LanguageModel
from rag_resources.retrieval.cache import Caches
from rag_resources.retrieval.pipeline import RetrievalPipeline
from rag_resources.store.chunks import refresh_statistics, replace_chunks
from rag_resources.store.models import kinds_of, register_model
from rag_resources.store.notes import fetch_notes, note_id, upsert_notes
from rag_resources.store.search import (
    EmbeddedQuery,
    SearchedList,
    SearchRequest,
    read_facts,
    search,
)
from rag_resources.store.vectors import (
    OwnerText,
    Place,
    claim_queued,
    complete_pending,
    replace_vectors,
    select_texts,
)
from tests.embedders import HashEmbedder

ALWAYS = TimeWindow(datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC))
SMALL = ChunkingConfig(max_tokens=16, overlap_tokens=4, min_tokens=2)
START = datetime(2025, 1, 1, tzinfo=UTC)
SOURCE = "diario"
KINDS = (VectorKind.CHUNK, VectorKind.CONTEXTUAL, VectorKind.NOTE)
VECTOR_LISTS = (RankedList.SEMANTIC, RankedList.CONTEXTUAL)
ALL_LISTS = (*VECTOR_LISTS, RankedList.FULLTEXT, RankedList.NOTES)

GENEROUS_MS = 60_000.0
"""So long that a busy machine changes no answer."""


@dataclass(frozen=True)
class Draft:
    """A note and the state of its indexing.

    Attributes:
        state: `indexed`, `pending` (chunked, its chunks without vectors) or `new` (not chunked, its
            provisional chunk with vectors).
        expired: Whether it expired after all that.
    """

    text: str
    title: str = ""
    state: str = "indexed"
    tenant: str = "ana"
    expired: bool = False
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def is_visible(self, tenant: str = "ana") -> bool:
        """Whether a tenant may find it."""
        return self.tenant == tenant and not self.expired


def records(corpus: Sequence[Draft], tenant: str) -> list[NoteRecord]:
    """The notes of a tenant as a source gives them; their place is their external id and day."""
    return [
        NoteRecord(
            str(number),
            draft.title,
            draft.text,
            START + timedelta(days=number),
            draft.tags,
            draft.metadata,
        )
        for number, draft in enumerate(corpus)
        if draft.tenant == tenant
    ]


class Corpus:
    """A database with one embedding model, whose vectors are of chunks and of whole notes."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.embedder = HashEmbedder()
        with database.transaction() as connection:
            register_model(connection, self.embedder.info, KINDS)

    def fill(self, corpus: Sequence[Draft], config: ChunkingConfig = SMALL) -> list[UUID]:
        """Replace everything by these notes, each indexed as far as its state says.

        By the statements that indexing runs, in one transaction for speed.
        """
        numbers = {note_id(d.tenant, SOURCE, str(n)): n for n, d in enumerate(corpus)}
        with self.database.bulk() as connection:
            connection.execute("DELETE FROM notes")
            for tenant in sorted({draft.tenant for draft in corpus}):
                upsert_notes(connection, records(corpus, tenant), tenant=tenant, source=SOURCE)
            for note in fetch_notes(connection, numbers).values():
                if corpus[numbers[note.note_id]].state != "new":
                    cut = build_chunks(note, config)
                    replace_chunks(connection, {note.note_id: cut}, chunking_hash="x")
            self.embed(connection, [n for n in numbers if corpus[numbers[n]].state != "pending"])
            gone = [note for note, n in numbers.items() if corpus[n].expired]
            connection.execute("UPDATE notes SET expires_at = now() WHERE id = ANY(%s)", (gone,))
            refresh_statistics(connection)
        return list(numbers)

    def embed(self, connection: Connection, indexed: Sequence[UUID]) -> None:
        """Embed all notes as a whole, and the chunks of some."""
        name = self.embedder.info.name
        everything = claim_queued(connection, name, ALWAYS, skipped=[], batch_size=1000, whole=True)
        whole = select_texts(connection, [note.note_id for note in everything], whole=True)
        self.write(connection, whole, VectorKind.NOTE)
        chunks = select_texts(connection, indexed, whole=False)
        for kind in (VectorKind.CHUNK, VectorKind.CONTEXTUAL):
            self.write(connection, chunks, kind)
        if VectorKind.WINDOW not in kinds_of(connection, name):
            done = complete_pending(connection, name, indexed, chunks, vectors=0)
            assert len(done) == len(indexed)

    def write(self, connection: Connection, texts: Sequence[OwnerText], kind: VectorKind) -> None:
        """Make and store the vectors of one kind of chunks, or of notes."""
        made, _ = embed_each(
            self.embedder, {content_sha256(own.text(kind)): own.text(kind) for own in texts}
        )
        places = {own.owner: (Place(None, content_sha256(own.text(kind))),) for own in texts}
        replace_vectors(connection, self.embedder.info.name, kind, places, made)

    def index(self, config: ChunkingConfig) -> tuple[ChunkReport, EmbedReport, EmbedReport]:
        """Do everything that an indexing run does, after clearing the texts recorded so far."""
        self.embedder.texts.clear()
        reports = (
            chunk_window(self.database, ALWAYS, config),
            embed_chunks(self.database, self.embedder, ALWAYS),
            embed_notes(self.database, self.embedder, ALWAYS),
        )
        with self.database.bulk() as connection:
            refresh_statistics(connection)
        return reports

    def cut(self) -> None:
        """Make the windows of the chunks of all notes."""
        with self.database.transaction() as connection:
            register_model(connection, self.embedder.info, {VectorKind.WINDOW})
        embed_chunks(self.database, self.embedder, ALWAYS)

    def fetch(self, query: str, *parameters: object) -> list[Any]:
        """Rows of a statement."""
        with self.database.transaction() as connection:
            return connection.execute(query, parameters).fetchall()

    def pipeline(
        self,
        *,
        embedder: Embedder | None = None,
        language_model: LanguageModel | None = None,
        caches: Caches | None = None,
    ) -> RetrievalPipeline:
        """A new pipeline of Ana's with closed breakers and one embedder for every model."""
        chosen = embedder or self.embedder
        return RetrievalPipeline(
            self.database,
            embedder=lambda _: chosen,
            tenant="ana",
            language_model=language_model,
            caches=caches,
        )

    def ask(self, question: str, config: RetrievalConfig, **options: Any) -> RetrievalResponse:
        """What Ana's question finds, with a new pipeline."""
        return self.pipeline().retrieve(question, config, **{"deadline_ms": GENEROUS_MS} | options)

    def lists(
        self, question: str, *, pool: int = 500, threshold: float = 0.0
    ) -> dict[RankedList, list[tuple[UUID, UUID, float]]]:
        """Every list of Ana's question by chunk vectors or words: chunk, note and score."""
        return {
            name: [
                (own.chunk_id, own.note_id, own.score)
                for own in one_list(
                    self.database, self.embedder, question, name, pool=pool, threshold=threshold
                )
            ]
            for name in ALL_LISTS
        }


def one_list(
    database: Database,
    embedder: Embedder,
    question: str,
    name: RankedList,
    *,
    tenant: str = "ana",
    pool: int = 500,
    threshold: float = 0.0,
    filters: RetrievalFilters | None = None,
) -> tuple[ScoredChunk, ...]:
    """A list of a question alone: it keeps its own scores."""
    (vector,) = embedder.embed_queries([question])
    embedded = EmbeddedQuery(embedder.info, vector, threshold)
    searched = SearchedList(name, embedded=None if name is RankedList.FULLTEXT else embedded)
    request = only(searched, question, tenant=tenant, pool=pool, filters=filters)
    with database.transaction() as connection:
        return search(connection, request, read_facts(connection, tenant)).chunks


def only(
    searched: SearchedList,
    text: str = "",
    *,
    tenant: str,
    pool: int,
    filters: RetrievalFilters | None = None,
) -> SearchRequest:
    """A search of one list, which keeps its own scores."""
    return SearchRequest(
        tenant=tenant,
        filters=filters or RetrievalFilters(),
        texts=(text,),
        lists=(searched,),
        by_notes=searched.name is RankedList.NOTES,
        fusion=FusionConfig(),
        pool=pool,
        shown=pool,
    )
