"""Retrieval: the pipeline against the bare SQL it sends.

    python -m benchmarks.bench_retrieval [--chunks N] [--home FOLDER]

The index is synthetic and the embedder a look-up, so that what is measured is ours. Every figure
that has a target is a ratio of one run or far from its limit; compare those, not the times. A
folder given as home keeps the index for the next run.
"""

import argparse
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import psycopg
from pgvector.psycopg import register_vector
from psycopg import sql

from benchmarks.corpus import MODEL, Corpus, StoredEmbedder
from benchmarks.homes import running_server
from benchmarks.targets import report
from rag_resources.core.configuration import RetrievalConfig, Strategy
from rag_resources.core.evaluation import percentiles
from rag_resources.core.types import RetrievalResponse
from rag_resources.database.connection import LimitedCursor, LimitedRawCursor
from rag_resources.database.migrations import migrate
from rag_resources.database.pool import Database
from rag_resources.database.server import EmbeddedServer
from rag_resources.retrieval.cache import build_caches
from rag_resources.retrieval.pipeline import RetrievalPipeline

CLIENTS = 8
WARM_UP = 50
QUESTIONS = 400
MEMORY_STEPS = 10
HYBRID = RetrievalConfig(model=MODEL.name, strategy=Strategy.HYBRID)

Bare = psycopg.Connection[tuple[Any, ...]]


@dataclass(frozen=True)
class Statement:
    """SQL as the pipeline sent it."""

    text: str
    parameters: Any


@dataclass(frozen=True)
class Index:
    """A database with a synthetic index, and pipelines over it.

    Attributes:
        pipeline: Without caches.
        cached: With the product's.
    """

    dsn: str
    database: Database
    pipeline: RetrievalPipeline
    cached: RetrievalPipeline

    def connect(self) -> Bare:
        """Return a connection outside the pool, with the product's session settings."""
        connection = psycopg.connect(self.dsn, autocommit=True)
        register_vector(connection)
        with self.database.transaction() as own:
            changed = own.execute(
                "SELECT name, setting FROM pg_settings WHERE source IN ('session', 'client')"
            ).fetchall()
        for name, setting in changed:
            connection.execute("SELECT set_config(%s, %s, false)", (name, setting))
        return connection


@contextmanager
def recording() -> Iterator[list[Statement]]:
    """Collect what the pipeline asks of the database, without the time limits around it."""
    sent: list[Statement] = []
    usual = {kind: kind.execute for kind in (LimitedCursor, LimitedRawCursor)}

    def recorded(cursor: Any, query: Any, params: Any = None, **options: Any) -> Any:
        text = query.as_string(cursor) if isinstance(query, sql.Composable) else query
        sent.append(Statement(text, params))
        return usual[type(cursor)](cursor, query, params, **options)

    for kind in usual:
        setattr(kind, "execute", recorded)  # noqa: B010 -- mypy knows the other spelling as wrong
    try:
        yield sent
    finally:
        for kind, execute in usual.items():
            setattr(kind, "execute", execute)  # noqa: B010


def statements_of(
    pipeline: RetrievalPipeline, strategy: Strategy, questions: Sequence[str]
) -> list[list[Statement]]:
    """Return what the pipeline sends for each question, once it has planned the first."""
    config = HYBRID.model_copy(update={"strategy": strategy})
    pipeline.retrieve(questions[0], config)
    sent_by_question = []
    for question in questions:
        with recording() as sent:
            pipeline.retrieve(question, config)
        sent_by_question.append(sent)
    return sent_by_question


def searches_of(connection: Bare, sent_by_question: list[list[Statement]]) -> list[Statement]:
    """Return the search among each question's statements: the one that takes longest."""
    seconds: dict[str, float] = defaultdict(float)
    for statement in (each for sent in sent_by_question for each in sent):
        seconds[statement.text] += timed(partial(run, connection, statement))
    search = max(seconds, key=lambda text: seconds[text])
    return [next(each for each in sent if each.text == search) for sent in sent_by_question]


def run(connection: Bare, statement: Statement) -> None:
    """Run a statement and fetch what it returns, as the pipeline does."""
    numbered = isinstance(statement.parameters, list)
    cursor = psycopg.RawCursor(connection) if numbered else connection.cursor()
    cursor.execute(statement.text, statement.parameters, binary=numbered)
    cursor.fetchall()


def timed(function: Callable[[], object]) -> float:
    """Return how many seconds a call takes."""
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


def interleaved(*series: Sequence[Callable[[], object]]) -> list[list[float]]:
    """Time several series of calls in turns, so that a busy moment affects all of them.

    Returns:
        Milliseconds of each series, without those of the warm-up.
    """
    taken: list[list[float]] = [[] for _ in series]
    for position, calls in enumerate(zip(*series, strict=True)):
        for offset in range(len(series)):
            which = (position + offset) % len(series)
            elapsed_ms = timed(calls[which]) * 1000
            if position >= WARM_UP:
                taken[which].append(elapsed_ms)
    return taken


def measure_latency(index: Index, questions: Sequence[str]) -> None:
    """One client: the pipeline against its searches alone."""
    with index.connect() as connection:
        alone = [
            searches_of(connection, statements_of(index.pipeline, strategy, questions))
            for strategy in (Strategy.SEMANTIC, Strategy.FULLTEXT)
        ]
        whole, semantic, fulltext = interleaved(
            [partial(index.pipeline.retrieve, question, HYBRID) for question in questions],
            *[[partial(run, connection, statement) for statement in each] for each in alone],
        )
    ours, *others = (percentiles(each) for each in (whole, semantic, fulltext))
    report(
        f"one client: p50 {ours.p50_ms:.1f} ms; its searches alone by psycopg: "
        f"semantic {others[0].p50_ms:.1f} ms, fulltext {others[1].p50_ms:.1f} ms"
    )
    ratio = ours.p50_ms / max(other.p50_ms for other in others)
    report(f"pipeline / slower search: {ratio:.2f} (at most 1.5)", met=ratio <= 1.5)
    report(f"one client: p95 {ours.p95_ms:.1f} ms (under 50)", met=ours.p95_ms < 50)


def measure_throughput(index: Index, questions: Sequence[str]) -> None:
    """Eight clients: the pipeline against all of its SQL, by as many bare connections."""
    sent_by_question = statements_of(index.pipeline, Strategy.HYBRID, questions)
    own = threading.local()
    seconds = {"pipeline": 0.0, "psycopg": 0.0}
    latencies_ms: list[float] = []
    failures: list[str] = []

    def replay(sent: Sequence[Statement]) -> None:
        with own.connection.transaction():
            for statement in sent:
                run(own.connection, statement)

    def retrieve(question: str) -> None:
        response: RetrievalResponse = index.pipeline.retrieve(question, HYBRID)
        latencies_ms.append(response.latency_ms)
        failures.extend(response.degraded)

    with ExitStack() as stack:
        connections = iter([stack.enter_context(index.connect()) for _ in range(CLIENTS)])
        clients = stack.enter_context(
            ThreadPoolExecutor(
                CLIENTS, initializer=lambda: setattr(own, "connection", next(connections))
            )
        )
        for warm in (True, False, False):
            replayed = timed(lambda: list(clients.map(replay, sent_by_question)))
            retrieved = timed(lambda: list(clients.map(retrieve, questions)))
            if warm:
                latencies_ms.clear()
                continue
            seconds["psycopg"] += replayed
            seconds["pipeline"] += retrieved
    ratio = seconds["psycopg"] / seconds["pipeline"]
    rate = 2 * len(questions) / seconds["pipeline"]
    ours = percentiles(latencies_ms)
    report(f"{CLIENTS} clients: {len(failures)} failures (none)", met=not failures)
    report(
        f"{CLIENTS} clients: {rate:.0f} questions/s, p50 {ours.p50_ms:.1f} ms, "
        f"p95 {ours.p95_ms:.1f} ms, longest {max(latencies_ms):.0f} ms (at most 2,200)",
        met=max(latencies_ms) <= 2200,
    )
    report(f"throughput / the same SQL by psycopg: {ratio:.2f} (at least 0.8)", met=ratio >= 0.8)


def measure_cache(index: Index, questions: Sequence[str]) -> None:
    """Measure a repeated question, answered from the cache."""
    for question in questions:
        index.cached.retrieve(question, HYBRID)
    answers = [index.cached.retrieve(question, HYBRID) for question in questions]
    ours = percentiles([answer.latency_ms for answer in answers])
    kept = sum(answer.cached for answer in answers) / len(answers)
    report(f"asked again: {kept:.0%} from the cache (all)", met=kept == 1)
    report(
        f"asked again: p50 {ours.p50_ms:.2f} ms, p95 {ours.p95_ms:.2f} ms (p50 under 1)",
        met=ours.p50_ms < 1,
    )


def measure_memory(index: Index, questions: Sequence[str]) -> None:
    """Measure resident memory over many different questions; caches are full half-way."""
    process = psutil.Process()
    step = max(1, len(questions) // MEMORY_STEPS)
    resident_mb: list[float] = []
    for number, question in enumerate(questions, start=1):
        index.cached.retrieve(question, HYBRID)
        if number % step == 0:
            resident_mb.append(process.memory_info().rss / 1024**2)
    shown = " ".join(f"{value:.0f}" for value in resident_mb)
    growth = resident_mb[-1] / resident_mb[len(resident_mb) // 2 - 1]
    report(f"memory every {step:,} questions, MB: {shown}")
    report(f"memory, second half: {growth:.3f} (at most 1.02)", met=growth <= 1.02)


@contextmanager
def opened(server: EmbeddedServer, corpus: Corpus, chunks: int) -> Iterator[Index]:
    """Open an index of a size, made unless it is there."""
    name = f"bench_{chunks}"
    server.ensure_database(name)
    migrate(server.dsn(name))
    with Database(server.dsn(name)) as database:
        report(f"{chunks:,} chunks: {timed(lambda: corpus.load(database, chunks)):.0f} s to make")
        embedder = StoredEmbedder(corpus)
        pipeline, cached = (
            RetrievalPipeline(
                database,
                embedder=lambda _: embedder,
                tenant="default",
                caches=caches,
            )
            for caches in (None, build_caches(None))
        )
        yield Index(server.dsn(name), database, pipeline, cached)


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--memory-questions", type=int, default=20_000)
    parser.add_argument("--home", type=Path, help="keeps the index for the next run")
    return parser.parse_args()


def main() -> None:
    """Measure and print."""
    asked = arguments()
    corpus = Corpus()
    with ExitStack() as stack:
        server = stack.enter_context(running_server(asked.home))
        index = stack.enter_context(opened(server, corpus, asked.chunks))
        measure_latency(index, corpus.questions(QUESTIONS, stream=1))
        measure_cache(index, corpus.questions(QUESTIONS, stream=2))
        measure_memory(index, corpus.questions(asked.memory_questions, stream=4))
        # Last: it leaves connections in the pool, among which one client would take turns.
        measure_throughput(index, corpus.questions(QUESTIONS, stream=5))


if __name__ == "__main__":
    main()
