"""Several runs that drain one queue of notes: how much faster, and what a claim costs.

    python -m tests.benchmarks.bench_drainers [--drainers 1 2 4 8] [--notes N] [--home FOLDER]

Each drainer is a process that embeds as a run of `embeddings/<model>` does. Its model sleeps
instead of computing, so that two cores serve them all: what is measured is claiming, reading and
writing. No note may be embedded twice. Then the cost of a claim, by how many notes others hold.
`queue_simulation` takes both figures to a thousand workers.
"""

import argparse
import multiprocessing
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from threading import Barrier

from rag_resources.core.types import TimeWindow, Vectors
from rag_resources.database.migrations import migrate
from rag_resources.database.pool import Connection, Database
from rag_resources.database.server import EmbeddedServer
from rag_resources.indexing.embed import BATCH_NOTES, embed_chunks
from rag_resources.store.queues import NoteQueue, claim_queued
from tests.benchmarks.corpus import CHUNKS_PER_NOTE, MODEL, Corpus
from tests.benchmarks.costs import Meter
from tests.benchmarks.homes import running_server
from tests.benchmarks.targets import report

VECTORS_PER_CHUNK = 2
SLEEP_S = 0.014
"""For a passage: the processor time of e5 (docs/measurements.md)."""

EVERYTHING = TimeWindow(datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC))
HELD = (0, 256, 1_024, 4_096, 16_384)
CLAIMS = 20
LINEAR = 0.9
LINEAR_UP_TO = 4

QUEUE_ALL = """
    INSERT INTO pending_vectors (model, kind, note_id, tenant_id)
    SELECT %(model)s, 'chunk', n.id, n.tenant_id FROM notes AS n
    ORDER BY n.created_at DESC, n.id LIMIT %(notes)s
    ON CONFLICT DO NOTHING"""
FORGET = """
    DELETE FROM chunk_embeddings AS e
    WHERE e.model = %(model)s AND e.chunk_id = ANY(ARRAY(
        SELECT c.id FROM chunks AS c
        WHERE c.note_id = ANY(ARRAY(
            SELECT p.note_id FROM pending_vectors AS p WHERE p.model = %(model)s
        ))
    ))"""


class SleepingEmbedder:
    """Takes as long as a model for every passage, without a processor."""

    info = MODEL

    def __init__(self, corpus: Corpus, sleep_s: float) -> None:
        self._corpus = corpus
        self._sleep_s = sleep_s

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Sleep, then derive a vector from each text."""
        time.sleep(self._sleep_s * len(texts))
        return self._corpus.embed(texts)

    embed_queries = embed_passages


@dataclass(frozen=True)
class Drained:
    """What one drainer did.

    Attributes:
        embedded: Texts given to the model.
        client_s: Processor time of its process.
    """

    notes: int
    embedded: int
    client_s: float


@dataclass(frozen=True)
class Round:
    """What some drainers did together.

    Attributes:
        client_ms: Processor time of the drainers, a note.
        server_ms: That of PostgreSQL.
    """

    drainers: int
    seconds: float
    notes: int
    embedded: int
    client_ms: float
    server_ms: float

    @property
    def notes_a_second(self) -> float:
        """Of all drainers together."""
        return self.notes / self.seconds


_start: Barrier


def _inherit(barrier: Barrier) -> None:
    global _start  # a barrier can only be inherited
    _start = barrier


def drain(url: str, sleep_s: float) -> Drained:
    """Embed whatever nobody else has claimed; in a process of its own."""
    embedder = SleepingEmbedder(Corpus(), sleep_s)
    embedder.embed_passages([""])
    with Database(url) as database:
        _start.wait()
        begun = time.process_time()
        found = embed_chunks(database, embedder, EVERYTHING)
    return Drained(found.notes, found.embedded, time.process_time() - begun)


def measure_round(server: EmbeddedServer, database: Database, drainers: int, notes: int) -> Round:
    """Queue the newest notes anew and let some drainers embed them."""
    with database.transaction() as connection:
        for statement in (QUEUE_ALL, FORGET):
            connection.execute(statement, {"model": MODEL.name, "notes": notes})
    with database.autocommit() as connection:
        connection.execute("VACUUM ANALYZE chunk_embeddings, pending_vectors")
    context = multiprocessing.get_context("forkserver")
    barrier = context.Barrier(drainers + 1)
    meter, url = Meter(server), server.dsn("rag")
    with ProcessPoolExecutor(
        drainers, context, initializer=_inherit, initargs=(barrier,)
    ) as processes:
        futures = [processes.submit(drain, url, SLEEP_S) for _ in range(drainers)]
        barrier.wait()
        with meter.measure("drain"):
            done = [future.result() for future in futures]
    cost = meter.costs["drain"]
    drained = sum(each.notes for each in done)
    client_s = sum(each.client_s for each in done)
    return Round(
        drainers,
        seconds=cost.wall_s,
        notes=drained,
        embedded=sum(each.embedded for each in done),
        client_ms=1000 * client_s / drained,
        server_ms=1000 * cost.server_s / drained,
    )


def measure_claims(database: Database, held: int) -> float:
    """Return the median milliseconds of a claim while another session holds some notes."""
    times = []
    with database.transaction() as holder:
        claim(holder, held)
        for _ in range(CLAIMS):
            with database.transaction() as connection:
                begun = time.perf_counter()
                claim(connection, BATCH_NOTES)
                times.append(time.perf_counter() - begun)
                connection.rollback()
        holder.rollback()
    return 1000 * median(times)


def claim(connection: Connection, notes: int) -> None:
    """Claim the newest notes."""
    if notes:
        claim_queued(
            connection,
            MODEL.name,
            EVERYTHING,
            queue=NoteQueue.EMBEDDINGS,
            skipped=(),
            batch_size=notes,
        )


def report_rounds(rounds: Sequence[Round], expected: int) -> None:
    """Say how much faster several drainers are than one, and whether a text was embedded twice."""
    one = rounds[0].notes_a_second / rounds[0].drainers
    report("| drainers | s | notes/s | times one | drainer, ms a note | server, ms a note |")
    report("|---|---|---|---|---|---|")
    for each in rounds:
        times = each.notes_a_second / one
        report(
            f"| {each.drainers} | {each.seconds:.1f} | {each.notes_a_second:.1f} | {times:.2f} "
            f"| {each.client_ms:.2f} | {each.server_ms:.2f} |",
            met=times >= LINEAR * each.drainers if each.drainers <= LINEAR_UP_TO else None,
        )
    twice = sum(each.embedded - expected for each in rounds)
    report(f"texts embedded twice: {twice}", met=twice == 0)


def report_claims(database: Database) -> None:
    """Say what a claim costs beside claims of others."""
    report("| notes that others hold | claim, ms |")
    report("|---|---|")
    for held in HELD:
        report(f"| {held:,} | {measure_claims(database, held):.1f} |")


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--drainers", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--notes", type=int, default=1_024, help="embedded in each round (1024)")
    parser.add_argument("--corpus", type=int, default=40_000, help="chunks in the index (40000)")
    parser.add_argument(
        "--bulk", action="store_true", help="no vector indexes yet, as in a first backfill"
    )
    parser.add_argument("--home", type=Path, help="keeps the databases for the next run")
    arguments = parser.parse_args()
    with ExitStack() as stack:
        server = stack.enter_context(running_server(arguments.home))
        server.ensure_database("rag")
        migrate(server.dsn("rag"))
        database = stack.enter_context(Database(server.dsn("rag")))
        Corpus().load(database, arguments.corpus)
        if arguments.bulk:
            with database.transaction() as connection:
                for column in ("embedding", "contextual_embedding"):
                    connection.execute(f"DROP INDEX chunk_embeddings_{MODEL.name}_{column}_hnsw")
        rounds = [
            measure_round(server, database, number, arguments.notes)
            for number in arguments.drainers
        ]
        report_rounds(rounds, arguments.notes * CHUNKS_PER_NOTE * VECTORS_PER_CHUNK)
        with database.transaction() as connection:
            connection.execute(QUEUE_ALL, {"model": MODEL.name, "notes": arguments.corpus})
        with database.autocommit() as connection:
            connection.execute("VACUUM ANALYZE pending_vectors")
        report_claims(database)


if __name__ == "__main__":
    main()
