"""Runs an experiment: every configuration over the golden questions, each embedded once.

What an experiment is, and how one configuration is chosen, is `core.experiment`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from rag_resources.configurations import read_yaml
from rag_resources.core.comparison import Comparison, QueryMetrics, compare
from rag_resources.core.configuration import RetrievalConfig
from rag_resources.core.errors import InvalidGoldenDatasetError
from rag_resources.core.evaluation import Summary
from rag_resources.core.experiment import (
    Choice,
    Experiment,
    Point,
    Split,
    choose,
    pareto_front,
    parse_experiment,
    split_questions,
)
from rag_resources.core.messages import Message
from rag_resources.database.pool import Database
from rag_resources.evaluation.runner import evaluate
from rag_resources.retrieval.pipeline import RetrievalPipeline
from rag_resources.store.golden import list_golden


@dataclass(frozen=True, slots=True)
class ExperimentResult:
    """What an experiment found.

    Attributes:
        configurations: What was tried, by name, the base first.
        summaries: Of each over all questions.
        front: Names of those that none beats in quality and latency at once, best quality first.
        against_base: What was chosen against the base, over the questions that judge.
    """

    configurations: Mapping[str, RetrievalConfig]
    summaries: Mapping[str, Summary]
    split: Split
    choice: Choice
    front: tuple[str, ...]
    against_base: Comparison


def load_experiment(path: Path) -> Experiment:
    """Read an experiment from a YAML file.

    Raises:
        InvalidConfigurationError: It cannot be read, or is not valid; every problem is named.
    """
    raw = read_yaml(path, headline=Message.INVALID_EXPERIMENT.format(origin=path))
    return parse_experiment(raw, origin=str(path))


def run_experiment(
    database: Database,
    pipeline: RetrievalPipeline,
    experiment: Experiment,
    configurations: Mapping[str, RetrievalConfig],
    *,
    progress: Callable[[int], None] = lambda _: None,
) -> ExperimentResult:
    """Evaluate every configuration, choose one, and judge the choice on questions it did not see.

    Nothing is stored: the history of a configuration is made of evaluations under its name.

    Args:
        database: Open.
        pipeline: Over that database, which embeds a question once: latencies leave that out.
        experiment: How to choose.
        configurations: What to try, by name, the base first.
        progress: Called with 1 after each question of each configuration.

    Raises:
        InvalidGoldenDatasetError: There are too few golden questions to choose and to judge.
        ModelMissingError: Nothing is indexed with the model of a configuration.
    """
    with database.transaction() as connection:
        entries = list_golden(connection)
    if len(entries) < experiment.selection.folds:
        message = Message.EXPERIMENT_TOO_FEW.format(
            count=len(entries), needed=experiment.selection.folds
        )
        raise InvalidGoldenDatasetError(message, [])
    searching = {item.model: item for item in configurations.values() if item.uses_vectors}
    for config in searching.values():
        # Every question's vectors, now: the first configuration would be the only one to wait.
        for entry in entries:
            pipeline.retrieve(entry.query, config)
    summaries = {
        name: evaluate(database, pipeline, name, config, store=False, progress=progress).summary
        for name, config in configurations.items()
    }
    metric = experiment.selection.metric
    results = {name: _query_metrics(summary) for name, summary in summaries.items()}
    split = split_questions(entries, experiment.selection)
    choice = choose(results, split, metric)
    base = next(iter(configurations))
    points = [
        Point(name, summary.metrics[metric], summary.latency.p50_ms)
        for name, summary in summaries.items()
    ]
    return ExperimentResult(
        configurations,
        summaries,
        split,
        choice,
        tuple(pareto_front(points)),
        compare({key: results[base][key] for key in choice.judged}, choice.judged),
    )


def _query_metrics(summary: Summary) -> QueryMetrics:
    return {UUID(key): metrics for key, metrics in summary.per_query.items()}
