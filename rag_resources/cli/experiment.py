"""`rag experiment`: runs the golden questions through a grid of configurations."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rag_resources.cli.output import JsonOption, picked, print_table, progress, say, write_json
from rag_resources.cli.session import application
from rag_resources.languages.labels import METRIC_WORDS
from rag_resources.languages.messages import _

if TYPE_CHECKING:
    from rag_resources.core.comparison import Comparison
    from rag_resources.core.experiment import Experiment
    from rag_resources.evaluation.experiment import ExperimentResult


def experiment(
    path: Annotated[
        Path | None,
        typer.Argument(
            metavar="FICHERO",
            help=_(
                "YAML file with “name”, “base”, “grid” or “configurations”, and “selection”. "
                "Without one, the weights of what serves are tried."
            ),
        ),
    ] = None,
    tag: Annotated[
        str | None,
        typer.Option(
            "--tag",
            metavar="ETIQUETA",
            help=_("Only the questions with it choose; the others judge the choice, too."),
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Try every configuration of a file, or other weights, and offer the best if it is better."""
    from rag_resources.core.experiment import expand, weights_experiment
    from rag_resources.evaluation.asking import count_steps
    from rag_resources.evaluation.experiment import load_experiment

    asked = load_experiment(path) if path else None
    with application() as opened:
        if asked:
            base = opened.configuration(asked.base).retrieval
        else:
            serving = opened.serving.now()
            base = serving.config
            asked = weights_experiment(serving.name, base)
        configurations = expand(asked, base)
        questions = len(opened.golden.entries())
        title = _("Trying configurations: {count}").format(count=len(configurations))
        with progress(title, total=count_steps(questions) * len(configurations)) as advance:
            result = opened.evaluations.experiment(asked, configurations, tag=tag, progress=advance)
        offered = offer(asked, result, opened.settings.own_configurations)
    if as_json:
        write_json(_as_json(asked, result) | {"offered": offered})
        return
    show_experiment(asked, result)
    if offered is None:
        say(_("No evidence that another is better: keep “{base}”.").format(base=asked.base))
        return
    say(
        _(
            "It is better: written to {path}. With RAG_CONFIGURATIONS={folder} in .env, “rag "
            "evaluate {name}” measures it, and “rag promote {name}” lets it serve if it passes "
            "the gate."
        ).format(path=offered, folder=offered.parent, name=offered.stem)
    )


def offer(asked: "Experiment", result: "ExperimentResult", folder: Path) -> Path | None:
    """Write the best as a named configuration if it is significantly better than the base."""
    from rag_resources.core.configuration import NamedConfiguration
    from rag_resources.serving.serving import write_configuration

    if not result.is_better:
        return None
    best = NamedConfiguration(
        name=f"{asked.base[:34]}_tuned",
        description=_("{base}, with what an experiment chose: {best}.").format(
            base=asked.base, best=result.choice.best
        ),
        retrieval=result.configurations[result.choice.best],
    )
    return write_configuration(folder, best, replace=True)


def show_experiment(asked: "Experiment", result: "ExperimentResult") -> None:
    """Say what was chosen, how it was judged, and the figures of all that was tried."""
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
    if result.on_the_rest:
        told = comparison_sentence(result.on_the_rest, metric)
        say(
            _("“{name}” on the {count} questions that chose nothing: {told}").format(
                name=choice.best, count=result.on_the_rest.queries, told=told
            )
        )
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
        "againstBase": _compared(result.against_base),
        "onTheRest": result.on_the_rest and _compared(result.on_the_rest),
    }


def _compared(comparison: "Comparison") -> list[dict[str, Any]]:
    return [
        picked(
            *(item, "metric", "interval", "adjusted_p_value", "verdict"),
            base="before",
            chosen="after",
        )
        for item in comparison.metrics
    ]
