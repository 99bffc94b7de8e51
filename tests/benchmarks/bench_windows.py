"""What small windows of chunks gain, and what a note loses that is not chunked yet.

    python -m tests.benchmarks.bench_windows [FILE] [--paragraphs 1 5] [--cuts 1/1 2/1 3/2]
        [--home FOLDER] [--markdown FILE]

Without FILE the sample with its large golden set is measured. Its experiment half is there to
choose by, the report half judges the choice, the 132 original questions are only shown. Then each
half of its notes stays unchunked in turn, and then only a few. FILE is in the format of SQuAD.
"""

import argparse
import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import rag_assets
from rag_resources.cli.output import note, progress
from rag_resources.configurations import load_configurations
from rag_resources.core.comparison import Comparison, QueryMetrics, compare, compare_pairs
from rag_resources.core.configuration import RetrievalConfig, with_overrides
from rag_resources.core.golden import GoldenEntry
from rag_resources.core.types import NoteRecord, RejectedRecord, Vectors
from rag_resources.core.windows import WindowsConfig, windows_hash
from rag_resources.database.locate import embedded_server
from rag_resources.database.migrations import migrate
from rag_resources.database.pool import Database
from rag_resources.database.server import EmbeddedServer
from rag_resources.evaluation.runner import evaluate
from rag_resources.golden.files import read_golden, squad_entries
from rag_resources.indexing.chunk import chunk_window
from rag_resources.indexing.embed import embed_chunks, embed_notes
from rag_resources.indexing.windows import embed_windows
from rag_resources.ingestion.ingest import ingest
from rag_resources.ingestion.sources import iter_source
from rag_resources.ingestion.squad import read_squad
from rag_resources.providers.cache import MemoryCache
from rag_resources.providers.cached_embedder import CachedEmbedder
from rag_resources.providers.protocols import Embedder
from rag_resources.providers.registry import build_embedder
from rag_resources.retrieval.pipeline import RetrievalPipeline
from rag_resources.settings import Settings, load_settings
from rag_resources.store.chunks import refresh_statistics
from rag_resources.store.golden import list_golden, write_golden
from rag_resources.store.models import register_model
from rag_resources.store.status import read_status
from rag_resources.store.vector_indexes import ensure_vector_indexes, ensure_window_indexes
from rag_resources.store.windows import register_windows
from tests.benchmarks.bench_quality import EVERYTHING, QUESTIONS_SEED, VECTORS
from tests.benchmarks.homes import home_folder
from tests.benchmarks.quality_tables import Table, differences, markdown, show, with_interval

SAMPLE = Path(rag_assets.__file__).parent / "sample"
MODEL = "e5_small"
PLAIN, WINDOWED = "hybrid_weighted", "hybrid_windows"
FOUND_BY_ALL = "hybrid_windows, found by all"
BASE = "`hybrid_weighted` .5 · – · .5"
SHOWN = {"mrr": "MRR@10", "hit_rate_at_5": "Hit_Rate@5", "hit_rate_at_10": "Hit_Rate@10"}
GAINS = {"mrr": "MRR@10", "hit_rate_at_10": "Hit_Rate@10"}
BOUND = 0.03
"""What Hit_Rate@10 of notes not chunked yet may be below that of the same notes chunked."""

OF_LISTS = ("semantic", "fulltext", "hybrid", PLAIN, WINDOWED)
"""Configurations that are measured while a few notes wait."""
WAITING = (40, 3)
"""Notes whose draw leaves this remainder by this number wait: 4 of the sample's 260."""

Notes = Sequence[NoteRecord | RejectedRecord]
ReadQuestions = Callable[[Database], list[GoldenEntry]]


def weights(
    semantic: float,
    windows: float,
    fulltext: float,
    *,
    contextual: bool = True,
    finding: bool = True,
) -> dict[str, object]:
    """Overrides of `PLAIN` for the fusion on fixed scales.

    Args:
        semantic: Weight of the chunk's own vectors.
        windows: Weight of its windows.
        fulltext: Weight of words.
        contextual: Whether the contextual vector is one of its own.
        finding: Whether its own vectors bring candidates, too.
    """
    named = {"semantic": semantic, "windows": windows, "fulltext": fulltext}
    retrievers: dict[str, dict[str, object]] = {
        name: {"weight": weight} for name, weight in named.items() if weight
    }
    if not finding:
        retrievers["semantic"]["candidates"] = False
    return {
        "retrievers": retrievers,
        "contextual": contextual,
        "fusion": {"method": "scaled"},
        "transformation": {"coordinated": False},
    }


WITHOUT_WINDOWS = {"`scaled` .5 · – · .5": weights(0.5, 0, 0.5)}
WITH_WINDOWS = {
    ".4 · .2 · .4": weights(0.4, 0.2, 0.4),
    ".25 · .25 · .5": weights(0.25, 0.25, 0.5),
    ".25 · .25 · .5, no contextual vector": weights(0.25, 0.25, 0.5, contextual=False),
    ".25 · .25 · .5, found by windows and words": weights(
        0.25, 0.25, 0.5, contextual=False, finding=False
    ),
    "– · .5 · .5": weights(0, 0.5, 0.5),
}
"""Weights of the chunk's vectors, of its windows and of words."""
LEFT_OUT = {
    "what the chunk's vectors find": (
        ".25 · .25 · .5, no contextual vector",
        ".25 · .25 · .5, found by windows and words",
    ),
    "the contextual vector": (".25 · .25 · .5", ".25 · .25 · .5, no contextual vector"),
    "both vectors of the chunk": (".25 · .25 · .5", "– · .5 · .5"),
}
"""What is left out beside windows: the variant with it, and the one without."""


@dataclass(frozen=True, slots=True)
class Corpus:
    """Notes with their questions.

    Attributes:
        groups: Tags by title; every variant is asked the questions of these, or all if empty.
        judging: Tag of the questions that only judge: the named configurations alone.
    """

    title: str
    notes: Notes
    read_questions: ReadQuestions
    groups: Mapping[str, str]
    judging: str = ""


def sample(settings: Settings) -> Corpus:
    """The sample with its large golden set."""

    def read(database: Database) -> list[GoldenEntry]:
        return read_golden(database, SAMPLE / "golden-400.json", tenant=settings.tenant).entries

    groups = {"experiment half": "half:experiment", "original 132": "original"}
    notes = list(iter_source(SAMPLE / "notes"))
    return Corpus("the sample", notes, read, groups, judging="half:report")


def public(path: Path, paragraphs: int, settings: Settings) -> Corpus:
    """A file in the format of SQuAD."""
    dataset = read_squad(path, paragraphs_per_note=paragraphs, questions=None, seed=QUESTIONS_SEED)

    def read(_: Database) -> list[GoldenEntry]:
        return squad_entries(dataset, tenant=settings.tenant, source="bench")

    noun = "paragraph" if paragraphs == 1 else "paragraphs"
    return Corpus(f"{path.name}, {paragraphs} {noun} a note", dataset.notes, read, {})


class Bench:
    """Indexes corpora and asks their questions, a new database each on one server.

    Attributes:
        impaired: How many questions failed or were answered in part.
    """

    def __init__(self, settings: Settings, server: EmbeddedServer) -> None:
        self._settings = settings
        self._server = server
        self._vectors: MemoryCache[Vectors] = MemoryCache(VECTORS)
        self._embedders: dict[str, Embedder] = {}
        self.impaired = 0

    def embedder(self, model: str) -> Embedder:
        """A model that embeds each text once in a run."""
        if model not in self._embedders:
            own = build_embedder(model, self._settings.servers)
            self._embedders[model] = CachedEmbedder(own, self._vectors)
        return self._embedders[model]

    def open(self, stack: ExitStack, name: str, corpus: Corpus, fresh: Notes = ()) -> Database:
        """Index a corpus as the product does; fresh notes have only the vectors of whole notes."""
        self._server.ensure_database(name)
        migrate(self._server.dsn(name))
        database = stack.enter_context(Database(self._server.dsn(name)))
        tenant, settings = self._settings.tenant, self._settings
        late = {item.external_id for item in fresh if isinstance(item, NoteRecord)}
        early = [n for n in corpus.notes if isinstance(n, NoteRecord) and n.external_id not in late]
        info = self.embedder(MODEL).info
        whole = self.embedder(settings.note_embedding_model)
        with database.transaction() as connection:
            register_model(connection, info, embeds_chunks=True)
            register_model(connection, whole.info, embeds_chunks=False)
        ingest(database, early, tenant=tenant, source="bench")
        with database.transaction() as connection:
            waiting = connection.execute("SELECT FROM notes WHERE chunked_at IS NULL").fetchall()
        if len(waiting) != len(late) or not late:  # An earlier run did not leave them so.
            chunk_window(database, EVERYTHING, settings.chunking)
        embed_chunks(database, self.embedder(MODEL), EVERYTHING)
        ensure_vector_indexes(database, info)
        ingest(database, fresh, tenant=tenant, source="bench")
        for embedder in (self.embedder(MODEL), whole):
            embed_notes(database, embedder, EVERYTHING)
        entries = corpus.read_questions(database)
        with database.transaction() as connection:
            refresh_statistics(connection)
            write_golden(connection, entries, replace=True)
            status = read_status(connection)
        if status.failures:
            raise SystemExit(f"{corpus.title}: {status.failures} texts could not be indexed")
        note(f"{name}: {status.notes} notes, {status.chunks} chunks")
        return database

    def cut(self, database: Database, config: WindowsConfig) -> int:
        """Make the windows of the chunks, in this way; return how many there are."""
        embedder = self.embedder(MODEL)
        with database.transaction() as connection:
            register_windows(connection, MODEL, windows_hash=windows_hash(config))
        made = embed_windows(database, embedder, config, EVERYTHING).vectors
        ensure_window_indexes(database, embedder.info)
        return made

    def ask(self, database: Database, label: str, config: RetrievalConfig) -> QueryMetrics:
        """Every question's metrics."""
        for model in (MODEL, self._settings.note_embedding_model):
            # Now, or the first questions would be late.
            self.embedder(model).embed_queries([entry.query for entry in questions(database)])
        pipeline = RetrievalPipeline(
            database,
            embedder=self.embedder,
            tenant=self._settings.tenant,
            note_model=self._settings.note_embedding_model,
        )
        with progress(label) as advance:
            summary = evaluate(
                database, pipeline, label, config, store=False, progress=advance
            ).summary
        self.impaired += summary.failed_queries + summary.degraded_queries
        note(f"{label}: MRR@10 {summary.metrics['mrr']:.3f}, p50 {summary.latency.p50_ms:.0f} ms")
        return {UUID(key): values for key, values in summary.per_query.items()}


def questions(database: Database) -> list[GoldenEntry]:
    """The stored questions."""
    with database.transaction() as connection:
        return list_golden(connection)


def of_windows(
    bench: Bench,
    corpus: Corpus,
    name: str,
    cuts: Sequence[WindowsConfig],
    named: Mapping[str, RetrievalConfig],
) -> tuple[list[Table], dict[str, QueryMetrics]]:
    """Measure every variant over one corpus.

    Returns:
        The tables, and the named configurations over all questions.
    """
    base = named[PLAIN]
    with ExitStack() as stack:
        database = bench.open(stack, name, corpus)
        bench.cut(database, WindowsConfig())
        whole = {label: bench.ask(database, label, config) for label, config in named.items()}
        entries = questions(database)
        groups = {
            title: {entry.golden_id for entry in entries if tag in entry.tags}
            for title, tag in corpus.groups.items()
        } or {"all": {entry.golden_id for entry in entries}}
        compared = set().union(*groups.values())
        with database.transaction() as connection:
            chosen = [entry for entry in entries if entry.golden_id in compared]
            write_golden(connection, chosen, replace=True)
        measured = {BASE: whole[PLAIN]}
        for label, changes in WITHOUT_WINDOWS.items():
            measured[label] = bench.ask(database, label, with_overrides(base, changes))
        for own in cuts:
            count = bench.cut(database, own)
            note(f"{name}: {count} windows made, {own.sentences}/{own.stride}")
            for variant, changes in WITH_WINDOWS.items():
                label = f"{own.sentences}/{own.stride} {variant}"
                measured[label] = bench.ask(database, label, with_overrides(base, changes))
        with database.transaction() as connection:
            write_golden(connection, entries, replace=True)
    tables = [_table(corpus, title, measured, own) for title, own in groups.items()]
    tables += [_left_out(corpus, title, measured, cuts, own) for title, own in groups.items()]
    if corpus.judging:
        judging = {entry.golden_id for entry in entries if corpus.judging in entry.tags}
        tables.append(_table(corpus, "report half", whole, judging))
        pair = _only(whole[FOUND_BY_ALL], judging), _only(whole[WINDOWED], judging)
        tables.append(
            Table(
                f"Found by windows and words, report half: {len(judging)} questions",
                ("minus", *(f"{name}: difference" for name in GAINS.values())),
                [(FOUND_BY_ALL, *_gains(compare(*pair)))],
            )
        )
    return tables, whole


def _table(
    corpus: Corpus, title: str, measured: Mapping[str, QueryMetrics], keys: Collection[UUID | None]
) -> Table:
    own = {label: _only(values, keys) for label, values in measured.items()}
    base, *others = own.values()
    gains = [_gains(comparison) for comparison in compare_pairs([(base, one) for one in others])]
    rows = [
        (label, *(with_interval(values, metric) for metric in SHOWN), *gain)
        for (label, values), gain in zip(own.items(), (["–"] * len(GAINS), *gains), strict=True)
    ]
    return Table(
        f"Windows on {corpus.title}, {title}: {len(base)} questions",
        (
            "windows, and weights",
            *SHOWN.values(),
            *(f"{name}: minus the first" for name in GAINS.values()),
        ),
        rows,
        "Sentences of a window and from one to the next; weights of the chunk's own vectors, its "
        "windows and words. Intervals of 95 %: "
        "Wilson's for hits, BCa bootstrap for means and differences; p by paired randomization, "
        "before and after Holm's adjustment over this table.",
    )


def _left_out(
    corpus: Corpus,
    title: str,
    measured: Mapping[str, QueryMetrics],
    cuts: Sequence[WindowsConfig],
    keys: Collection[UUID | None],
) -> Table:
    """What is lost without the chunk's own vectors, paired with the same windows."""
    pairs = {
        (cut, what): (
            _only(measured[f"{cut} {whole}"], keys),
            _only(measured[f"{cut} {less}"], keys),
        )
        for cut in (f"{own.sentences}/{own.stride}" for own in cuts)
        for what, (whole, less) in LEFT_OUT.items()
    }
    gains = [_gains(comparison) for comparison in compare_pairs(list(pairs.values()))]
    rows = [(*label, *gain) for label, gain in zip(pairs, gains, strict=True)]
    return Table(
        f"Without the chunk's own vectors on {corpus.title}, {title}: {len(keys)} questions",
        ("windows", "without", *(f"{name}: difference" for name in GAINS.values())),
        rows,
        "Both sides ask the same questions of the same windows; intervals and p as above.",
    )


def _gains(comparison: Comparison) -> list[str]:
    metrics = [metric.metric for metric in comparison.metrics]
    return [differences(comparison)[metrics.index(metric)] for metric in GAINS]


def _only(values: QueryMetrics, keys: Collection[UUID | None]) -> QueryMetrics:
    return {key: metrics for key, metrics in values.items() if key in keys}


def of_fresh_notes(
    bench: Bench,
    corpus: Corpus,
    configurations: Mapping[str, RetrievalConfig],
    chunked: Mapping[str, QueryMetrics],
) -> Table:
    """Leave each half of the notes unchunked in turn, and ask for those notes alone.

    Args:
        bench: Indexes and asks.
        corpus: The notes and questions.
        configurations: What to ask, by name.
        chunked: The same with all notes chunked.
    """
    fresh: dict[str, dict[UUID, Mapping[str, float]]] = {name: {} for name in configurations}
    for half in (0, 1):
        late = [n for n in corpus.notes if isinstance(n, NoteRecord) and _half(n) == half]
        with ExitStack() as stack:
            database = bench.open(stack, f"fresh_{half}", corpus, late)
            bench.cut(database, WindowsConfig())
            with database.transaction() as connection:
                found = connection.execute("SELECT id FROM notes WHERE chunked_at IS NULL")
                ids = {row.id for row in found}
                asked = [e for e in list_golden(connection) if set(e.relevant_note_ids) <= ids]
                write_golden(connection, asked, replace=True)
            for name, config in configurations.items():
                fresh[name] |= bench.ask(database, f"half {half} fresh, {name}", config)
    rows = []
    for name in configurations:
        before = _only(chunked[name], fresh[name].keys())
        hits = next(
            metric
            for metric in compare(before, fresh[name]).metrics
            if metric.metric == "hit_rate_at_10"
        )
        low, high = hits.interval
        rows.append(
            (
                name,
                with_interval(before, "hit_rate_at_10"),
                with_interval(fresh[name], "hit_rate_at_10"),
                f"{hits.difference:+.3f} [{low:+.3f}, {high:+.3f}]",
                "yes" if hits.difference >= -BOUND else "no",
            )
        )
    count = len(next(iter(fresh.values())))
    return Table(
        f"Notes not chunked yet: {count} questions that only they answer",
        ("configuration", "chunked", "half not chunked", "difference", f"within {BOUND}"),
        rows,
    )


def of_few_waiting_notes(
    bench: Bench, corpus: Corpus, configurations: Mapping[str, RetrievalConfig]
) -> Table:
    """Leave a few notes unchunked, and ask all questions.

    Args:
        bench: Indexes and asks.
        corpus: The notes and questions.
        configurations: What to ask, by name.
    """
    notes = [item for item in corpus.notes if isinstance(item, NoteRecord)]
    number, remainder = WAITING
    few = [note for note in notes if _draw(note) % number == remainder]
    measured: list[dict[str, QueryMetrics]] = []
    for count in (0, 1, len(few)):
        with ExitStack() as stack:
            database = bench.open(stack, f"waiting_{count}", corpus, few[:count])
            bench.cut(database, WindowsConfig())
            measured.append(
                {
                    name: bench.ask(database, f"{count} waiting, {name}", config)
                    for name, config in configurations.items()
                }
            )
    chunked, *waiting = measured
    rows = []
    for name in configurations:
        gains = [_gains(compare(chunked[name], own[name]))[0] for own in waiting]
        rows.append((name, with_interval(chunked[name], "mrr"), *gains))
    return Table(
        f"A few notes not chunked yet: MRR@10 of all {len(chunked[PLAIN])} questions",
        ("configuration", "all chunked", "one waits", f"{len(few)} wait"),
        rows,
    )


def _half(item: NoteRecord) -> int:
    return _draw(item) % 2


def _draw(item: NoteRecord) -> int:
    return hashlib.sha256(item.external_id.encode()).digest()[1]


def _cut(text: str) -> WindowsConfig:
    sentences, stride = text.split("/")
    return WindowsConfig(sentences=int(sentences), stride=int(stride))


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, nargs="?", metavar="FILE")
    parser.add_argument("--paragraphs", type=int, nargs="+", default=[1, 5])
    cuts = [_cut(text) for text in ("1/1", "2/1", "3/2")]
    parser.add_argument("--cuts", type=_cut, nargs="*", default=cuts)
    parser.add_argument("--home", type=Path, help="keeps the indexes for the next run")
    parser.add_argument("--markdown", type=Path, help="file for the tables")
    asked = parser.parse_args(argv)
    with ExitStack() as stack:
        settings = load_settings(rag_home=stack.enter_context(home_folder(asked.home)))
        configurations = load_configurations(settings.configuration_folders)
        named = {name: configurations[name].retrieval for name in (PLAIN, WINDOWED)}
        named[FOUND_BY_ALL] = with_overrides(
            named[PLAIN], WITH_WINDOWS[".25 · .25 · .5, no contextual vector"]
        )
        server = embedded_server(settings)  # never the database that is in use
        server.up()
        stack.callback(server.down)
        bench = Bench(settings, server)
        if asked.data:
            corpora = [public(asked.data, number, settings) for number in asked.paragraphs]
        else:
            corpora = [sample(settings)]
        tables = []
        for number, corpus in enumerate(corpora):
            own, whole = of_windows(bench, corpus, f"windows_{number}", asked.cuts, named)
            tables += own
            if not asked.data:
                tables.append(of_fresh_notes(bench, corpus, named, whole))
                of_lists = {name: configurations[name].retrieval for name in OF_LISTS}
                tables.append(of_few_waiting_notes(bench, corpus, of_lists))
    show(tables)
    note(f"Questions that failed or were answered in part: {bench.impaired}")
    if asked.markdown:
        asked.markdown.write_text(markdown(tables), encoding="utf-8")


if __name__ == "__main__":
    main()
