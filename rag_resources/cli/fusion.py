"""`rag fusion train`: learns a fusion from the golden questions, and writes it only if it wins."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rag_resources.cli.output import JsonOption, console, progress, say, table, write_json
from rag_resources.cli.session import application
from rag_resources.cli.usage import command, group
from rag_resources.core.messages import METRIC_WORDS, Message

if TYPE_CHECKING:
    from rag_resources.core.configuration import NamedConfiguration
    from rag_resources.evaluation.fusion_training import FusionTraining

app = group("fusion", Message.HELP_FUSION)

BAR_CHARS = 24

FEATURE_WORDS = {
    "semantic": Message.FEATURE_SEMANTIC,
    "contextual": Message.FEATURE_CONTEXTUAL,
    "windows": Message.FEATURE_WINDOWS,
    "fulltext": Message.FEATURE_FULLTEXT,
    "coverage": Message.FEATURE_COVERAGE,
    "sentence": Message.FEATURE_SENTENCE,
    "phrase": Message.FEATURE_PHRASE,
    "closeness": Message.FEATURE_CLOSENESS,
    "length": Message.FEATURE_LENGTH,
}

FusionFile = Annotated[Path, typer.Argument(metavar="FICHERO", help=Message.HELP_FUSION_FILE)]
Base = Annotated[
    str | None, typer.Option("--base", metavar="NOMBRE", help=Message.HELP_FUSION_BASE)
]
Tag = Annotated[str | None, typer.Option("--tag", metavar="ETIQUETA", help=Message.HELP_FUSION_TAG)]


@command(app, "train", Message.HELP_FUSION_TRAIN)
def train(
    path: FusionFile, base: Base = None, tag: Tag = None, as_json: JsonOption = False
) -> None:
    """Train, judge on questions not seen, and write a configuration if it is better."""
    from rag_resources.configurations import check_new_configuration, write_configuration
    from rag_resources.evaluation.fusion_training import STEPS

    check_new_configuration(path)
    with application() as opened:
        if base is None:
            serving = opened.serving.now()
            name, config = serving.name, serving.config
        else:
            name, config = base, opened.configuration(base).retrieval
        total = STEPS * len(opened.evaluations.questions(tag))
        with progress(Message.FUSION_PROGRESS, total=total) as advance:
            found = opened.evaluations.train_fusion(name, config, tag=tag, progress=advance)
    written = None
    if found.is_better:
        description = Message.FUSION_DESCRIPTION.format(base=name, queries=found.teaching)
        written = write_configuration(path, found.config, description=description)
    if as_json:
        write_json(_as_json(found, written))
    else:
        _show(found, path, written)


def _show(found: "FusionTraining", path: Path, written: "NamedConfiguration | None") -> None:
    from rag_resources.evaluation.summary import p_value_in_words

    features = found.trained.model.features
    highest = max(abs(item.weight) for item in features.values()) or 1.0
    rows = [
        [FEATURE_WORDS[name], f"{item.weight:+.2f}", _bar(item.weight / highest)]
        for name, item in sorted(features.items(), key=lambda each: -abs(each[1].weight))
    ]
    columns = [Message.COLUMN_FEATURE, Message.COLUMN_WEIGHT, ""]
    queries = found.comparison.queries
    title = Message.FUSION_TITLE.format(queries=queries, teaching=found.teaching)
    console().print(table(columns, rows, title=title))
    say(Message.FUSION_METHOD.format(base=found.base, parts=len(found.by_part)))
    for item in found.comparison.metrics:
        say(
            Message.FUSION_METRIC.format(
                metric=METRIC_WORDS[item.metric],
                before=item.before,
                after=item.after,
                difference=item.difference,
                low=item.interval.low,
                high=item.interval.high,
                p_value=p_value_in_words(item.p_value),
            )
        )
    if written:
        config_hash = written.retrieval.config_hash
        say(Message.FUSION_BETTER.format(path=path, name=written.name, config_hash=config_hash))
    elif found.mrr.difference < 0:
        say(Message.FUSION_NOT_HIGHER.format(base=found.base))
    else:
        say(Message.FUSION_NO_EVIDENCE.format(base=found.base))


def _bar(share: float) -> str:
    """A bar to the right of a middle line, or to the left of it if the share is negative."""
    filled = "█" * round(abs(share) * BAR_CHARS / 2)
    half = BAR_CHARS // 2
    return f"{'' if share > 0 else filled:>{half}}│{filled if share > 0 else '':<{half}}"


def _as_json(found: "FusionTraining", written: "NamedConfiguration | None") -> dict[str, Any]:
    return {
        "base": found.base,
        "queries": found.comparison.queries,
        "teachingQueries": found.teaching,
        "folds": len(found.by_part),
        "penalty": found.trained.penalty,
        "penaltyByFold": [item.penalty for item in found.by_part],
        "model": found.trained.model.model_dump(mode="json"),
        "configHash": found.config.config_hash,
        "metrics": [
            {
                "metric": item.metric,
                "present": item.before,
                "learned": item.after,
                "interval": list(item.interval),
                "pValue": item.p_value,
            }
            for item in found.comparison.metrics
        ],
        "better": found.is_better,
        "written": written and written.name,
    }
