"""Brain Sync RAG by its public pieces: notes in, passages out, one of three configurations."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from uuid import UUID

from benchmarks.peers.contender import ALIKE, OURS, Search, Setup, count_texts
from benchmarks.peers.workload import LookedUpVectors
from rag_resources.configurations import DEFAULT_CONFIGURATION, load_configurations
from rag_resources.core.configuration import ChunkingConfig, with_overrides
from rag_resources.core.retrievers import VectorKind
from rag_resources.core.types import ModelInfo, NoteRecord, TimeWindow, Vectors
from rag_resources.database.migrations import migrate
from rag_resources.database.pool import Database
from rag_resources.indexing.chunk import chunk_window
from rag_resources.indexing.embed import embed_chunks
from rag_resources.ingestion.ingest import ingest
from rag_resources.retrieval.pipeline import RetrievalPipeline
from rag_resources.settings import load_settings
from rag_resources.store.chunks import update_statistics
from rag_resources.store.models import register_model
from rag_resources.store.vector_indexes import ensure_vector_indexes

EVERYTHING = TimeWindow(datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))
SOURCE = "bench"
TENANT = "default"
CONFIGURATIONS: dict[str, tuple[str, dict[str, object]]] = {
    OURS: ("hybrid_weighted", {}),
    ALIKE: ("hybrid_weighted", {"contextual": False, "fusion": {"method": "scaled"}}),
}
"""A configuration of the product and what is changed of it; the default one for other names."""


class LookUpEmbedder:
    """Implements `Embedder` by looking up."""

    def __init__(self, info: ModelInfo, vectors: LookedUpVectors) -> None:
        self.info = info
        self._vectors = vectors

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Look up passages."""
        return self._vectors.passages(texts)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Look up questions."""
        return self._vectors.questions(texts)

    def at_hand(self, texts: Sequence[str]) -> Vectors:
        """Look up questions, as a cache in memory does."""
        return self._vectors.questions(texts)


class BrainSync:
    """The product, without caches: a question asked again would cost next to nothing."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        migrate(setup.dsn)
        self._database = Database(setup.dsn).open()
        self._embedder = LookUpEmbedder(ModelInfo(**setup.workload.model), setup.workload.vectors)
        self._settings = load_settings(rag_home=setup.folder)
        model = self._embedder.info.name
        self._pipeline = RetrievalPipeline(
            self._database, embedder=lambda _: self._embedder, tenant=TENANT
        )
        name, changes = CONFIGURATIONS.get(setup.contender, (DEFAULT_CONFIGURATION, {}))
        found = load_configurations(self._settings.configuration_folders)[name]
        self._config = with_overrides(found.retrieval, {"model": model, **changes})
        kinds = {VectorKind.CHUNK} | self._config.vector_kinds - {VectorKind.NOTE}
        with self._database.transaction() as connection:
            register_model(connection, self._embedder.info, kinds)

    def ingest(self) -> None:
        """Ingest, chunk, embed and index, as the assets do."""
        ingest(self._database, self._records(), tenant=TENANT, source=SOURCE)
        chunk_window(self._database, EVERYTHING, ChunkingConfig())
        with self._database.transaction() as connection:
            update_statistics(connection)
        embed_chunks(self._database, self._embedder, EVERYTHING)
        ensure_vector_indexes(self._database, self._embedder.info)

    def client(self) -> Search:
        """Clients share a pipeline, which is made for that."""
        pipeline, config = self._pipeline, self._config
        notes = self._external_ids()

        def search(question: str, results: int) -> list[str]:
            response = pipeline.retrieve(question, config, top_k=results)
            if response.error or response.degraded:
                raise RuntimeError(f"answered in part: {response.degraded}")
            return [notes[result.note_id] for result in response.results]

        return search

    def stored(self) -> Counter[str]:
        """A chunk counts once it has its vectors."""
        table = "chunks JOIN vectors ON vectors.kind = 'chunk' AND vectors.chunk_id = chunks.id"
        return count_texts(self._setup.dsn, table, "chunks.content")

    def close(self) -> None:
        """Close the pool."""
        self._database.close()

    def _records(self) -> Iterator[NoteRecord]:
        for note in self._setup.workload.notes:
            yield NoteRecord(
                note.external_id, note.title, note.content, datetime.fromisoformat(note.created_at)
            )

    def _external_ids(self) -> dict[UUID, str]:
        with self._database.transaction() as connection:
            return dict(connection.execute("SELECT id, external_id FROM notes").fetchall())


def open_contender(setup: Setup) -> BrainSync:
    """Open the product on a database."""
    return BrainSync(setup)
