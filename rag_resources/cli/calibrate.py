"""`rag calibrate`: measures how sure the responses of a configuration are, and stores it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rag_resources.cli.output import JsonOption, picked, print_table, progress, say, write_json
from rag_resources.cli.session import application
from rag_resources.core.messages import Message

if TYPE_CHECKING:
    from rag_resources.core.calibration import Calibrated
    from rag_resources.core.silence import SilenceCurve

CLAIM_WORDS = {
    "results": Message.CALIBRATE_CLAIM_RESULTS,
    "first": Message.CALIBRATE_CLAIM_FIRST,
    "citation": Message.CALIBRATE_CLAIM_CITATION,
    "answerable": Message.CALIBRATE_CLAIM_ANSWERABLE,
}

SHOWN_ALLOWED = (0.02, 0.05, 0.1, 0.2, 0.3)
SILENCE_COLUMNS = (
    Message.COLUMN_ALLOWED_MISSES,
    Message.COLUMN_MISSES,
    Message.COLUMN_INTERVAL,
    Message.COLUMN_FALSE_ANSWERS,
    Message.COLUMN_INTERVAL,
)


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
    from rag_resources.evaluation.calibration import calibration_steps
    from rag_resources.golden.files import read_unanswerable

    beside = tuple(read_unanswerable(unanswerable, tag=tag)) if unanswerable else ()
    with application() as opened:
        if config is None:
            serving = opened.serving.now()
            name, retrieval = serving.name, serving.config
        else:
            name, retrieval = config, opened.configuration(config).retrieval
        total = calibration_steps(len(opened.evaluations.questions(tag)), len(beside))
        with progress(Message.CALIBRATE_PROGRESS, total=total) as advance:
            found = opened.confidences.calibrate(
                retrieval, unanswerable=beside, tag=tag, progress=advance
            )
    if as_json:
        write_json(_as_json(name, found))
    else:
        show_calibrated(name, found)
    if not found.measured:
        raise typer.Exit(1)


def show_calibrated(name: str, found: "Calibrated") -> None:
    """Show how certain responses are, by band, and what could not be measured."""
    from rag_resources.core.calibration import FEWEST
    from rag_resources.core.confidence import Claim
    from rag_resources.core.texts import joined
    from rag_resources.evaluation.summary import p_value_in_words
    from rag_resources.retrieval.confidence import band_in_words

    made, too_few = found.calibration, []
    for claim in Claim:
        words, measured = CLAIM_WORDS[claim], found.measured.get(claim)
        if measured is None:
            too_few.append(words)
            continue
        say(
            Message.CALIBRATE_MEASURED.format(
                claim=words,
                auc=measured.auc,
                low=measured.auc_low,
                high=measured.auc_high,
                brier=measured.brier,
                constant=measured.constant_brier,
                p_value=p_value_in_words(measured.p_value),
            )
        )
    if not found.measured:
        say(Message.CALIBRATE_UNMEASURED.format(questions=made.questions, fewest=FEWEST))
        return
    if too_few:
        claims = joined("; ", too_few)
        say(Message.CALIBRATE_TOO_FEW.format(claims=claims, fewest=FEWEST))
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
        if claim is not Claim.ANSWERABLE
        for band in model.bands
    ]
    title = Message.CALIBRATE_TITLE.format(
        name=name, questions=made.questions, unanswerable=made.unanswerable
    )
    print_table(columns, rows, title=title)
    if found.silence:
        print_table(SILENCE_COLUMNS, _silence_rows(found.silence))
    if made.silence is None:
        say(Message.CALIBRATE_NO_SILENCE)
    say(Message.CALIBRATE_STORED)


def _silence_rows(curve: "SilenceCurve") -> list[list[str]]:
    """Return the misses and false answers for some allowed shares of misses."""
    rows = []
    for allowed in SHOWN_ALLOWED:
        point = curve.at(allowed)
        missed, false = curve.intervals(point)
        rows.append(
            [
                f"{allowed:.0%}",
                f"{curve.misses(point):.3f}",
                f"{missed.low:.3f}–{missed.high:.3f}",
                f"{curve.false_answers(point):.3f}",
                f"{false.low:.3f}–{false.high:.3f}",
            ]
        )
    return rows


def _as_json(name: str, found: "Calibrated") -> dict[str, Any]:
    silence, claims = found.silence, found.calibration.claims
    return {
        "configuration": name,
        **picked(found.calibration, "questions", "unanswerable"),
        "measured": {
            claim.value: picked(item, "auc", "brier", "constant_brier", "p_value")
            | {
                "aucInterval": [item.auc_low, item.auc_high],
                "gainInterval": [item.gain_low, item.gain_high],
            }
            for claim, item in found.measured.items()
        },
        "silence": silence and [silence.to_json(point) for point in silence.points],
        "bands": {
            claim.value: [band.to_json() for band in model.bands] for claim, model in claims.items()
        },
    }
