"""Runs an experiment: every configuration over the golden questions, each question embedded once.

What an experiment is and how it chooses a configuration is in `core.experiment`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from rag_resources.configurations import read_yaml
from rag_resources.core.comparison import Comparison, QueryMetrics, Verdict, compare
from rag_resources.core.configuration import RetrievalConfig
from rag_resources.core.errors import DisturbedEvaluationError, InvalidGoldenDatasetError
from rag_resources.core.evaluation import Summary
from rag_resources.core.experiment import (
    Choice,
    Experiment,
    Metric,
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
        metric: What chose.
        against_base: The configurations chosen against the base, each over the questions that did
            not choose it.
        on_the_rest: The best against the base on the questions without the tag; None if all chose.
    """

    configurations: Mapping[str, RetrievalConfig]
    summaries: Mapping[str, Summary]
    choice: Choice
    metric: Metric
    against_base: Comparison
    on_the_rest: Comparison | None = None

    @property
    def is_better(self) -> bool:
        """Whether choosing so is worth it: significantly better than the base, and not the base."""
        [item] = [each for each in self.against_base.metrics if each.metric == self.metric]
        is_other = self.choice.best != next(iter(self.configurations))
        return is_other and item.verdict is Verdict.BETTER


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
    tag: str | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> ExperimentResult:
    """Evaluate every configuration, choose one, and judge it on questions held out from the choice.

    Nothing is stored: a configuration's history holds only evaluations under its own name.

    Args:
        database: Open.
        pipeline: Over that database. It embeds each question once, so latencies exclude embedding.
        experiment: How to choose.
        configurations: What to try, by name, the base first.
        tag: Only the questions with it choose; None lets all of them.
        progress: As for `evaluate`, for each configuration.

    Raises:
        InvalidGoldenDatasetError: There are too few golden questions to both choose and judge.
        ModelMissingError: Nothing is indexed with a configuration's model.
        DisturbedEvaluationError: A configuration could not be asked every question in full.
    """
    with database.transaction() as connection:
        entries = list_golden(connection)
    asking = [entry for entry in entries if tag is None or tag in entry.tags]
    parts = split_questions(asking, experiment.selection)
    if len(parts) < experiment.selection.folds:
        message = ngettext(
            "There is {count} question about notes of its own, and at least {needed} are needed to "
            "choose with some and judge with others.",
            "There are {count} groups of questions about notes of their own, and at least {needed} "
            "are needed to choose with some and judge with others.",
            len(parts),
        ).format(count=len(parts), needed=experiment.selection.folds)
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
    chosen_by = {entry.golden_id for entry in asking}
    choosing = {
        name: {key: own for key, own in asked.items() if key in chosen_by}
        for name, asked in results.items()
    }
    choice = choose(choosing, parts, metric)
    base = results[next(iter(configurations))]
    rest = base.keys() - choice.judged.keys()
    return ExperimentResult(
        configurations,
        summaries,
        choice,
        metric,
        compare({key: base[key] for key in choice.judged}, choice.judged),
        compare({key: base[key] for key in rest}, {key: results[choice.best][key] for key in rest})
        if rest
        else None,
    )


def _query_metrics(summary: Summary) -> QueryMetrics:
    return {UUID(key): metrics for key, metrics in summary.per_query.items()}
