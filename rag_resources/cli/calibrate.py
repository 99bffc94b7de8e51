"""`rag calibrate`: measures how sure the responses of a configuration are, and stores it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rag_resources.cli.output import JsonOption, console, progress, say, table, write_json
from rag_resources.cli.session import application
from rag_resources.core.messages import Message

if TYPE_CHECKING:
    from rag_resources.core.calibration import Calibrated

CLAIM_WORDS = {
    "results": Message.CALIBRATE_CLAIM_RESULTS,
    "first": Message.CALIBRATE_CLAIM_FIRST,
}


def calibrate(
    config: Annotated[
        str | None, typer.Option("--config", metavar="NOMBRE", help=Message.HELP_CALIBRATE_CONFIG)
    ] = None,
    tag: Annotated[
        str | None, typer.Option("--tag", metavar="ETIQUETA", help=Message.HELP_FUSION_TAG)
    ] = None,
    unanswerable: Annotated[
        Path | None,
        typer.Option("--unanswerable", metavar="FICHERO", help=Message.HELP_CALIBRATE_UNANSWERABLE),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Ask the golden questions, and store the bands of confidence with their precision."""
    from rag_resources.golden.unanswerable import read_unanswerable

    beside = tuple(read_unanswerable(unanswerable, tag=tag)) if unanswerable else ()
    with application() as opened:
        if config is None:
            serving = opened.serving.now()
            name, retrieval = serving.name, serving.config
        else:
            name, retrieval = config, opened.configuration(config).retrieval
        total = len(opened.evaluations.questions(tag)) + len(beside)
        with progress(Message.CALIBRATE_PROGRESS, total=total) as advance:
            found = opened.confidences.calibrate(
                retrieval, unanswerable=beside, tag=tag, progress=advance
            )
    if as_json:
        write_json(_as_json(name, found))
    else:
        _show(name, found)


def _show(name: str, found: "Calibrated") -> None:
    from rag_resources.core.calibration import FEWEST
    from rag_resources.core.confidence import Claim
    from rag_resources.evaluation.summary import p_value_in_words
    from rag_resources.retrieval.confidence import band_in_words

    made = found.calibration
    for claim in Claim:
        words, measured = CLAIM_WORDS[claim], found.measured.get(claim)
        if measured is None:
            say(Message.CALIBRATE_TOO_FEW.format(claim=words, fewest=FEWEST))
            continue
        say(
            Message.CALIBRATE_MEASURED.format(
                claim=words,
                auc=measured.auc,
                low=measured.auc_interval.low,
                high=measured.auc_interval.high,
                brier=measured.brier,
                constant=measured.constant_brier,
                p_value=p_value_in_words(measured.p_value),
            )
        )
    if not made.claims:
        say(Message.CALIBRATE_NOTHING)
        return
    columns = [
        Message.COLUMN_CLAIM,
        Message.COLUMN_BAND,
        Message.COLUMN_RIGHT,
        Message.COLUMN_INTERVAL,
        Message.COLUMN_QUERIES,
    ]
    rows = [
        [
            CLAIM_WORDS[claim],
            band_in_words(band.name),
            f"{band.precision:.3f}",
            f"{band.interval.low:.3f}–{band.interval.high:.3f}",
            str(band.questions),
        ]
        for claim, model in made.claims.items()
        for band in model.bands
    ]
    title = Message.CALIBRATE_TITLE.format(
        name=name, questions=made.questions, unanswerable=made.unanswerable
    )
    console().print(table(columns, rows, title=title))
    say(Message.CALIBRATE_STORED)


def _as_json(name: str, found: "Calibrated") -> dict[str, Any]:
    made = found.calibration
    return {
        "configuration": name,
        "questions": made.questions,
        "unanswerable": made.unanswerable,
        "measured": {
            claim.value: {
                "auc": item.auc,
                "aucInterval": list(item.auc_interval),
                "brier": item.brier,
                "constantBrier": item.constant_brier,
                "gainInterval": list(item.gain),
                "pValue": item.p_value,
            }
            for claim, item in found.measured.items()
        },
        "bands": {
            claim.value: [band.to_json() for band in model.bands]
            for claim, model in made.claims.items()
        },
    }
