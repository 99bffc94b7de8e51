"""Runs an experiment: every configuration over the golden questions, each question embedded once.

What an experiment is and how it chooses a configuration is in `core.experiment`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from rag_resources.configurations import read_yaml
from rag_resources.core.comparison import Comparison, QueryMetrics, compare
from rag_resources.core.configuration import RetrievalConfig
from rag_resources.core.errors import DisturbedEvaluationError, InvalidGoldenDatasetError
from rag_resources.core.evaluation import Summary
from rag_resources.core.experiment import (
    Choice,
    Experiment,
    choose,
    parse_experiment,
    split_questions,
)
from rag_resources.database.pool import Database
from rag_resources.evaluation.runner import evaluate
from rag_resources.languages.messages import _, ngettext
from rag_resources.retrieval.pipeline import RetrievalPipeline
from rag_resources.store.golden import list_golden


@dataclass(frozen=True, slots=True)
class ExperimentResult:
    """The result of an experiment.

    Attributes:
        configurations: The configurations tried, by name, the base first.
        summaries: One per configuration, over all questions.
        against_base: The configurations chosen against the base, each over the questions that did
            not choose it.
    """

    configurations: Mapping[str, RetrievalConfig]
    summaries: Mapping[str, Summary]
    choice: Choice
    against_base: Comparison


def load_experiment(path: Path) -> Experiment:
    """Read an experiment from a YAML file.

    Raises:
        InvalidConfigurationError: The file cannot be read or is invalid; all problems are named.
    """
    raw = read_yaml(
        path, headline=_("{origin} is not valid; nothing was changed:").format(origin=path)
    )
    return parse_experiment(raw, origin=str(path))


def run_experiment(
    database: Database,
    pipeline: RetrievalPipeline,
    experiment: Experiment,
    configurations: Mapping[str, RetrievalConfig],
    *,
    progress: Callable[[int], None] = lambda _: None,
) -> ExperimentResult:
    """Evaluate every configuration, choose one, and judge it on questions held out from the choice.

    Nothing is stored: a configuration's history holds only evaluations under its own name.

    Args:
        database: Open.
        pipeline: Over that database. It embeds each question once, so latencies exclude embedding.
        experiment: How to choose.
        configurations: What to try, by name, the base first.
        progress: As for `evaluate`, for each configuration.

    Raises:
        InvalidGoldenDatasetError: There are too few golden questions to both choose and judge.
        ModelMissingError: Nothing is indexed with a configuration's model.
        DisturbedEvaluationError: A configuration could not be asked every question in full.
    """
    with database.transaction() as connection:
        entries = list_golden(connection)
    if len(entries) < experiment.selection.folds:
        message = ngettext(
            "There is {count} question, and at least {needed} are needed to choose with some and "
            "judge with others.",
            "There are {count} questions, and at least {needed} are needed to choose with some "
            "and judge with others.",
            len(entries),
        ).format(count=len(entries), needed=experiment.selection.folds)
        raise InvalidGoldenDatasetError(message, [])
    searching = {item.model: item for item in configurations.values() if item.uses_vectors}
    for config in searching.values():
        # Embed all questions first; otherwise only the first configuration would wait for it.
        for entry in entries:
            pipeline.retrieve(entry.query, config)
    summaries = {}
    for name, config in configurations.items():
        summaries[name] = evaluate(
            database, pipeline, name, config, store=False, progress=progress
        ).summary
        if degraded := summaries[name].degraded_queries:
            reason = _(
                "the evaluation was disturbed: questions that lacked a stage, also when repeated: "
                "{count}; it decides nothing. If windows or vectors of its model are missing, "
                "“rag run” makes them; otherwise evaluate again"
            ).format(count=degraded)
            raise DisturbedEvaluationError(
                _("The experiment chooses nothing: with “{name}”, {reason}.").format(
                    name=name, reason=reason
                ),
                name=name,
            )
    metric = experiment.selection.metric
    results = {name: _query_metrics(summary) for name, summary in summaries.items()}
    choice = choose(results, split_questions(entries, experiment.selection), metric)
    base = next(iter(configurations))
    return ExperimentResult(
        configurations,
        summaries,
        choice,
        compare({key: results[base][key] for key in choice.judged}, choice.judged),
    )


def _query_metrics(summary: Summary) -> QueryMetrics:
    return {UUID(key): metrics for key, metrics in summary.per_query.items()}
