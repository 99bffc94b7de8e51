"""What the causal graph gains on the sample's questions, and what it costs with 100,000 chunks.

    python -m tests.benchmarks.bench_graph quality [--base NAME] [--home FOLDER] [--markdown FILE]
    python -m tests.benchmarks.bench_graph scale [--notes N] [--links N] [--home FOLDER]

Quality: only the experiment half of the large golden set is asked, by the tag `hops`. Scale: notes
of the sample's words, each with three more names of 30,000, few of them common, are read by the
rules and written as the assets do; then edges are added at random, so that traversal has something
to walk through (`--links`: for each note). Of many notes only the last 5,000 are read so; what the
others say is copied in.
"""

import argparse
import random
import statistics
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from uuid import UUID, uuid4

from rag_assets import __file__ as _assets
from rag_resources.cli.output import note
from rag_resources.configurations import load_configurations
from rag_resources.core.causal import CausalStatement, event_key, find_statements
from rag_resources.core.comparison import QueryMetrics
from rag_resources.core.configuration import RetrievalConfig, Strategy, with_overrides
from rag_resources.core.golden import GoldenEntry
from rag_resources.core.graph_version import GraphPart
from rag_resources.core.mentions import EntityKind, Mention, entity_id, find_mentions
from rag_resources.core.retrievers import RankedList
from rag_resources.core.significance import bootstrap_intervals, randomization_p_values
from rag_resources.core.types import NoteRecord, Vectors
from rag_resources.core.windows import WindowsConfig, windows_hash
from rag_resources.database.migrations import migrate
from rag_resources.database.pool import Connection, Database
from rag_resources.evaluation.runner import evaluate
from rag_resources.golden.files import read_golden
from rag_resources.graph import people
from rag_resources.graph.extractors import RulesExtractor
from rag_resources.graph.reading import read_notes
from rag_resources.indexing.chunk import chunk_window
from rag_resources.indexing.embed import embed_chunks, embed_notes
from rag_resources.indexing.windows import embed_windows
from rag_resources.ingestion.ingest import ingest
from rag_resources.ingestion.sources import iter_source
from rag_resources.providers.cache import MemoryCache
from rag_resources.providers.cached_embedder import CachedEmbedder
from rag_resources.providers.protocols import Embedder
from rag_resources.providers.registry import build_embedder
from rag_resources.retrieval.pipeline import RetrievalPipeline
from rag_resources.settings import Settings, load_settings
from rag_resources.store.chunks import refresh_statistics
from rag_resources.store.golden import list_golden, write_golden
from rag_resources.store.graph import forget_orphans, register_part
from rag_resources.store.models import register_model
from rag_resources.store.ranked_lists import Links, ListRequest
from rag_resources.store.search import SearchScope, search
from rag_resources.store.windows import register_windows
from tests.benchmarks.bench_quality import EVERYTHING, VECTORS
from tests.benchmarks.homes import running_server
from tests.benchmarks.quality_tables import Table, markdown, show

SAMPLE = Path(_assets).parent / "sample"
HALF = "half:experiment"
SHOWN = {"recall_at_10": "recall@10", "mrr": "MRR@10", "hit_rate_at_10": "Hit_Rate@10"}
VARIANTS: Mapping[str, Mapping[str, object]] = {
    **{f"causal, weight {w}": {"weight": w} for w in (0.1, 0.3)},
    "causal, weight 0.3, 1 hop": {"weight": 0.3, "max_depth": 1, "min_relevance": 0.5},
    **{f"all, weight {w}": {"weight": w, "questions": "all"} for w in (0.1, 0.3)},
}


def with_graph(base: RetrievalConfig, changes: Mapping[str, object]) -> RetrievalConfig:
    """The configuration with the graph."""
    return with_overrides(base, {"graph": {"enabled": True, **changes}})


def read_all(database: Database) -> float:
    """Make both parts of the graph; return how many seconds that took."""
    _register(database)
    started = time.perf_counter()
    for part in GraphPart:
        read_notes(database, part, RulesExtractor(), EVERYTHING)
    return time.perf_counter() - started


def _register(database: Database) -> None:
    """Have both parts made by the rules."""
    for part in GraphPart:
        with database.transaction() as connection:
            register_part(connection, part, version=RulesExtractor().version(part))


def gain(before: QueryMetrics, after: QueryMetrics, keys: list[UUID], metric: str) -> str:
    """The difference of the means with its interval and p."""
    import numpy as np

    differences = np.array([[after[key][metric] - before[key][metric]] for key in keys])
    (interval,), (p_value,) = bootstrap_intervals(differences), randomization_p_values(differences)
    mean = float(differences.mean())
    return f"{mean:+.3f} [{interval.low:+.3f}, {interval.high:+.3f}], p {p_value:.2f}"


def quality(home: Path | None, name: str) -> list[Table]:
    """Ask the experiment half with and without the graph."""
    settings = load_settings()
    base = load_configurations((Path(_assets).parent / "configurations",))[name].retrieval
    # A strategy of words alone has no graph.
    only = {key: base.retrievers[key] for key in base.searched}
    base = base.model_copy(update={"strategy": Strategy.HYBRID, "retrievers": only})
    base = with_overrides(base, {"fusion": {"method": "scaled"}})
    with running_server(home) as server, ExitStack() as stack:
        server.ensure_database(f"graph_{name}")
        migrate(server.dsn(f"graph_{name}"))
        database = stack.enter_context(Database(server.dsn(f"graph_{name}")))
        vectors: MemoryCache[Vectors] = MemoryCache(VECTORS)
        embedder = CachedEmbedder(build_embedder(base.model, settings.servers), vectors)
        entries = _index(database, embedder, base, settings)
        pipeline = RetrievalPipeline(
            database,
            embedder=lambda _: embedder,
            tenant=settings.tenant,
            note_model=base.model,
        )
        configurations = {f"`{name}`, scaled": base} | {
            label: with_graph(base, changes) for label, changes in VARIANTS.items()
        }
        measured, impaired = {}, 0
        for label, config in configurations.items():
            summary = evaluate(database, pipeline, label, config, store=False).summary
            impaired += summary.failed_queries + summary.degraded_queries
            measured[label] = {UUID(key): own for key, own in summary.per_query.items()}
            note(f"{label}: MRR {summary.metrics['mrr']:.3f}")
    groups = {
        title: [entry.golden_id for entry in entries if entry.golden_id and tag in entry.tags]
        for title, tag in (("one note", "hops:single"), ("several notes", "hops:multi"))
    } | {"causal": [e.golden_id for e in entries if e.golden_id and e.category == "causal"]}
    note(f"failed or in part: {impaired}")
    return [_table(title, measured, keys) for title, keys in groups.items()]


def _index(
    database: Database, embedder: Embedder, base: RetrievalConfig, settings: Settings
) -> list[GoldenEntry]:
    """Index the sample and its graph; return the questions of the experiment half, now stored."""
    with database.transaction() as connection:
        register_model(connection, embedder.info, embeds_chunks=True)
    notes = list(iter_source(SAMPLE / "notes"))
    ingest(database, notes, tenant=settings.tenant, source="bench")
    chunk_window(database, EVERYTHING, settings.chunking)
    if base.uses_vectors:
        embed_chunks(database, embedder, EVERYTHING)
        embed_notes(database, embedder, EVERYTHING)
    if base.searches_windows:
        config = WindowsConfig()
        with database.transaction() as connection:
            register_windows(connection, base.model, windows_hash=windows_hash(config))
        embed_windows(database, embedder, config, EVERYTHING)
    note(f"graph made in {read_all(database):.1f} s")
    found = read_golden(database, SAMPLE / "golden-400.json", tenant=settings.tenant).entries
    with database.transaction() as connection:
        refresh_statistics(connection)
        chosen = [entry for entry in found if HALF in entry.tags]
        write_golden(connection, chosen, replace=True)
        entries = list_golden(connection)
    if base.uses_vectors:
        # Now, or the first questions would be late.
        embedder.embed_queries([entry.query for entry in entries])
    return entries


def _table(title: str, measured: Mapping[str, QueryMetrics], keys: list[UUID]) -> Table:
    base = next(iter(measured.values()))
    rows = [
        (
            label,
            *(
                cell
                for metric in SHOWN
                for cell in (
                    f"{statistics.fmean(own[key][metric] for key in keys):.3f}",
                    "–" if own is base else gain(base, own, keys, metric),
                )
            ),
        )
        for label, own in measured.items()
    ]
    columns = ("graph", *(cell for name in SHOWN.values() for cell in (name, "minus the first")))
    return Table(
        f"Experiment half, {title}: {len(keys)} questions",
        columns,
        rows,
        "Intervals of 95 % by BCa bootstrap; p by paired randomization, not adjusted.",
    )


# --- Scale ------------------------------------------------------------------------------------

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
        with database.transaction() as connection:
            shape = people.shape(connection, "default")
        rows += _for_people(database)
    told = (
        f"{shape.mentions:,} mentions of {shape.names:,} names, {shape.hubs:,} of them in too many"
        f" chunks to be followed; {shape.statements:,} statements; {shape.links:,} links."
    )
    return [Table(f"The graph of {count:,} notes", ("", "ms", "target"), rows, told)]


def _for_people(database: Database) -> list[tuple[str, str, str]]:
    """What people wait for, once each."""

    def timed(work: Callable[[Connection], object]) -> str:
        with database.transaction() as connection:
            started = time.perf_counter()
            work(connection)
            return f"{(time.perf_counter() - started) * 1000:.0f}"

    return [
        ("`rag graph status`, once", timed(lambda c: people.overview(c, "default")), "–"),
        (
            "`rag graph aliases`, once",
            timed(lambda c: people.suggest_aliases(c, "default", limit=20)),
            "–",
        ),
        ("forgetting what nothing names, once", timed(forget_orphans), "–"),
    ]


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
        with connection.cursor().copy(
            "COPY event_links (tenant_id, source_id, target_id, type, state, decided_by) FROM STDIN"
        ) as copy:
            for one, other in pairs:
                if one != other:
                    copy.write_row(("default", one, other, "CAUSES", "confirmed", "person"))
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
    found: dict[RankedList, list[int]] = {}

    def follow(name: RankedList) -> Callable[[], None]:
        def once() -> None:
            seeds = rng.sample(held, 20)
            links = Links(tuple(row.chunk_id for row in seeds), (), 3, 3)
            # Of the words of an event, so that there is one to begin at.
            item = ListRequest(name, text=f"por qué {seeds[0].name[:60]}", links=links)
            with database.snapshot() as connection:
                (ranking,) = search(connection, [item], SearchScope("default"), pool=50)
            found.setdefault(name, []).append(len(ranking.candidates))

        return once

    def replace_one() -> None:
        with database.transaction() as connection:
            connection.execute(
                "INSERT INTO pending_graph (tenant_id, note_id, part)"
                " SELECT 'default', %s, part FROM graph_parts",
                (rng.choice(notes),),
            )
        for part in GraphPart:
            read_notes(database, part, RulesExtractor(), EVERYTHING)

    def followed(name: RankedList, told: str) -> tuple[str, str, str]:
        times = _percentiles(follow(name))
        chunks = statistics.fmean(found[name])
        return f"{told} from 20 seeds, {chunks:.0f} chunks found on average, p50 / p95", times, "50"

    return [
        followed(RankedList.GRAPH_CAUSES, "causes up to depth 3"),
        followed(RankedList.GRAPH_NAMES, "names"),
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
    parser.add_argument("what", choices=["quality", "scale"])
    parser.add_argument("--home", type=Path)
    parser.add_argument("--base", default="hybrid_windows", help="a named configuration")
    parser.add_argument("--notes", type=int, default=NOTES)
    parser.add_argument("--links", type=int, default=LINKS_PER_NOTE, help="links a note")
    parser.add_argument("--markdown", type=Path)
    asked = parser.parse_args()
    tables = (
        quality(asked.home, asked.base)
        if asked.what == "quality"
        else scale(asked.home, asked.notes, asked.links)
    )
    show(tables)
    if asked.markdown:
        asked.markdown.write_text(markdown(tables), "utf-8")


if __name__ == "__main__":
    main()
