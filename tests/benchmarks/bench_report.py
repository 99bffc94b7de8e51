"""The cost of a report of many evaluations: reading, comparing, and writing the page.

    python -m tests.benchmarks.bench_report [--evaluations 50] [--questions 1000]

On a server of its own, once with few configurations evaluated many times, once with one evaluation
of each of many. Generating takes longer than what is measured: two minutes.
"""

import argparse
import random
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

from rag_resources.core.configuration import RetrievalConfig
from rag_resources.core.types import NoteRecord
from rag_resources.database.migrations import migrate
from rag_resources.database.pool import Database
from rag_resources.database.server import EmbeddedServer
from rag_resources.files import LocalFiles
from rag_resources.ingestion.ingest import ingest
from rag_resources.reporting.page import write_report
from rag_resources.reporting.reading import read_report
from rag_resources.store.evaluations import latest_evaluation
from rag_resources.store.golden import write_golden
from rag_resources.store.models import register_model
from rag_resources.store.promotions import promote
from tests.benchmarks.corpus import MODEL
from tests.stored_evaluations import Asked, store_evaluation

NEWEST = datetime(2025, 6, 1, tzinfo=UTC)
FOUND = 10


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--evaluations", type=int, default=50)
    parser.add_argument("--questions", type=int, default=1000)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="rag-bench-") as home:
        Path(home).chmod(0o755)
        server = EmbeddedServer(Path(home))
        server.up()
        try:
            for configurations in (10, options.evaluations):
                name = f"bench_{configurations}"
                server.ensure_database(name)
                migrate(server.dsn(name))
                with Database(server.dsn(name)) as database:
                    fill(database, configurations, options.evaluations, options.questions)
                    measure(database, Path(home) / "report.html", configurations)
        finally:
            server.down()


def fill(database: Database, configurations: int, evaluations: int, questions: int) -> None:
    """Store notes, questions and evaluations in turn, each a little better than the last."""
    chance = random.Random(7)
    records = [
        NoteRecord(str(number), f"Nota {number}", f"Texto de la nota {number}. " * 20, NEWEST)
        for number in range(questions)
    ]
    ingest(database, records, tenant="default", source="notes")
    with database.transaction() as connection:
        notes = [row.id for row in connection.execute("SELECT id FROM notes ORDER BY id")]
        register_model(connection, MODEL, embeds_chunks=True)
    for number in range(evaluations):
        asked = [question(chance, at, notes, skill=number) for at in range(questions)]
        if number == 0:
            with database.transaction() as connection:
                write_golden(connection, [item.outcome.golden for item in asked], replace=True)
        store_evaluation(
            database,
            f"configuracion_{number % configurations}",
            asked,
            created_at=NEWEST - timedelta(hours=evaluations - number),
        )
    with database.transaction() as connection:
        serving = latest_evaluation(connection, "configuracion_0")
        assert serving
        promote(connection, serving, RetrievalConfig(model=MODEL.name), run_id=None)


def question(chance: random.Random, number: int, notes: list[UUID], *, skill: int) -> Asked:
    """Ask for one note; it is found among the first ten about as often as real ones are."""
    relevant = notes[number]
    found = chance.sample(notes, FOUND)
    if chance.random() < 0.75 + skill / 500:
        found[min(FOUND - 1, int(chance.expovariate(0.5)))] = relevant
    return Asked(number, [relevant], list(dict.fromkeys(found)), ("factual", "causal")[number % 2])


def measure(database: Database, path: Path, configurations: int) -> None:
    """Report three times, because the first report also loads the plotting library."""
    for _ in range(3):
        began, worked = time.perf_counter(), time.process_time()
        report = read_report(database, {})
        read = time.perf_counter()
        write_report(report, LocalFiles(path.parent), path.name)
        written = time.perf_counter()
        sys.stdout.write(
            f"{configurations} configurations: read and compared {read - began:.2f} s,"
            f" written {written - read:.2f} s (processor {time.process_time() - worked:.2f} s),"
            f" {path.stat().st_size / 1e6:.1f} MB\n"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
