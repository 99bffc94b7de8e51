"""How good the named configurations are on a question set in the format of SQuAD.

    python -m tests.benchmarks.bench_quality FILE [--paragraphs 1 5 10] [--models NAME …]
        [--questions N] [--home FOLDER] [--markdown FILE]

Every configuration is measured with every model over notes of several lengths and compared with
the default question by question; then some questions choose how to fuse, and others judge the
choice. Everything but the times comes out the same in every run. What is compared and how is
`quality_study`, what is shown `quality_tables`.
"""

import argparse
import hashlib
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

from rag_resources.cli.output import note, progress
from rag_resources.configurations import DEFAULT_CONFIGURATION, load_configurations
from rag_resources.core.configuration import canonical_hash
from rag_resources.core.evaluation import Summary
from rag_resources.core.golden import GoldenEntry
from rag_resources.core.significance import SEED
from rag_resources.core.types import TimeWindow, Vectors
from rag_resources.core.windows import windows_hash
from rag_resources.database.locate import embedded_server
from rag_resources.database.migrations import migrate
from rag_resources.database.pool import Database
from rag_resources.database.server import EmbeddedServer
from rag_resources.evaluation.runner import evaluate
from rag_resources.golden.files import squad_entries
from rag_resources.indexing.chunk import chunk_window
from rag_resources.indexing.embed import embed_chunks, embed_notes
from rag_resources.indexing.windows import embed_windows
from rag_resources.ingestion.ingest import ingest
from rag_resources.ingestion.squad import SquadDataset, read_squad
from rag_resources.providers.cache import Limits, MemoryCache
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
from tests.benchmarks.homes import home_folder
from tests.benchmarks.quality_study import (
    SELECTION,
    Length,
    Measured,
    Variant,
    fusion_variants,
    length_title,
    named_variants,
    study,
)
from tests.benchmarks.quality_tables import METRICS, PASSAGE_METRICS, markdown, quality_tables, show

EVERYTHING = TimeWindow(datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))
SOURCE = "squad"
QUESTIONS_SEED = 0
PATIENT_MS = 60_000.0
VECTORS = Limits(entries=50_000, lifetime_s=7 * 24 * 3600)
"""Of questions: some 100 MB at most."""


class Bench:
    """Indexes and measures, a database per note length on one server.

    Args:
        settings: Of a home of its own.
        server: Running.
        models: Names of embedding models.
        variants: What is measured.
    """

    def __init__(
        self,
        settings: Settings,
        server: EmbeddedServer,
        models: Sequence[str],
        variants: Sequence[Variant],
    ) -> None:
        self._settings = settings
        self._server = server
        self._models = models
        self._variants: dict[str, Variant] = {}
        for variant in variants:
            self._variants.setdefault(variant.config.config_hash, variant)
        self._vectors: MemoryCache[Vectors] = MemoryCache(VECTORS)

    def measure(self, paragraphs: tuple[int, ...], dataset: SquadDataset) -> Length:
        """Index notes, unless an earlier run did, and ask every variant all of their questions."""
        title = length_title(paragraphs)
        name = f"quality_{self._fingerprint(dataset)}"
        self._server.ensure_database(name)
        migrate(self._server.dsn(name))
        with Database(self._server.dsn(name)) as database:
            self._index(database, dataset, title)
            with database.transaction() as connection:
                questions = list_golden(connection)
                status = read_status(connection)
            if status.failures:
                raise SystemExit(f"{title}: {status.failures} texts could not be indexed")
            measured = self._evaluate(database, questions, title)
        return Length(paragraphs, status.notes, status.chunks, questions, measured)

    def _fingerprint(self, dataset: SquadDataset) -> str:
        """Identify what is indexed and asked: the notes, the questions and the cut."""
        return canonical_hash(
            [
                self._settings.chunking.model_dump(mode="json"),
                [[note.external_id, note.title, note.content] for note in dataset.notes],
                [[question.query, question.note_external_ids] for question in dataset.questions],
            ]
        )

    def _embedder(self, model: str) -> Embedder:
        own = build_embedder(model, self._settings.servers)
        return CachedEmbedder(own, self._vectors)

    def _index(self, database: Database, dataset: SquadDataset, title: str) -> None:
        """Make chunks, their vectors and those of whole notes, by every model."""
        tenant = self._settings.tenant
        ingest(database, dataset.notes, tenant=tenant, source=SOURCE)
        entries = squad_entries(dataset, tenant=tenant, source=SOURCE)
        with database.transaction() as connection:
            write_golden(connection, entries, replace=True)
        chunk_window(database, EVERYTHING, self._settings.chunking)
        with database.transaction() as connection:
            refresh_statistics(connection)
        for model in self._models:
            embedder = build_embedder(model, self._settings.servers)
            with database.transaction() as connection:
                register_model(connection, embedder.info, embeds_chunks=True)
            with progress(f"{title}: {model}", total=2 * len(dataset.notes)) as advance:
                embed_chunks(database, embedder, EVERYTHING, progress=advance)
                embed_notes(database, embedder, EVERYTHING, progress=advance)
            ensure_vector_indexes(database, embedder.info)
            if any(own.config.searches_windows for own in self._variants.values()):
                self._cut(database, embedder)
            note(f"{title}: indexed with {model}")

    def _cut(self, database: Database, embedder: Embedder) -> None:
        """Make the windows of the chunks."""
        cutting, info = self._settings.windows, embedder.info
        with database.transaction() as connection:
            register_windows(connection, info.name, windows_hash=windows_hash(cutting))
        embed_windows(database, embedder, cutting, EVERYTHING)
        ensure_window_indexes(database, info)

    def _evaluate(
        self, database: Database, questions: Sequence[GoldenEntry], title: str
    ) -> dict[str, Measured]:
        pipeline = RetrievalPipeline(
            database,
            embedder=self._embedder,
            tenant=self._settings.tenant,
            note_model=self._models[0],
        )
        searching = {own.model: own for own in self._variants.values() if own.model}
        for model, variant in searching.items():
            # Every question's vectors, now: the first to be measured would be the only one to wait.
            pipeline.warm_up(variant.config)
            with progress(f"{title}: questions {model}", total=len(questions)) as advance:
                for entry in questions:
                    pipeline.retrieve(entry.query, variant.config, deadline_ms=PATIENT_MS)
                    advance(1)
        measured = {}
        for key, variant in self._variants.items():
            label = f"{title}: {variant.name} {variant.model}".rstrip()
            with progress(label, total=len(questions)) as advance:
                summary = evaluate(
                    database, pipeline, variant.name, variant.config, store=False, progress=advance
                ).summary
            measured[key] = _kept(summary)
            note(f"{label}: MRR@10 {summary.metrics['mrr']:.3f}")
        return measured


def _kept(summary: Summary) -> Measured:
    """Keep only what is shown and compared; keeping everything would take three times as much."""
    return Measured(
        {
            UUID(key): {metric: values[metric] for metric in METRICS}
            for key, values in summary.per_query.items()
        },
        summary.latency.p50_ms,
        summary.failed_queries + summary.degraded_queries,
        {
            UUID(key): {metric: values[metric] for metric in PASSAGE_METRICS}
            for key, values in summary.passages.per_query.items()
        },
    )


def read_lengths(
    path: Path, paragraphs: Sequence[int], questions: int | None
) -> dict[tuple[int, ...], SquadDataset]:
    """Read a file at every note length; merge lengths that give the same notes."""
    read: list[tuple[list[int], SquadDataset]] = []
    for number in sorted(set(paragraphs)):
        dataset = read_squad(
            path, paragraphs_per_note=number, questions=questions, seed=QUESTIONS_SEED
        )
        contents = [item.content for item in dataset.notes]
        for numbers, other in read:
            if contents == [item.content for item in other.notes]:
                numbers.append(number)
                break
        else:
            read.append(([number], dataset))
    return {tuple(numbers): dataset for numbers, dataset in read}


def facts_of(
    path: Path, settings: Settings, models: Sequence[str], dataset: SquadDataset
) -> dict[str, str]:
    """Describe what was measured, so that the numbers can be reproduced."""
    commit = subprocess.run(
        ["git", "--no-optional-locks", "describe", "--always", "--dirty", "--exclude=*"],
        cwd=Path(__file__).parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=False,
    ).stdout.strip()
    infos = [build_embedder(model, settings.servers).info for model in models]
    chunking = settings.chunking
    return {
        "data": f"{path.name}, SHA-256 {hashlib.sha256(path.read_bytes()).hexdigest()[:12]}…",
        "questions": f"{len(dataset.questions):,} (not usable: {len(dataset.rejected)})",
        "models": ", ".join(f"{info.name} ({info.digest[:12]})" for info in infos),
        "chunks": f"at most {chunking.max_tokens} tokens, overlap {chunking.overlap_tokens}",
        "commit": commit or "unknown",
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "seeds": f"questions {QUESTIONS_SEED}, split {SELECTION.seed}, statistics {SEED}",
    }


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, metavar="FILE", help="in the format of SQuAD")
    parser.add_argument("--paragraphs", type=int, nargs="+", default=[1, 5, 10])
    parser.add_argument("--models", nargs="+", help="those of EMBEDDING_MODELS by default")
    parser.add_argument("--questions", type=int, help="how many to draw; all by default")
    parser.add_argument("--home", type=Path, help="keeps the indexes for the next run")
    parser.add_argument("--markdown", type=Path, help="file for the tables")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    asked = arguments(argv)
    lengths = read_lengths(asked.data, asked.paragraphs, asked.questions)
    with ExitStack() as stack:
        home = stack.enter_context(home_folder(asked.home))
        settings = load_settings(rag_home=home)
        models = asked.models or settings.embedding_models
        configurations = load_configurations(settings.configuration_folders)
        variants = named_variants(configurations, models, DEFAULT_CONFIGURATION)
        own_model = configurations[DEFAULT_CONFIGURATION].retrieval.model
        defaults = sorted(
            (variant for variant in variants if variant.name == DEFAULT_CONFIGURATION),
            key=lambda variant: variant.model != own_model,
        )
        fusions = [made for default in defaults for made in fusion_variants(default)]
        # Now: by the end of the run the commit may be another one.
        facts = facts_of(asked.data, settings, models, next(iter(lengths.values())))
        server = embedded_server(settings)  # never the database that is in use
        server.up()
        stack.callback(server.down)
        bench = Bench(settings, server, models, [*variants, *fusions])
        measured = [bench.measure(*length) for length in lengths.items()]
    tables = quality_tables(
        facts, measured, variants, defaults, study(measured, variants, defaults)
    )
    show(tables)
    if asked.markdown:
        asked.markdown.write_text(markdown(tables), encoding="utf-8")


if __name__ == "__main__":
    main()
