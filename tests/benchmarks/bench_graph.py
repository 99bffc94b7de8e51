"""What the causal graph costs with 100,000 chunks.

    python -m tests.benchmarks.bench_graph [--notes N] [--links N] [--home FOLDER]

Notes of the sample's words, each with three more names of 30,000, few of them common, are read by
the rules and written as the assets do; then causes are added at random, so that traversal has
something to walk through (`--links`: for each note). Of many notes only the last 5,000 are read so;
what the others say is copied in.
"""

import argparse
import random
import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from uuid import UUID, uuid4

from rag_assets import __file__ as _assets
from rag_resources.cli.output import note
from rag_resources.core.causal import CausalStatement, event_key, find_statements
from rag_resources.core.graph_version import GraphPart
from rag_resources.core.mentions import EntityKind, Mention, entity_id, find_mentions
from rag_resources.core.retrievers import RankedList
from rag_resources.core.types import NoteRecord
from rag_resources.database.migrations import migrate
from rag_resources.database.pool import Database
from rag_resources.graph.extraction import Extractor
from rag_resources.graph.reading import read_notes
from rag_resources.ingestion.sources import iter_source
from rag_resources.store.graph import register_part
from rag_resources.store.ranked_lists import Links, ListRequest
from rag_resources.store.search import SearchScope, search
from tests.benchmarks.bench_quality import EVERYTHING
from tests.benchmarks.homes import running_server
from tests.benchmarks.quality_tables import Table, markdown, show


def read_all(database: Database) -> float:
    """Make both parts of the graph; return how many seconds that took."""
    _register(database)
    started = time.perf_counter()
    for part in GraphPart:
        read_notes(database, part, Extractor(), EVERYTHING)
    return time.perf_counter() - started


def _register(database: Database) -> None:
    """Have both parts made by the rules."""
    for part in GraphPart:
        with database.transaction() as connection:
            register_part(connection, part, version=Extractor().version(part))


NOTES = 100_000
LINKS_PER_NOTE = 3
READ_NOTES = 5000
NAMES = 30_000
RUNS = 200


def scale(home: Path | None, count: int, links: int) -> list[Table]:
    """Measure reading, replacing and traversing with this many notes of one chunk each."""
    texts = [
        item.content[:900]
        for item in iter_source(Path(_assets).parent / "sample" / "notes")
        if isinstance(item, NoteRecord)
    ]
    rng = random.Random(1)
    with running_server(home) as server, ExitStack() as stack:
        server.ensure_database("graph_scale")
        migrate(server.dsn("graph_scale"))
        database = stack.enter_context(Database(server.dsn("graph_scale")))
        written = _write_notes(database, texts, count, rng)
        _register(database)
        _copy_graph(database, written[:-READ_NOTES])
        read = min(count, READ_NOTES)
        seconds = read_all(database)
        note(f"{read} notes read in {seconds:.0f} s")
        _write_edges(database, links * count, rng)
        rows = [(f"reading a note, mean of {read:,}", f"{seconds / read * 1000:.1f}", "15")]
        rows += _timed(database, rng)
    return [Table(f"The graph of {count:,} notes", ("", "ms", "target"), rows)]


@dataclass(frozen=True)
class _Written:
    """A note of one chunk: a text of the sample, and a line of names."""

    note_id: UUID
    chunk_id: UUID
    text: str
    company: str

    @property
    def body(self) -> str:
        return f"{self.text}\n\n{self.company}"


def _write_notes(
    database: Database, texts: list[str], count: int, rng: random.Random
) -> list[_Written]:
    written = [_Written(uuid4(), uuid4(), rng.choice(texts), _company(rng)) for _ in range(count)]
    with database.transaction() as connection:
        # Their words are not searched here, and would take most of the time.
        for table, trigger in (
            ("notes", "notes_words_by_insert"),
            ("chunks", "chunks_words"),
            ("chunks", "chunk_words_changed_by_insert"),
        ):
            connection.execute(f"ALTER TABLE {table} DISABLE TRIGGER {trigger}".encode())
        for start in range(0, count, 1000):
            batch = written[start : start + 1000]
            connection.cursor().executemany(
                "INSERT INTO notes (id, content, created_at, chunked_at)"
                " VALUES (%s, %s, now() - random() * interval '700 days', now())",
                [(item.note_id, item.body) for item in batch],
            )
            connection.cursor().executemany(
                "INSERT INTO chunks (id, note_id, content, chunk_index, start_char, end_char)"
                " VALUES (%s, %s, %s, 0, 0, %s)",
                [(item.chunk_id, item.note_id, item.body, len(item.body)) for item in batch],
            )
    return written


def _copy_graph(database: Database, written: list[_Written]) -> None:
    """Write what the rules find in notes, without reading each text of the sample anew."""
    entities: dict[UUID, tuple[str, str, str]] = {}
    mentions: list[tuple[UUID, UUID, UUID, int, int]] = []
    statements: list[tuple[UUID, UUID, _Written, CausalStatement]] = []
    for item in written:
        shift = len(item.text) + 2
        for found, offset in ((_named(item.text), 0), (_named(item.company), shift)):
            for each in found:
                key = entity_id("default", each.kind, each.key)
                entities[key] = (each.kind, each.key, each.name)
                places = (each.span.start + offset, each.span.end + offset)
                mentions.append((key, item.chunk_id, item.note_id, *places))
        for said in _stated(item.text):
            ends = []
            for span in (said.cause, said.effect):
                words = event_key(item.text, span)
                ends.append(entity_id("default", EntityKind.EVENT, words, item.note_id))
                entities[ends[-1]] = (EntityKind.EVENT, words, item.text[span.start : span.end])
            statements.append((ends[0], ends[1], item, said))
    with database.transaction() as connection:
        with connection.cursor().copy(
            "COPY entities (tenant_id, id, kind, key, name) FROM STDIN"
        ) as copy:
            for key, row in entities.items():
                copy.write_row(("default", key, *row))
        with connection.cursor().copy(
            "COPY mentions (tenant_id, entity_id, chunk_id, note_id, start_char, end_char,"
            " extractor, version) FROM STDIN"
        ) as copy:
            for place in mentions:
                copy.write_row(("default", *place, "rules", ""))
        with connection.cursor().copy(
            "COPY relationships (tenant_id, id, source_id, target_id, type, confidence, chunk_id,"
            " note_id, marker, marker_start, marker_end, cause_start, cause_end, effect_start,"
            " effect_end, extractor, version) FROM STDIN"
        ) as copy:
            for source, target, item, said in statements:
                if source != target:
                    spans = (said.marker, said.cause, said.effect)
                    copy.write_row(
                        (
                            *("default", uuid4(), source, target, said.relation, said.confidence),
                            *(item.chunk_id, item.note_id, said.marker_name),
                            *(place for span in spans for place in (span.start, span.end)),
                            *("rules", ""),
                        )
                    )
        connection.execute(
            "DELETE FROM pending_graph WHERE note_id = ANY(%s)",
            ([item.note_id for item in written],),
        )
    with database.autocommit() as connection:
        connection.execute("ANALYZE")


@cache
def _named(text: str) -> list[Mention]:
    return find_mentions("", [text], [])[0]


@cache
def _stated(text: str) -> list[CausalStatement]:
    return find_statements(text)


def _company(rng: random.Random) -> str:
    """Name three people, most of them rare: the share of the first n is the root of n / NAMES."""
    ranks = (int(NAMES * rng.random() ** 2) for _ in range(3))
    names = (f"{_word(rank % 200)} {_word(rank // 200)}" for rank in ranks)
    return f"Estuvimos con {', '.join(names)} y nadie más."


def _word(number: int) -> str:
    """A capitalised word for each number."""
    syllables = (
        "ba",
        "ce",
        "di",
        "fo",
        "gu",
        "ja",
        "le",
        "mi",
        "no",
        "pu",
        "ra",
        "se",
        "ti",
        "vu",
        "zo",
    )
    low, high = number % len(syllables), number // len(syllables)
    return f"{syllables[low]}{syllables[high]}n".capitalize()


def _write_edges(database: Database, count: int, rng: random.Random) -> None:
    with database.transaction() as connection:
        events = [
            row.id for row in connection.execute("SELECT id FROM entities WHERE kind='event'")
        ]
        pairs = {(rng.choice(events), rng.choice(events)) for _ in range(count)}
        connection.execute(
            "INSERT INTO relationships (tenant_id, id, source_id, target_id, type, confidence,"
            " chunk_id, note_id, marker, marker_start, marker_end, cause_start, cause_end,"
            " effect_start, effect_end, extractor, version)"
            " SELECT 'default', gen_random_uuid(), p.one, p.other, 'CAUSES', 1, r.chunk_id,"
            " r.note_id, '', 0, 0, 0, 1, 0, 1, 'rules', ''"
            " FROM unnest(%s::uuid[], %s::uuid[]) AS p (one, other) CROSS JOIN LATERAL"
            " (SELECT chunk_id, note_id FROM relationships WHERE source_id = p.one LIMIT 1) AS r"
            " WHERE p.one <> p.other",
            ([one for one, _ in pairs], [other for _, other in pairs]),
        )
    with database.autocommit() as connection:
        connection.execute("ANALYZE")


def _timed(database: Database, rng: random.Random) -> list[tuple[str, str, str]]:
    with database.transaction() as connection:
        held = connection.execute(
            "SELECT r.chunk_id, e.name FROM relationships AS r"
            " JOIN entities AS e ON e.id = r.source_id LIMIT 20000"
        ).fetchall()
        rows = connection.execute("SELECT id FROM notes LIMIT 20000").fetchall()
    notes = [row.id for row in rows]
    found: list[int] = []

    def follow() -> None:
        seeds = rng.sample(held, 20)
        links = Links(tuple(row.chunk_id for row in seeds), (), 3, 3)
        # Of the words of an event, so that there is one to begin at.
        question = f"por qué {seeds[0].name[:60]}"
        item = ListRequest(RankedList.GRAPH_CAUSES, text=question, links=links)
        with database.snapshot() as connection:
            (ranking,) = search(connection, [item], SearchScope("default"), pool=50)
        found.append(len(ranking.candidates))

    def replace_one() -> None:
        with database.transaction() as connection:
            connection.execute(
                "INSERT INTO pending_graph (tenant_id, note_id, part)"
                " SELECT 'default', %s, part FROM graph_parts",
                (rng.choice(notes),),
            )
        for part in GraphPart:
            read_notes(database, part, Extractor(), EVERYTHING)

    times = _percentiles(follow)
    chunks = statistics.fmean(found)
    return [
        (f"causes up to depth 3 from 20 seeds, {chunks:.0f} chunks on average", times, "50"),
        ("reading one note again, both parts, p50 / p95", _percentiles(replace_one), "50"),
    ]


def _percentiles(work: Callable[[], None]) -> str:
    times = []
    for _ in range(RUNS):
        started = time.perf_counter()
        work()
        times.append((time.perf_counter() - started) * 1000)
    times.sort()
    return f"{times[len(times) // 2]:.0f} / {times[int(len(times) * 0.95)]:.0f}"


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--home", type=Path)
    parser.add_argument("--notes", type=int, default=NOTES)
    parser.add_argument("--links", type=int, default=LINKS_PER_NOTE, help="links a note")
    parser.add_argument("--markdown", type=Path)
    asked = parser.parse_args()
    tables = scale(asked.home, asked.notes, asked.links)
    show(tables)
    if asked.markdown:
        asked.markdown.write_text(markdown(tables), "utf-8")


if __name__ == "__main__":
    main()
