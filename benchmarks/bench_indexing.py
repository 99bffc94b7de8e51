"""The cost of indexing the sample notes with the real models, apart from the models themselves.

    python -m benchmarks.bench_indexing

Compare the ratios, not the times. What indexing costs at scale is `bench_migration`.
"""

import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.memory import peak_memory_mb
from rag_resources.core.configuration import ChunkingConfig
from rag_resources.core.retrievers import VectorKind
from rag_resources.core.types import ModelInfo, TimeWindow, Vectors
from rag_resources.database.locate import database_url, embedded_server, open_database
from rag_resources.database.migrations import migrate
from rag_resources.database.pool import Database
from rag_resources.indexing.chunk import chunk_window
from rag_resources.indexing.embed import embed_chunks
from rag_resources.ingestion.ingest import ingest
from rag_resources.ingestion.sources import iter_source
from rag_resources.providers.protocols import Embedder
from rag_resources.providers.registry import build_embedder
from rag_resources.settings import SAMPLE, load_settings
from rag_resources.store.chunks import refresh_statistics
from rag_resources.store.models import register_model
from rag_resources.store.vector_indexes import ensure_vector_indexes

EVERYTHING = TimeWindow(datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC))


class TimedEmbedder:
    """Adds up the time spent in another embedder."""

    def __init__(self, inner: Embedder) -> None:
        self.inner = inner
        self.seconds = 0.0

    @property
    def info(self) -> ModelInfo:
        """The model behind it."""
        return self.inner.info

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Embed, timed."""
        started = time.perf_counter()
        vectors = self.inner.embed_passages(texts)
        self.seconds += time.perf_counter() - started
        return vectors

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Embed questions, untimed."""
        return self.inner.embed_queries(texts)


def index(database: Database, embedder: Embedder) -> None:
    """Index the whole sample."""
    ingest(database, iter_source(SAMPLE / "notes"), tenant="default", source="bench")
    with database.transaction() as connection:
        register_model(
            connection, embedder.info, {VectorKind.CHUNK, VectorKind.CONTEXTUAL, VectorKind.NOTE}
        )
    chunk_window(database, EVERYTHING, ChunkingConfig())
    with database.transaction() as connection:
        refresh_statistics(connection)
    embed_chunks(database, embedder, EVERYTHING)
    ensure_vector_indexes(database, embedder.info, min_rows=1)


def main() -> None:
    """Index the sample with every configured model and print the model's share of the time."""
    with tempfile.TemporaryDirectory() as home:
        Path(home).chmod(0o755)  # or a root's server keeps its data elsewhere
        settings = load_settings(rag_home=Path(home))
        migrate(database_url(settings))
        with closing(open_database(settings)) as database:
            for model in settings.embedding_models:
                embedder = TimedEmbedder(build_embedder(model))
                embedder.embed_queries(["carga del modelo"])
                started = time.perf_counter()
                index(database, embedder)
                total = time.perf_counter() - started
                beside = (total - embedder.seconds) / embedder.seconds
                sys.stdout.write(
                    f"{model}: {total:.1f} s, of which the model {embedder.seconds:.1f} s; "
                    f"everything else is {beside:.0%} of the model's time\n"
                )
        embedded_server(settings).down()
    sys.stdout.write(f"peak memory with all of them: {peak_memory_mb():.0f} MB\n")


if __name__ == "__main__":
    main()
