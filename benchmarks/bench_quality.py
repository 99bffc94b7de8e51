"""How good the named configurations are on a question set in the format of SQuAD.

    python -m benchmarks.bench_quality FILE [--paragraphs 1 5 10] [--questions N]
        [--home FOLDER] [--markdown FILE]

Every configuration is measured over notes of several lengths, and the default is compared with the
others question by question. Everything but the times comes out the same in every run.
"""

import argparse
import hashlib
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

from benchmarks.homes import home_folder
from benchmarks.squad import SquadSet, read_squad
from benchmarks.tables import (
    COMPARED_WORDS,
    METRICS,
    Table,
    differences,
    length_title,
    markdown,
    mean,
    show,
    with_interval,
)
from rag_resources.cli.output import note, progress
from rag_resources.configurations import DEFAULT_CONFIGURATION, load_configurations
from rag_resources.core.comparison import QueryMetrics, compare_pairs
from rag_resources.core.configuration import NamedConfiguration, canonical_hash
from rag_resources.core.evaluation import Summary
from rag_resources.core.retrievers import VectorKind
from rag_resources.core.types import TimeWindow, Vectors
from rag_resources.core.windows import WindowsConfig
from rag_resources.database.locate import embedded_server
from rag_resources.database.migrations import migrate
from rag_resources.database.pool import Database
from rag_resources.database.server import EmbeddedServer
from rag_resources.evaluation.runner import evaluate
from rag_resources.indexing.chunk import chunk_window
from rag_resources.indexing.embed import embed_chunks, embed_notes
from rag_resources.ingestion.ingest import ingest
from rag_resources.providers.cache import Limits, MemoryCache
from rag_resources.providers.cached_embedder import CachedEmbedder
from rag_resources.providers.protocols import Embedder
from rag_resources.providers.registry import build_embedder
from rag_resources.retrieval.pipeline import RetrievalPipeline
from rag_resources.settings import Settings, load_settings
from rag_resources.store.chunks import refresh_statistics
from rag_resources.store.golden import write_golden
from rag_resources.store.models import register_model
from rag_resources.store.status import read_status
from rag_resources.store.vector_indexes import ensure_vector_indexes

EVERYTHING = TimeWindow(datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))
SOURCE = "squad"
PATIENT_MS = 60_000.0
VECTORS = Limits(entries=50_000, lifetime_s=7 * 24 * 3600)
"""Of questions: some 100 MB at most."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What is kept of an evaluation."""

    model: str
    per_query: QueryMetrics
    p50_ms: float
    impaired: int


class Bench:
    """Indexes and measures, a database per note length on one server."""

    def __init__(
        self,
        settings: Settings,
        server: EmbeddedServer,
        configurations: Mapping[str, NamedConfiguration],
    ) -> None:
        self._settings = settings
        self._server = server
        self._configurations = configurations
        self._vectors: MemoryCache[Vectors] = MemoryCache(VECTORS)

    def measure(self, dataset: SquadSet, title: str) -> list[Table]:
        """Ask every configuration all questions."""
        with self.indexed(dataset, title) as database:
            with database.transaction() as connection:
                status = read_status(connection)
            if status.failures:
                raise SystemExit(f"{title}: {status.failures} texts could not be indexed")
            measured = self._evaluate(database, dataset, title)
        size = f"{title} ({status.notes:,} notes, {status.chunks:,} chunks)"
        return [_quality(size, measured), _contrasts(title, measured)]

    @contextmanager
    def indexed(self, dataset: SquadSet, title: str) -> Iterator[Database]:
        """Lend the database of some notes, which are indexed unless an earlier run did."""
        name = f"quality_{self._fingerprint(dataset)}"
        self._server.ensure_database(name)
        migrate(self._server.dsn(name))
        with Database(self._server.dsn(name)) as database:
            self._index(database, dataset, title)
            yield database

    def _fingerprint(self, dataset: SquadSet) -> str:
        """Identify what is indexed and asked: the notes, the questions and the cut."""
        return canonical_hash(
            [
                self._settings.chunking.model_dump(mode="json"),
                [[note.external_id, note.title, note.content] for note in dataset.notes],
                [[question.query, question.notes] for question in dataset.questions],
            ]
        )

    def _embedder(self, model: str) -> Embedder:
        return CachedEmbedder(build_embedder(model, self._settings.servers), self._vectors)

    def _index(self, database: Database, dataset: SquadSet, title: str) -> None:
        """Make chunks, windows and vectors, and those of whole notes, by every model."""
        tenant, cutting = self._settings.tenant, WindowsConfig()
        ingest(database, dataset.notes, tenant=tenant, source=SOURCE)
        entries = [question.entry(tenant, SOURCE) for question in dataset.questions]
        with database.transaction() as connection:
            write_golden(connection, entries, replace=True)
        chunk_window(database, EVERYTHING, self._settings.chunking)
        with database.transaction() as connection:
            refresh_statistics(connection)
        for model in self._settings.embedding_models:
            embedder = build_embedder(model, self._settings.servers)
            info = embedder.info
            with database.transaction() as connection:
                register_model(connection, info, set(VectorKind), windows=cutting)
            with progress(f"{title}: {model}", total=2 * len(dataset.notes)) as advance:
                embed_chunks(database, embedder, EVERYTHING, windows=cutting, progress=advance)
                embed_notes(database, embedder, EVERYTHING, progress=advance)
            ensure_vector_indexes(database, info)

    def _evaluate(self, database: Database, dataset: SquadSet, title: str) -> dict[str, Measured]:
        pipeline = RetrievalPipeline(
            database,
            embedder=self._embedder,
            tenant=self._settings.tenant,
        )
        measured = {}
        for name, named in self._configurations.items():
            # First all vectors of questions, or the first of a model's would be the only to wait.
            pipeline.warm_up(named.retrieval)
            for question in dataset.questions:
                pipeline.retrieve(question.query, named.retrieval, deadline_ms=PATIENT_MS)
            with progress(f"{title}: {name}", total=len(dataset.questions)) as advance:
                summary = evaluate(
                    database, pipeline, name, named.retrieval, store=False, progress=advance
                ).summary
            measured[name] = _kept(summary, named.retrieval.models)
            note(f"{title}: {name}: MRR@10 {summary.metrics['mrr']:.3f}")
        return measured


def _kept(summary: Summary, models: Sequence[str]) -> Measured:
    return Measured(
        next(iter(models), "–"),
        {
            UUID(key): {metric: values[metric] for metric in METRICS}
            for key, values in summary.per_query.items()
        },
        summary.latency.p50_ms,
        summary.failed_queries + summary.degraded_queries,
    )


def _quality(size: str, measured: Mapping[str, Measured]) -> Table:
    """Every metric of every configuration with its interval, best first."""
    ordered = sorted(measured, key=lambda name: -mean(measured[name].per_query, "mrr"))
    rows = [
        (
            name,
            measured[name].model,
            *(with_interval(measured[name].per_query, metric) for metric in METRICS),
            f"{measured[name].p50_ms:.0f}",
        )
        for name in ordered
    ]
    return Table(
        f"Quality with {size}",
        ("configuration", "model", *METRICS.values(), "p50 ms"),
        rows,
        "Intervals of 95 %: Wilson's for hits, BCa bootstrap for means. p50 leaves out the "
        "embedding of the question. "
        f"Failed or answered in part: {sum(own.impaired for own in measured.values())}.",
    )


def _contrasts(title: str, measured: Mapping[str, Measured]) -> Table:
    """What the default is worth beside each other configuration."""
    others = [name for name in measured if name != DEFAULT_CONFIGURATION]
    default = measured[DEFAULT_CONFIGURATION].per_query
    compared = compare_pairs([(measured[name].per_query, default) for name in others])
    return Table(
        f"The default against the others with {title}",
        ("minus", *COMPARED_WORDS),
        [
            (name, *differences(comparison))
            for name, comparison in zip(others, compared, strict=True)
        ],
        "Paired by question, BCa intervals of 95 %; p by McNemar's exact test for hits and by "
        "paired randomization for means, before and after Holm's adjustment.",
    )


def facts_of(path: Path, settings: Settings) -> Table:
    """Describe what was measured, so that the numbers can be reproduced."""
    commit = subprocess.run(
        ["git", "--no-optional-locks", "describe", "--always", "--dirty", "--exclude=*"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    infos = [build_embedder(model, settings.servers).info for model in settings.embedding_models]
    facts = {
        "data": f"{path.name}, SHA-256 {hashlib.sha256(path.read_bytes()).hexdigest()[:12]}…",
        "models": ", ".join(f"{info.name} ({info.digest[:12]})" for info in infos),
        "commit": commit or "unknown",
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
    }
    return Table("What was measured", ("", ""), list(facts.items()))


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, metavar="FILE", help="in the format of SQuAD")
    parser.add_argument("--paragraphs", type=int, nargs="+", default=[1, 5, 10])
    parser.add_argument("--questions", type=int, help="how many are drawn; all by default")
    parser.add_argument("--home", type=Path, help="folder that keeps the index")
    parser.add_argument("--markdown", type=Path, help="file for the tables")
    asked = parser.parse_args(argv)
    with ExitStack() as stack:
        settings = load_settings(rag_home=stack.enter_context(home_folder(asked.home)))
        # Now: by the end of the run the commit may be another one.
        tables = [facts_of(asked.data, settings)]
        server = embedded_server(settings)  # never the database that is in use
        server.up()
        stack.callback(server.down)
        bench = Bench(settings, server, load_configurations(settings.configuration_folders))
        for number in asked.paragraphs:
            dataset = read_squad(asked.data, paragraphs_per_note=number, questions=asked.questions)
            tables += bench.measure(dataset, length_title(number))
    show(tables)
    if asked.markdown:
        asked.markdown.write_text(markdown(tables), encoding="utf-8")


if __name__ == "__main__":
    main()
