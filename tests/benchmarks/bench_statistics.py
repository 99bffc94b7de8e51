"""What it costs to keep the statistics of words, by how much changed and by the size of the index.

python -m tests.benchmarks.bench_statistics --chunks 10000 100000
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from rag_resources.database.locate import database_url, embedded_server, open_database
from rag_resources.database.migrations import migrate
from rag_resources.database.pool import Connection, Database
from rag_resources.database.queries import queries
from rag_resources.settings import load_settings
from rag_resources.store.chunks import refresh_statistics
from tests.benchmarks.corpus import Corpus

CHANGED = (1, 100, 1_000)
REPEATS = 3

# Each chunk gets the words of another one: as many lexemes as a real edit changes.
_EDIT = """
    UPDATE chunks AS c SET topics = o.content
    FROM (
        SELECT id, coalesce(lead(content) OVER (ORDER BY id), content) AS content
        FROM chunks ORDER BY id LIMIT %s
    ) AS o
    WHERE c.id = o.id"""
_REVERT = "UPDATE chunks SET topics = '' WHERE topics <> ''"


def seconds(database: Database, work: Callable[[Connection], object]) -> float:
    """Return how long something takes in a transaction of its own."""
    started = time.perf_counter()
    with database.transaction() as connection:
        work(connection)
    return time.perf_counter() - started


def measured(database: Database, changed: int) -> tuple[float, float, float]:
    """Return the seconds of editing chunks with the trigger, without it, and of the refresh."""
    edits, bare, refreshes = [], [], []
    for _ in range(REPEATS):
        for statement in (_EDIT, _REVERT):
            parameters = (changed,) if statement == _EDIT else ()

            def edit(
                connection: Connection,
                edited: str = statement,
                values: tuple[int, ...] = parameters,
            ) -> None:
                connection.execute(edited, values)

            times = [seconds(database, edit), seconds(database, refresh_statistics)]
            edits.append(times[0])
            refreshes.append(times[1])
        with database.transaction() as connection:
            connection.execute("ALTER TABLE chunks DISABLE TRIGGER chunk_words_changed_by_update")
            started = time.perf_counter()
            connection.execute(_EDIT, (changed,))
            bare.append(time.perf_counter() - started)
            connection.execute(_REVERT)
            connection.execute("ALTER TABLE chunks ENABLE TRIGGER chunk_words_changed_by_update")
    return min(edits[::2]), min(bare), min(refreshes)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--chunks", type=int, nargs="+", default=[10_000, 100_000])
    sizes = parser.parse_args().chunks
    columns = ["chunks", "changed", "edit, s", "without noting, s", "refresh, ms", "recount, ms"]
    sys.stdout.write(f"| {' | '.join(columns)} |\n{'| --- ' * len(columns)}|\n")
    for size in sizes:
        measure(size)


def measure(size: int) -> None:
    """Print the lines of one size, in a database of its own.

    In a database that was filled before, vectors would be inserted into live indexes.
    """
    with tempfile.TemporaryDirectory() as home:
        Path(home).chmod(0o755)  # or a root's server keeps its data elsewhere
        settings = load_settings(rag_home=Path(home))
        migrate(database_url(settings))
        with closing(open_database(settings)) as database:
            Corpus().load(database, size)
            recount = min(
                seconds(database, lambda c: queries().recount_lexeme_statistics(c))
                for _ in range(REPEATS)
            )
            for changed in CHANGED:
                edit, bare, refresh = measured(database, changed)
                sys.stdout.write(
                    f"| {size:,} | {changed:,} | {edit:.3f} | {bare:.3f} "
                    f"| {refresh * 1000:.1f} | {recount * 1000:.0f} |\n"
                )
                sys.stdout.flush()
        embedded_server(settings).down()


if __name__ == "__main__":
    main()
