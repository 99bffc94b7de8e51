"""The cost of a backfill of generated notes, and of later months.

    python -m benchmarks.bench_migration [--notes 10000 100000] [--home FOLDER]

Each size runs in a process and on a server of its own, over 24 months:

- the backfill by the functions of the product, newest month first, six months a run as Dagster does
  it, then the same again with nothing to do;
- one more month, into the live indexes: its cost against a rebuild's, recall and latency meanwhile.

Compare ratios; those of processor time hold on a busy machine, too. 10,000 and 100,000 notes take
about half an hour on two idle cores and 5 GB.
"""

import argparse
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context
from pathlib import Path

from psycopg import sql

from benchmarks.corpus import MODEL, MONTHS, Corpus, FastEmbedder, StoredEmbedder
from benchmarks.costs import Cost, Meter
from benchmarks.memory import peak_memory_mb
from benchmarks.recall import recall
from benchmarks.targets import report
from rag_resources.core.configuration import ChunkingConfig, RetrievalConfig, Strategy
from rag_resources.core.evaluation import percentiles
from rag_resources.core.retrievers import VectorKind
from rag_resources.core.types import TimeWindow
from rag_resources.database.migrations import migrate
from rag_resources.database.pool import Database
from rag_resources.database.server import EmbeddedServer
from rag_resources.indexing.chunk import chunk_window
from rag_resources.indexing.embed import embed_chunks
from rag_resources.ingestion.ingest import ingest
from rag_resources.retrieval.pipeline import RetrievalPipeline
from rag_resources.store.chunks import update_statistics
from rag_resources.store.models import register_model
from rag_resources.store.vector_indexes import MIN_ROWS, ensure_vector_indexes

MONTH = timedelta(days=30)
FIRST = datetime(2024, 1, 1, tzinfo=UTC)
EVERYTHING = TimeWindow(FIRST, FIRST + MONTHS * MONTH)
MONTHS_PER_RUN = 6
CONFIG = ChunkingConfig()
QUESTIONS = 200
INDEXES = [f"vectors_{MODEL.name}_{kind}_hnsw" for kind in ("chunk", "contextual")]

MOST_OF_FIRST = 0.02
MOST_GROWTH = 1.2
MOST_MEMORY_MB = 1200


@dataclass(frozen=True)
class Month:
    """The cost of adding one more month to a live index.

    Attributes:
        notes: Number of notes in the month.
        live: Cost of embedding them into the live indexes.
        rebuild: Cost of rebuilding both indexes concurrently.
        recall: Recall@10 before and afterwards.
        p95_ms: Latency of a retrieval before and meanwhile.
    """

    notes: int
    live: Cost
    rebuild: Cost
    recall: tuple[float, float]
    p95_ms: tuple[float, float]


@dataclass(frozen=True)
class Measured:
    """The costs of one size, by step."""

    notes: int
    ingest: Cost
    backfill: dict[str, Cost]
    rerun: dict[str, Cost]
    memory_mb: float
    month: Month


def window(number: int, months: int = 1) -> TimeWindow:
    """Return the window of some months, starting with the given one."""
    return TimeWindow(FIRST + number * MONTH, FIRST + (number + months) * MONTH)


def backfill(database: Database, embedder: FastEmbedder, meter: Meter, *, min_rows: int) -> None:
    """Process every month, newest first; the once-a-run work follows each run's months."""
    numbers = list(reversed(range(MONTHS)))
    for start in range(0, MONTHS, MONTHS_PER_RUN):
        months = [window(number) for number in numbers[start : start + MONTHS_PER_RUN]]
        with meter.measure("chunks"):
            written = sum(chunk_window(database, month, CONFIG).chunks for month in months)
        with meter.measure("statistics"), database.transaction() as connection:
            update_statistics(connection, rewritten=written)
        with meter.measure("vectors"):
            for month in months:
                embed_chunks(database, embedder, month)
        with meter.measure("index build"):
            ensure_vector_indexes(database, embedder.info, min_rows=min_rows)


def measure_size(home: Path, notes: int) -> Measured:
    """Measure one size completely, in a separate process, whose memory is measured, too."""
    corpus = Corpus()
    embedder = FastEmbedder(corpus)
    with opened(home) as (server, database):
        loading, first, again = Meter(server), Meter(server), Meter(server)
        with loading.measure("notes"):
            ingest(
                database,
                corpus.records(notes, EVERYTHING, stream=1),
                tenant="default",
                source="bench",
            )
        with database.transaction() as connection:
            register_model(
                connection,
                embedder.info,
                {VectorKind.CHUNK, VectorKind.CONTEXTUAL, VectorKind.NOTE},
            )
        min_rows = min(MIN_ROWS, notes)  # a corpus that is smaller is indexed, too
        backfill(database, embedder, first, min_rows=min_rows)
        memory_mb = peak_memory_mb()
        backfill(database, embedder, again, min_rows=min_rows)
        month = measure_month(database, corpus, Meter(server), notes // MONTHS)
    return Measured(notes, loading.total(), first.costs, again.costs, memory_mb, month)


def measure_month(database: Database, corpus: Corpus, meter: Meter, notes: int) -> Month:
    """Add a month: the first half of its notes undisturbed, the second half beside a reader."""
    embedder = FastEmbedder(corpus)
    month = window(MONTHS)
    middle = month.start + MONTH / 2
    ingest(database, corpus.records(notes, month, stream=2), tenant="default", source="bench")
    chunk_window(database, month, CONFIG)
    recall_before = recall(database, corpus.question_vectors[:QUESTIONS])
    with reading(database, corpus) as latencies_ms:
        time.sleep(10)
    before_ms = percentiles(latencies_ms).p95_ms
    with meter.measure("live"):
        done = embed_chunks(database, embedder, TimeWindow(middle, month.end)).notes
    with reading(database, corpus) as latencies_ms:
        embed_chunks(database, embedder, month)
    recall_after = recall(database, corpus.question_vectors[:QUESTIONS])
    with meter.measure("rebuild"), database.autocommit() as connection:
        for name in INDEXES:
            connection.execute(
                sql.SQL("REINDEX INDEX CONCURRENTLY {}").format(sql.Identifier(name))
            )
    return Month(
        done,
        meter.costs["live"],
        meter.costs["rebuild"],
        (recall_before, recall_after),
        (before_ms, percentiles(latencies_ms).p95_ms),
    )


@contextmanager
def reading(database: Database, corpus: Corpus) -> Iterator[list[float]]:
    """Retrieve continuously in a separate thread and collect the latencies in ms."""
    embedder = StoredEmbedder(corpus)
    pipeline = RetrievalPipeline(database, embedder=lambda _: embedder, tenant="default")
    config = RetrievalConfig(model=MODEL.name, strategy=Strategy.HYBRID)
    questions = corpus.questions(QUESTIONS, stream=6)
    latencies_ms: list[float] = []
    stopped = threading.Event()

    def retrieve() -> None:
        while not stopped.is_set():
            question = questions[len(latencies_ms) % QUESTIONS]
            latencies_ms.append(pipeline.retrieve(question, config).latency_ms)

    thread = threading.Thread(target=retrieve, name="reader")
    thread.start()
    try:
        yield latencies_ms
    finally:
        stopped.set()
        thread.join()


@contextmanager
def opened(home: Path) -> Iterator[tuple[EmbeddedServer, Database]]:
    """Start a server with an empty migrated database."""
    home.mkdir(parents=True)
    home.chmod(0o755)  # or a root's server keeps its data elsewhere
    server = EmbeddedServer(home)
    server.up()
    try:
        server.ensure_database("bench")
        migrate(server.dsn("bench"))
        with Database(server.dsn("bench")) as database:
            yield server, database
    finally:
        server.down()


def report_costs(title: str, costs: dict[str, Cost], notes: int) -> None:
    """Print the costs of steps per note."""
    report(f"  {title}, ms per note (wall; processor of client, of server):")
    for name, cost in [*costs.items(), ("all", sum(costs.values(), start=Cost()))]:
        wall, client, server = (
            1000 * seconds / notes for seconds in (cost.wall_s, cost.client_s, cost.server_s)
        )
        report(f"    {name:<20} {wall:6.2f}; {client:5.2f}, {server:5.2f}")


def report_size(size: Measured) -> None:
    """Print what one size cost."""
    done, again = (sum(costs.values(), start=Cost()) for costs in (size.backfill, size.rerun))
    month = size.month
    report(f"{size.notes:,} notes (ingested in {size.ingest.wall_s:.0f} s)")
    report_costs("backfill", size.backfill, size.notes)
    report_costs("again", size.rerun, size.notes)
    share = again.wall_s / done.wall_s
    report(
        f"  again: {again.wall_s:.1f} s, {share:.1%} "
        f"({again.cpu_s / done.cpu_s:.1%} in processor time; at most {MOST_OF_FIRST:.0%})",
        met=share <= MOST_OF_FIRST,
    )
    report(f"  memory: {size.memory_mb:.0f} MB", met=size.memory_mb <= MOST_MEMORY_MB)
    report(
        f"  half a month more, {month.notes:,} notes, live: {month.live.wall_s:.1f} s; "
        f"a rebuild of the indexes: {month.rebuild.wall_s:.1f} s ("
        f"processor {month.live.cpu_s:.1f} and {month.rebuild.cpu_s:.1f} s)"
    )
    report(f"  recall@10 before {month.recall[0]:.3f}, after {month.recall[1]:.3f}")
    report(f"  p95 before {month.p95_ms[0]:.0f} ms, meanwhile {month.p95_ms[1]:.0f} ms")


def report_growth(small: Measured, large: Measured) -> None:
    """Print how the processor time per note grows with the corpus."""
    for name, cost in large.backfill.items():
        growth = cost.cpu_s / large.notes * small.notes / small.backfill[name].cpu_s
        report(f"  {name}: {growth:.2f} per note from {small.notes:,} to {large.notes:,} notes")
    whole = [
        sum(size.backfill.values(), start=Cost()).cpu_s / size.notes for size in (small, large)
    ]
    growth = whole[1] / whole[0]
    report(f"  all: {growth:.2f} (at most {MOST_GROWTH})", met=growth <= MOST_GROWTH)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--notes", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--home", type=Path, help="folder for the data; a temporary one by default")
    asked = parser.parse_args()
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=asked.home)))
        home.chmod(0o755)
        sizes: list[Measured] = []
        for notes in asked.notes:
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
                sizes.append(process.submit(measure_size, home / str(notes), notes).result())
            report_size(sizes[-1])
        if len(sizes) > 1:
            report_growth(sizes[0], sizes[-1])


if __name__ == "__main__":
    main()
