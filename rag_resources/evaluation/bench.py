"""How good configurations are on a public question set, in a database of its own.

Sets and runs are read in `evaluation.question_sets`.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import fmean
from uuid import UUID

import numpy as np

from rag_resources.configurations import read_yaml
from rag_resources.core.comparison import (
    COMPARED,
    MetricComparison,
    QueryMetrics,
    compare_pairs,
)
from rag_resources.core.configuration import NamedConfiguration, canonical_hash
from rag_resources.core.errors import DisturbedEvaluationError
from rag_resources.core.experiment import Experiment, expand, weights_experiment
from rag_resources.core.gate import wilson_interval
from rag_resources.core.metrics import SERVED, JudgedRanking, per_query_metrics
from rag_resources.core.retrievers import VectorKind
from rag_resources.core.tables import ReportTable
from rag_resources.core.types import TimeWindow, Vectors
from rag_resources.core.windows import WindowsConfig
from rag_resources.database.migrations import migrate
from rag_resources.database.pool import Database
from rag_resources.database.server import EmbeddedServer
from rag_resources.evaluation.experiment import ExperimentResult, run_experiment
from rag_resources.evaluation.question_sets import QuestionSet
from rag_resources.evaluation.runner import evaluate
from rag_resources.evaluation.summary import VERDICT_WORDS, p_value_in_words
from rag_resources.indexing.chunk import chunk_window
from rag_resources.indexing.embed import embed_chunks, embed_notes
from rag_resources.ingestion.ingest import ingest
from rag_resources.languages.messages import _
from rag_resources.providers.cache import Limits, MemoryCache
from rag_resources.providers.cached_embedder import CachedEmbedder
from rag_resources.providers.protocols import Embedder
from rag_resources.providers.registry import build_embedder
from rag_resources.retrieval.pipeline import RetrievalPipeline
from rag_resources.settings import Settings
from rag_resources.store.chunks import refresh_statistics
from rag_resources.store.golden import write_golden
from rag_resources.store.models import register_model
from rag_resources.store.notes import note_id
from rag_resources.store.status import read_status
from rag_resources.store.vector_indexes import ensure_vector_indexes
from rag_resources.store.vectors import keep_vectors

METRICS = {
    "hit_rate_at_1": "@1",
    "hit_rate_at_5": "@5",
    "hit_rate_at_10": "Hit_Rate@10",
    "mrr": "MRR@10",
    "ndcg_at_10": "nDCG@10",
}
"""What is shown, by its name in the code."""

PUBLISHED = Path(__file__).with_name("published.yaml")
EVERYTHING = TimeWindow(datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))
SOURCE = "bench"
VECTORS = Limits(entries=50_000, lifetime_s=7 * 24 * 3600)
"""Of questions: some 100 MB at most."""

Progress = Callable[..., AbstractContextManager[Callable[[int], None]]]
"""Shows the progress of a task: called with what it is and its `total`."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What a configuration, or a run of another system, found.

    Attributes:
        model: Of the configuration; a dash for one by words alone, and for a run.
        p50_ms: Median latency without embedding the question; None for a run.
        found: The external ids of the notes that were found, best first, by question.
    """

    model: str
    per_query: QueryMetrics
    p50_ms: float | None = None
    found: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BenchResult:
    """The figures of a set: what was measured by name, the first to be compared with."""

    notes: int
    chunks: int
    questions: int
    measured: Mapping[str, Measured]


class Bench:
    """Indexes and measures question sets, a database for each on one server.

    Args:
        settings: Chunking, models and their servers.
        server: Running.
        configurations: What is measured, by name.
        progress: Shows what goes on.
    """

    def __init__(
        self,
        settings: Settings,
        server: EmbeddedServer,
        configurations: Mapping[str, NamedConfiguration],
        progress: Progress,
    ) -> None:
        self._settings = settings
        self._server = server
        self._configurations = configurations
        self._progress = progress
        self._vectors: MemoryCache[Vectors] = MemoryCache(VECTORS)

    def measure(
        self, dataset: QuestionSet, runs: Mapping[str, Mapping[UUID, tuple[str, ...]]]
    ) -> BenchResult:
        """Ask every configuration all questions, and judge the runs of other systems.

        Raises:
            DisturbedEvaluationError: Texts could not be indexed, or questions not be asked in full.
        """
        with self.indexed(dataset) as database:
            with database.transaction() as connection:
                status = read_status(connection)
            if status.failures:
                raise DisturbedEvaluationError(
                    _("Texts that could not be indexed: {count}.").format(count=status.failures)
                )
            measured = {
                name: self._asked(database, dataset, named)
                for name, named in self._configurations.items()
            }
        for name, run in runs.items():
            judged = {
                str(each.golden_id): JudgedRanking(
                    frozenset(each.notes), run.get(each.golden_id, ())
                )
                for each in dataset.questions
            }
            measured[name] = Measured("–", _by_id(per_query_metrics(judged)))
        return BenchResult(status.notes, status.chunks, len(dataset.questions), measured)

    def weigh(self, dataset: QuestionSet) -> tuple[Experiment, ExperimentResult]:
        """Try other weights of the first configuration; see `weights_experiment`."""
        name, named = next(iter(self._configurations.items()))
        asked = weights_experiment(name, named.retrieval)
        tried = expand(asked, named.retrieval)
        with self.indexed(dataset) as database:
            title = _("Trying configurations: {count}").format(count=len(tried))
            total = 2 * len(dataset.questions) * len(tried)
            with self._progress(title, total=total) as advance:
                pipeline = self._pipeline(database)
                return asked, run_experiment(database, pipeline, asked, tried, progress=advance)

    @contextmanager
    def indexed(self, dataset: QuestionSet) -> Iterator[Database]:
        """Lend the database of a set, which is indexed unless an earlier run did."""
        identity = [
            self._settings.chunking.model_dump(mode="json"),
            [[note.external_id, note.title, note.content] for note in dataset.notes],
        ]
        name = f"bench_{canonical_hash(identity)}"
        self._server.ensure_database(name)
        migrate(self._server.dsn(name))
        with Database(self._server.dsn(name)) as database:
            self._index(database, dataset)
            yield database

    def _pipeline(self, database: Database) -> RetrievalPipeline:
        return RetrievalPipeline(
            database,
            embedder=self._embedder,
            tenant=self._settings.tenant,
            keep_vectors=partial(keep_vectors, database),
        )

    def _embedder(self, model: str) -> Embedder:
        return CachedEmbedder(build_embedder(model, self._settings.servers), self._vectors)

    def _index(self, database: Database, dataset: QuestionSet) -> None:
        """Make chunks, and the vectors that the configurations search."""
        tenant, cutting = self._settings.tenant, WindowsConfig()
        ingest(database, dataset.notes, tenant=tenant, source=SOURCE)
        entries = [question.entry(tenant, SOURCE) for question in dataset.questions]
        with database.transaction() as connection:
            write_golden(connection, entries, replace=True, reason="bench")
        chunk_window(database, EVERYTHING, self._settings.chunking)
        with database.transaction() as connection:
            refresh_statistics(connection)
        searching = [named.retrieval for named in self._configurations.values()]
        for second in {config.score.model for config in searching if config.score}:
            with database.transaction() as connection:
                info = build_embedder(second, self._settings.servers).info
                register_model(connection, info, {VectorKind.CHUNK})
        for model in sorted({config.model for config in searching if config.uses_vectors}):
            embedder = build_embedder(model, self._settings.servers)
            kinds = {kind for own in searching if own.model == model for kind in own.vector_kinds}
            with database.transaction() as connection:
                register_model(connection, embedder.info, kinds, windows=cutting)
            title = _("Vectors of {model}").format(model=model)
            with self._progress(title, total=2 * len(dataset.notes)) as advance:
                embed_chunks(database, embedder, EVERYTHING, windows=cutting, progress=advance)
                embed_notes(database, embedder, EVERYTHING, progress=advance)
            ensure_vector_indexes(database, embedder.info)

    def _asked(
        self, database: Database, dataset: QuestionSet, named: NamedConfiguration
    ) -> Measured:
        config, tenant = named.retrieval, self._settings.tenant
        pipeline = self._pipeline(database)
        pipeline.warm_up(config)
        if config.uses_vectors:
            # All at once: otherwise only the first configuration of a model would wait for them.
            self._embedder(config.model).embed_queries([each.query for each in dataset.questions])
        title = _("Evaluating: {names}…").format(names=named.name)
        with self._progress(title, total=2 * len(dataset.questions)) as advance:
            made = evaluate(database, pipeline, named.name, config, store=False, progress=advance)
        impaired = made.summary.failed_queries + made.summary.degraded_queries
        if impaired:
            raise DisturbedEvaluationError(
                _("“{name}”: questions that failed or were not asked in full: {count}.").format(
                    name=named.name, count=impaired
                )
            )
        names = {
            str(note_id(tenant, SOURCE, own.external_id)): own.external_id for own in dataset.notes
        }
        asked = {str(each.golden_id): each.query_id for each in dataset.questions}
        return Measured(
            next(iter(config.models), "–"),
            _by_id(made.summary.per_query),
            made.summary.latency.p50_ms,
            {asked[own.key]: [names[key] for key in own.judged.distinct] for own in made.outcomes},
        )


def _by_id(per_query: Mapping[str, Mapping[str, float]]) -> QueryMetrics:
    return {
        UUID(key): {name: values[name] for name in (*METRICS, "hit_rate_at_3") if name in values}
        for key, values in per_query.items()
    }


def tables_of(result: BenchResult, title: str, published: Mapping[str, float]) -> list[ReportTable]:
    """Return the figures with their intervals, best first, and the first against the others.

    Args:
        result: What was measured.
        title: What it was measured on.
        published: The MRR@10 that others have published for this set, by system.
    """
    ordered = sorted(result.measured.items(), key=lambda item: -mean(item[1].per_query, "mrr"))
    rows = [
        (
            name,
            own.model,
            *(with_interval(own.per_query, metric) for metric in METRICS),
            "–" if own.p50_ms is None else f"{own.p50_ms:.0f}",
        )
        for name, own in ordered
    ]
    rows += [
        (name, _("published"), *(shown(value) if key == "mrr" else "–" for key in METRICS), "–")
        for name, value in published.items()
    ]
    quality = ReportTable(
        _("Quality with {title} (notes: {notes}; chunks: {chunks}; questions: {questions})").format(
            title=title, notes=result.notes, chunks=result.chunks, questions=result.questions
        ),
        (_("Configuration"), _("Model"), *METRICS.values(), "p50 ms"),
        tuple(rows),
    )
    first, *others = result.measured
    if not others:
        return [quality]
    base = result.measured[first].per_query
    compared = compare_pairs([(result.measured[name].per_query, base) for name in others])
    tested = [metric for metric in COMPARED if metric != SERVED]
    contrasts = ReportTable(
        _("“{name}” minus the others, with {title}").format(name=first, title=title),
        (_("minus"), *(METRICS[metric] for metric in tested)),
        tuple(
            (
                name,
                *map(_in_words, comparison.metrics),
            )
            for name, comparison in zip(others, compared, strict=True)
        ),
    )
    return [quality, contrasts]


def _in_words(item: MetricComparison) -> str:
    low, high = item.interval
    verdict = f"p {p_value_in_words(item.adjusted_p_value)}, {VERDICT_WORDS[item.verdict]}"
    return f"{item.difference:+z.3f} [{low:+z.3f}, {high:+z.3f}], {verdict}"


def with_interval(values: QueryMetrics, metric: str) -> str:
    """Show a mean with its interval of 95 %: Wilson's for hits, BCa bootstrap for the others."""
    low, high = interval(values, metric)
    return f"{shown(mean(values, metric))} {shown(low)}–{shown(high)}"


def interval(values: QueryMetrics, metric: str) -> tuple[float, float]:
    """Return the interval of a mean of 95 %: Wilson's for hits, BCa bootstrap for the others."""
    own = [question[metric] for question in values.values()]
    if metric.startswith("hit_rate"):
        wilson = wilson_interval(round(sum(own)), len(own))
        return wilson.low, wilson.high
    from rag_resources.core.significance import bootstrap_intervals

    return bootstrap_intervals(np.array(own)[:, None])[0]


def mean(values: QueryMetrics, metric: str) -> float:
    """Return the mean of a metric over all questions."""
    return fmean(question[metric] for question in values.values())


def shown(value: float) -> str:
    """Show a number with three places, and no zero before the point."""
    return f"{value:.3f}".removeprefix("0")


def published_figures(path: Path, paragraphs: int) -> Mapping[str, float]:
    """Return the MRR@10 that others have published for a set, by system; empty if none is known.

    Args:
        path: The set; it is known by its SHA-256.
        paragraphs: How many of its paragraphs make a note.
    """
    if not path.is_file():
        return {}
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    for known in read_yaml(PUBLISHED, headline=str(PUBLISHED)):
        if (known["sha256"], known["paragraphs"]) == (digest, paragraphs):
            figures: dict[str, float] = known["mrr_at_10"]
            return figures
    return {}
