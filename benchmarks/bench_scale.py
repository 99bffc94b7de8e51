"""How costs grow with the corpus: an index of each size on a server of its own.

    python -m benchmarks.bench_scale [--chunks 10000 100000 1000000] [--home FOLDER]
        [--warm-up N] [--markdown FILE]

The rows are synthetic and written straight into the tables, with their triggers and indexes; the
embedder is a look-up. Every size is measured in a process of its own, after a restart of the
server, which fits its memory to the data. 10,000 and 100,000 chunks take ten minutes, a million
some hours and 12 GB; a folder given as home keeps the indexes for the next run. Times are of this
machine: compare the rows with each other.
"""

import argparse
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import psutil

from benchmarks.corpus import MODEL, Corpus, StoredEmbedder
from benchmarks.costs import Cost, Meter
from benchmarks.homes import home_folder
from benchmarks.memory import peak_memory_mb
from benchmarks.recall import recall
from benchmarks.tables import Table, markdown, show
from rag_resources.cli.output import note
from rag_resources.core.configuration import RetrievalConfig, Strategy
from rag_resources.core.evaluation import percentiles
from rag_resources.database.migrations import migrate
from rag_resources.database.pool import Database
from rag_resources.database.server import EmbeddedServer
from rag_resources.retrieval.pipeline import RetrievalPipeline

CLIENTS = 8
WARM_UP = 100
QUESTIONS = 400
RECALL_QUESTIONS = 100
HYBRID = RetrievalConfig(model=MODEL.name, strategy=Strategy.HYBRID)
SETTINGS = ("shared_buffers", "maintenance_work_mem")
COLUMNS = [
    *("chunks", "rows, s", "HNSW, s", "p50, ms", "p95, ms", f"{CLIENTS} clients, questions/s"),
    *("recall@10", "server, MB", "client, MB", "disk, MB", "HNSW, MB", *SETTINGS),
]


@dataclass(frozen=True)
class Size:
    """The costs and the performance of an index of one size.

    Attributes:
        chunks: How many.
        load: Costs by step; None if the index was there.
        latencies_ms: One client.
        rate: Questions a second of all clients together.
        recall: Of the ten exact nearest chunks.
        server_mb: Memory of all server processes; shared memory counts once.
        client_mb: The largest memory of this process.
        disk_mb: Of the database, and of its HNSW indexes alone.
        settings: Of the server.
    """

    chunks: int
    load: dict[str, Cost] | None
    latencies_ms: Sequence[float]
    rate: float
    recall: float
    server_mb: float
    client_mb: float
    disk_mb: tuple[float, float]
    settings: dict[str, str]

    def row(self) -> list[str]:
        """Return the row of the table."""
        found = percentiles(self.latencies_ms)
        loaded = [
            f"{self.load[step].wall_s:.0f}" if self.load else "–"
            for step in ("rows", "vector indexes")
        ]
        return [
            f"{self.chunks:,}",
            *loaded,
            f"{found.p50_ms:.1f}",
            f"{found.p95_ms:.1f}",
            f"{self.rate:.0f}",
            f"{self.recall:.3f}",
            f"{self.server_mb:.0f}",
            f"{self.client_mb:.0f}",
            *(f"{size:.0f}" for size in self.disk_mb),
            *self.settings.values(),
        ]


def measure_size(home: Path, chunks: int, warm_up: int) -> Size:
    """Make an index unless it is there, restart its server and measure after some questions."""
    corpus = Corpus()
    home.mkdir(exist_ok=True, parents=True)
    home.chmod(0o755)  # or a root's server keeps its data elsewhere
    server = EmbeddedServer(home)
    server.up()
    try:
        load = make(server, corpus, chunks)
        server.down()
        server.up()
        with Database(server.dsn("bench")) as database:
            pipeline = RetrievalPipeline(
                database,
                embedder=lambda _: StoredEmbedder(corpus),
                tenant="default",
            )
            latencies_ms = ask(pipeline, corpus.questions(warm_up + QUESTIONS, stream=1))
            rate = throughput(pipeline, corpus.questions(QUESTIONS, stream=2))
            memory_mb = server_memory_mb(server)
            found = recall(database, corpus.question_vectors[:RECALL_QUESTIONS])
            disk_mb, settings = looked_up(database)
        return Size(
            chunks,
            load,
            latencies_ms[warm_up:],
            rate,
            found,
            memory_mb,
            peak_memory_mb(),
            disk_mb,
            settings,
        )
    finally:
        server.down()


def make(server: EmbeddedServer, corpus: Corpus, chunks: int) -> dict[str, Cost] | None:
    """Fill the database and return the cost; None if it was already full."""
    server.ensure_database("bench")
    migrate(server.dsn("bench"))
    meter = Meter(server)
    with Database(server.dsn("bench")) as database:
        corpus.load(database, chunks, meter.measure)
    return meter.costs or None


def ask(pipeline: RetrievalPipeline, questions: Sequence[str]) -> list[float]:
    """Return the milliseconds of each question of one client."""
    return [pipeline.retrieve(question, HYBRID).latency_ms for question in questions]


def throughput(pipeline: RetrievalPipeline, questions: Sequence[str]) -> float:
    """Return how many questions a second all clients get answered."""
    failed = threading.Event()

    def retrieve(question: str) -> None:
        if pipeline.retrieve(question, HYBRID).degraded:
            failed.set()

    with ThreadPoolExecutor(CLIENTS) as clients:
        list(clients.map(retrieve, questions[: len(questions) // 4]))
        started = time.perf_counter()
        list(clients.map(retrieve, questions))
        elapsed_s = time.perf_counter() - started
    if failed.is_set():
        raise SystemExit("an answer was degraded: the machine is too busy to measure")
    return len(questions) / elapsed_s


def server_memory_mb(server: EmbeddedServer) -> float:
    """Return the memory of all processes of the server; what they share counts once."""
    pid = server.status().pid
    postmaster = psutil.Process(pid)
    total = 0
    for process in (postmaster, *postmaster.children()):
        with suppress(psutil.NoSuchProcess):  # A background worker that has ended meanwhile.
            total += process.memory_full_info().pss
    return total / 2**20


def looked_up(database: Database) -> tuple[tuple[float, float], dict[str, str]]:
    """Return the megabytes of the database and of its HNSW indexes, and the settings."""
    with database.transaction() as connection:
        row = connection.execute(
            "SELECT pg_database_size(current_database()) / 2^20 AS whole, "
            "sum(pg_relation_size(indexrelid)) / 2^20 AS hnsw "
            "FROM pg_stat_user_indexes WHERE indexrelname LIKE '%%_hnsw'"
        ).fetchone()
        settings = {
            name: connection.execute("SELECT current_setting(%s)", (name,)).fetchone()[0]
            for name in SETTINGS
        }
    return (float(row.whole), float(row.hnsw)), settings


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--home", type=Path, help="keeps the indexes for the next run")
    parser.add_argument("--warm-up", type=int, default=WARM_UP, help="questions before")
    parser.add_argument("--markdown", type=Path, help="file to write the table to")
    asked = parser.parse_args()
    with ExitStack() as stack:
        home = stack.enter_context(home_folder(asked.home))
        sizes: list[Size] = []
        for chunks in asked.chunks:
            size = (home / str(chunks), chunks, asked.warm_up)
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
                sizes.append(process.submit(measure_size, *size).result())
            note(f"{chunks:,} chunks")
    tables = [Table("What grows how", COLUMNS, [size.row() for size in sizes])]
    show(tables)
    if asked.markdown:
        asked.markdown.write_text(markdown(tables), "utf-8")


if __name__ == "__main__":
    main()
