"""`rag experiment`: runs the golden questions through a grid of configurations."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rag_resources.cli.output import JsonOption, console, progress, say, table, write_json
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

    metric = METRIC_WORDS[asked.selection.metric]
    total = next(iter(result.summaries.values())).total_queries
    title = _("{name} (configurations: {count}; questions: {queries})").format(
        name=asked.name, count=len(result.configurations), queries=total
    )
    columns = (
        _("Configuration"),
        *dict.fromkeys((metric, "Hit_Rate@10", "MRR")),
        "p50/p95 ms",
    )
    console().print(table(columns, _rows(columns, asked, result), title=title))
    choice = result.choice
    say(
        _(
            "The best in {metric}: “{name}”. The figure in the table favours it: it is of the "
            "questions that chose it."
        ).format(name=choice.best, metric=metric)
    )
    judged, parts = len(choice.judged), len(choice.by_part)
    say(
        _(
            "Judged in {parts} parts, each with what the questions of the others chose ({judged} "
            "of {total}):"
        ).format(judged=judged, total=total, parts=parts)
    )
    say(comparison_sentence(result.against_base, asked.selection.metric))
    if len(set(choice.by_part)) > 1:
        say(
            _(
                "The parts do not choose the same, so the choice depends on few questions: {names}."
            ).format(names="; ".join(sorted(set(choice.by_part))))
        )


def _rows(
    columns: tuple[str, ...], asked: "Experiment", result: "ExperimentResult"
) -> list[tuple[str, ...]]:
    names = {word: name for name, word in METRIC_WORDS.items()}
    metrics = [names[column] for column in columns if column in names]
    ordered = sorted(
        result.summaries, key=lambda name: -result.summaries[name].metrics[asked.selection.metric]
    )
    return [
        (
            name,
            *(f"{result.summaries[name].metrics[metric]:.3f}" for metric in metrics),
            "{0.p50_ms:.0f}/{0.p95_ms:.0f}".format(result.summaries[name].latency),
        )
        for name in ordered
    ]


def _as_json(asked: "Experiment", result: "ExperimentResult") -> dict[str, Any]:
    choice, against = result.choice, result.against_base
    return {
        "name": asked.name,
        "base": asked.base,
        "metric": asked.selection.metric,
        "configurations": [
            {
                "name": name,
                "configHash": result.configurations[name].config_hash,
                "metrics": dict(summary.metrics),
                "p50Ms": summary.latency.p50_ms,
                "p95Ms": summary.latency.p95_ms,
            }
            for name, summary in result.summaries.items()
        ],
        "best": choice.best,
        "chosenByPart": list(choice.by_part),
        "judgedQueries": len(choice.judged),
        "againstBase": [
            {
                "metric": item.metric,
                "base": item.before,
                "chosen": item.after,
                "interval": list(item.interval),
                "adjustedPValue": item.adjusted_p_value,
                "verdict": item.verdict.value,
            }
            for item in against.metrics
        ],
    }
