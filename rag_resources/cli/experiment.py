"""`rag experiment`: runs the golden questions through a grid of configurations."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rag_resources.cli.output import JsonOption, picked, print_table, progress, say, write_json
from rag_resources.cli.session import application
from rag_resources.languages.labels import METRIC_WORDS
from rag_resources.languages.messages import _

if TYPE_CHECKING:
    from rag_resources.core.experiment import Experiment
    from rag_resources.evaluation.experiment import ExperimentResult


def experiment(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="FICHERO",
            help=_("YAML file with “name”, “base”, “grid” or “configurations”, and “selection”."),
        ),
    ],
    as_json: JsonOption = False,
) -> None:
    """Try every configuration of a file and choose one."""
    from rag_resources.core.experiment import expand
    from rag_resources.evaluation.asking import count_steps
    from rag_resources.evaluation.experiment import load_experiment

    asked = load_experiment(path)
    with application() as opened:
        configurations = expand(asked, opened.configuration(asked.base).retrieval)
        questions = len(opened.golden.entries())
        title = _("Trying configurations: {count}").format(count=len(configurations))
        with progress(title, total=count_steps(questions) * len(configurations)) as advance:
            result = opened.evaluations.experiment(asked, configurations, progress=advance)
    if as_json:
        write_json(_as_json(asked, result))
    else:
        _show(asked, result)


def _show(asked: "Experiment", result: "ExperimentResult") -> None:
    from rag_resources.evaluation.summary import comparison_sentence

    choice, metric = result.choice, asked.selection.metric
    total = next(iter(result.summaries.values())).total_queries
    say(
        _(
            "The best in {metric}: “{name}”. Judged in {parts} parts, each with what the questions "
            "of the others chose ({judged} of {total}):"
        ).format(
            name=choice.best,
            metric=METRIC_WORDS[metric],
            parts=len(choice.by_part),
            judged=len(choice.judged),
            total=total,
        )
    )
    say(comparison_sentence(result.against_base, metric))
    metrics = tuple(dict.fromkeys((metric, "hit_rate_at_10", "mrr")))
    columns = (_("Configuration"), *(METRIC_WORDS[each] for each in metrics), "p50/p95 ms")
    rows = [
        (
            name,
            *(f"{summary.metrics[each]:.3f}" for each in metrics),
            f"{summary.latency.p50_ms:.0f}/{summary.latency.p95_ms:.0f}",
        )
        for name, summary in sorted(
            result.summaries.items(), key=lambda item: -item[1].metrics[metric]
        )
    ]
    title = _("{name} (configurations: {count}; questions: {queries})").format(
        name=asked.name, count=len(rows), queries=total
    )
    print_table(columns, rows, title=title)


def _as_json(asked: "Experiment", result: "ExperimentResult") -> dict[str, Any]:
    choice = result.choice
    return {
        "name": asked.name,
        "base": asked.base,
        "metric": asked.selection.metric,
        "configurations": [
            {
                "name": name,
                "configHash": result.configurations[name].config_hash,
                **picked(summary, "metrics"),
                **picked(summary.latency, "p50_ms", "p95_ms"),
            }
            for name, summary in result.summaries.items()
        ],
        "best": choice.best,
        "chosenByPart": choice.by_part,
        "judgedQueries": len(choice.judged),
        "againstBase": [
            picked(
                *(item, "metric", "interval", "adjusted_p_value", "verdict"),
                base="before",
                chosen="after",
            )
            for item in result.against_base.metrics
        ],
    }
