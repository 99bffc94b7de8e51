"""Indexing: peak memory at two corpus sizes, and what it costs beside the embedding model.

    python -m tests.benchmarks.bench_indexing [notes]

Memory is measured in a child process per size, over generated notes and a fast embedder; the share
of the model over the sample notes with the real one. Compare the ratios, not the times.
"""

import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rag_resources.core.configuration import ChunkingConfig
from rag_resources.core.types import ModelInfo, NoteRecord, TimeWindow, Vectors
from rag_resources.database.locate import embedded_server, open_database
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
from tests.embedders import HashEmbedder

START = datetime(2024, 1, 1, tzinfo=UTC)
EVERYTHING = TimeWindow(START - timedelta(days=3650), START + timedelta(days=3650))
WORDS_PER_NOTE = 300


class ForgetfulEmbedder(HashEmbedder):
    """Does not keep the texts it saw: they would be most of the memory measured."""

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Embed and forget the texts."""
        vectors = super().embed_passages(texts)
        self.texts.clear()
        return vectors


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


def generated_notes(count: int) -> Iterator[NoteRecord]:
    """Yield notes of Zipf-distributed words, the same ones every time."""
    rng = random.Random(7)
    vocabulary = [f"palabra{rank}" for rank in range(20_000)]
    weights = [1 / (rank + 1) for rank in range(len(vocabulary))]
    for number in range(count):
        words = rng.choices(vocabulary, weights, k=WORDS_PER_NOTE)
        sentences = [" ".join(words[start : start + 12]) for start in range(0, len(words), 12)]
        content = ". ".join(sentence.capitalize() for sentence in sentences) + "."
        yield NoteRecord(f"n{number}", f"Nota {number}", content, START + timedelta(minutes=number))


def index(
    database: Database, records: Iterator[NoteRecord], embedder: Embedder
) -> dict[str, float]:
    """Do all of indexing; returns seconds by stage."""
    seconds: dict[str, float] = {}

    def timed(name: str, started: float) -> float:
        seconds[name] = time.perf_counter() - started
        return time.perf_counter()

    started = time.perf_counter()
    ingest(database, records, tenant="default", source="bench")
    started = timed("ingest", started)
    with database.transaction() as connection:
        register_model(connection, embedder.info, embeds_chunks=True)
    chunk_window(database, EVERYTHING, ChunkingConfig())
    with database.transaction() as connection:
        refresh_statistics(connection)
    started = timed("chunk", started)
    embed_chunks(database, embedder, EVERYTHING)
    started = timed("embed", started)
    ensure_vector_indexes(database, embedder.info, min_rows=1)
    timed("index", started)
    return seconds


def measure_size(count: int) -> None:
    """Index generated notes and print the peak memory of this process; run in a child."""
    with tempfile.TemporaryDirectory() as home:
        Path(home).chmod(0o755)  # or a root's server keeps its data elsewhere
        settings = load_settings(rag_home=Path(home))
        with open_database(settings) as database:
            seconds = index(database, generated_notes(count), ForgetfulEmbedder("bench", 384))
        embedded_server(settings).down()
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    sys.stdout.write(json.dumps({"notes": count, "peak_mb": peak_mb, "seconds": seconds}) + "\n")


def measure_sample() -> None:
    """Index the sample with the real models and print the model's share of the time."""
    with tempfile.TemporaryDirectory() as home:
        Path(home).chmod(0o755)  # or a root's server keeps its data elsewhere
        settings = load_settings(rag_home=Path(home))
        with open_database(settings) as database:
            for model in settings.embedding_models:
                embedder = TimedEmbedder(build_embedder(model))
                embedder.embed_queries(["carga del modelo"])
                started = time.perf_counter()
                index(database, iter_source(SAMPLE / "notes"), embedder)
                total = time.perf_counter() - started
                beside = (total - embedder.seconds) / embedder.seconds
                sys.stdout.write(
                    f"{model}: {total:.1f} s, of which the model {embedder.seconds:.1f} s; "
                    f"everything else is {beside:.0%} of the model's time\n"
                )
        embedded_server(settings).down()
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    sys.stdout.write(f"peak memory with both models: {peak_mb:.0f} MB\n")


def main() -> None:
    """Run everything, or one size if it is given."""
    if len(sys.argv) > 1:
        measure_size(int(sys.argv[1]))
        return
    for count in (1_000, 10_000):
        subprocess.run([sys.executable, "-m", __spec__.name, str(count)], check=True)
    measure_sample()


if __name__ == "__main__":
    main()
