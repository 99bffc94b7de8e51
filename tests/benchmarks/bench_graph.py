"""What the causal graph gains on the sample's questions, and what it costs with 100,000 chunks.

    python -m tests.benchmarks.bench_graph quality [--base NAME] [--home FOLDER] [--markdown FILE]
    python -m tests.benchmarks.bench_graph scale [--home FOLDER] [--markdown FILE]

Quality: only the experiment half of the large golden set is asked, by the tag `hops`. Scale: notes
of the sample's words are read by the rules and written as the assets do; then edges are added at
random, so that traversal has something to walk through.
"""

import argparse
import random
import statistics
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from uuid import UUID, uuid4

from rag_assets import __file__ as _assets
from rag_resources.cli.output import note
from rag_resources.configurations import load_configurations
from rag_resources.core.comparison import QueryMetrics
from rag_resources.core.configuration import RetrievalConfig, Strategy, with_overrides
from rag_resources.core.golden import GoldenEntry
from rag_resources.core.graph_version import GraphPart
from rag_resources.core.retrievers import RankedList
from rag_resources.core.significance import bootstrap_intervals, randomization_p_values
from rag_resources.core.types import NoteRecord, Vectors
from rag_resources.core.windows import WindowsConfig, windows_hash
from rag_resources.database.migrations import migrate
from rag_resources.database.pool import Database
from rag_resources.evaluation.runner import evaluate
from rag_resources.golden.files import read_golden
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
from rag_resources.store.graph import register_part
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
    started = time.perf_counter()
    extractor = RulesExtractor()
    for part in GraphPart:
        with database.transaction() as connection:
            register_part(connection, part, version=extractor.version(part))
        read_notes(database, part, extractor, EVERYTHING)
    return time.perf_counter() - started


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
EDGES = 300_000
RUNS = 200


def scale(home: Path | None, count: int) -> list[Table]:
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
        _write_notes(database, texts, count, rng)
        seconds = read_all(database)
        note(f"{count} notes read in {seconds:.0f} s")
        _write_edges(database, rng)
        rows = [("reading a note, mean", f"{seconds / count * 1000:.1f}", "15")]
        rows += _timed(database, rng)
    return [Table(f"The graph of {count:,} notes", ("", "ms", "target"), rows, "")]


def _write_notes(database: Database, texts: list[str], count: int, rng: random.Random) -> None:
    with database.transaction() as connection:
        # Their words are not searched here, and would take most of the time.
        for table, trigger in (("notes", "notes_words_by_insert"), ("chunks", "chunks_words")):
            connection.execute(f"ALTER TABLE {table} DISABLE TRIGGER {trigger}".encode())
        for start in range(0, count, 1000):
            ids = [uuid4() for _ in range(start, min(start + 1000, count))]
            bodies = [rng.choice(texts) for _ in ids]
            connection.cursor().executemany(
                "INSERT INTO notes (id, content, created_at, chunked_at)"
                " VALUES (%s, %s, now() - random() * interval '700 days', now())",
                list(zip(ids, bodies, strict=True)),
            )
            connection.cursor().executemany(
                "INSERT INTO chunks (id, note_id, content, chunk_index, start_char, end_char)"
                " VALUES (%s, %s, %s, 0, 0, %s)",
                [(uuid4(), own, body, len(body)) for own, body in zip(ids, bodies, strict=True)],
            )


def _write_edges(database: Database, rng: random.Random) -> None:
    with database.transaction() as connection:
        events = [
            row.id for row in connection.execute("SELECT id FROM entities WHERE kind='event'")
        ]
        pairs = {(rng.choice(events), rng.choice(events)) for _ in range(EDGES)}
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
        held = connection.execute("SELECT chunk_id AS id FROM relationships LIMIT 20000").fetchall()
        rows = connection.execute("SELECT id FROM notes LIMIT 20000").fetchall()
    chunks, notes = [row.id for row in held], [row.id for row in rows]

    def follow(name: RankedList) -> Callable[[], None]:
        def once() -> None:
            seeds = tuple(rng.sample(chunks, 20))
            item = ListRequest(name, text="por qué el agua", links=Links(seeds, (), 3, 3))
            with database.snapshot() as connection:
                search(connection, [item], SearchScope("default"), pool=50)

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

    return [
        (
            "causes, depth 3, 20 seeds, p50 / p95",
            _percentiles(follow(RankedList.GRAPH_CAUSES)),
            "50",
        ),
        ("names, 20 seeds, p50 / p95", _percentiles(follow(RankedList.GRAPH_NAMES)), "50"),
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
    parser.add_argument("--markdown", type=Path)
    asked = parser.parse_args()
    tables = (
        quality(asked.home, asked.base)
        if asked.what == "quality"
        else scale(asked.home, asked.notes)
    )
    show(tables)
    if asked.markdown:
        asked.markdown.write_text(markdown(tables), "utf-8")


if __name__ == "__main__":
    main()
