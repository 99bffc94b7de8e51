"""`rag calibrate`: measures how sure the responses of a configuration are, and stores it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rag_resources.cli.output import JsonOption, picked, print_table, progress, say, write_json
from rag_resources.cli.session import application
from rag_resources.languages.messages import _, ngettext

if TYPE_CHECKING:
    from rag_resources.core.calibration import Calibrated
    from rag_resources.core.silence import SilenceCurve

CLAIM_WORDS = {
    "results": _("a note that answers is among the results"),
    "first": _("the note of the first result answers"),
    "citation": _("the first citation of the answer is right"),
    "answerable": _("the notes that answer were searched"),
}

SHOWN_ALLOWED = (0.02, 0.05, 0.1, 0.2, 0.3)
SILENCE_COLUMNS = (
    _("allowed silences"),
    _("questions with an answer left unanswered"),
    _("95 % CI"),
    _("answered without their notes"),
    _("95 % CI"),
)


def calibrate(
    config: Annotated[
        str | None,
        typer.Option(
            "--config",
            metavar="NOMBRE",
            help=_("Named configuration; by default the promoted one."),
        ),
    ] = None,
    tag: Annotated[
        str | None,
        typer.Option("--tag", metavar="ETIQUETA", help=_("Only the questions with this tag.")),
    ] = None,
    unanswerable: Annotated[
        Path | None,
        typer.Option(
            "--unanswerable",
            metavar="FICHERO",
            help=_("JSON file of questions that no note answers."),
        ),
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
        total = calibration_steps(len(opened.golden.entries(tag)), len(beside))
        with progress(_("Questions to measure confidence"), total=total) as advance:
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
    from rag_resources.evaluation.summary import p_value_in_words
    from rag_resources.languages.messages import joined
    from rag_resources.retrieval.confidence import band_in_words

    made, too_few = found.calibration, []
    for claim in Claim:
        words, measured = CLAIM_WORDS[claim], found.measured.get(claim)
        if measured is None:
            too_few.append(words)
            continue
        say(
            _(
                "{claim}: AUC {auc:.3f} ({low:.3f}–{high:.3f}), Brier {brier:.3f} (always the "
                "same: {constant:.3f}; p {p_value})"
            ).format(
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
        say(
            ngettext(
                "Nothing was measured: there is {questions} question, and at least {fewest} that "
                "are right and {fewest} that are wrong are needed. No calibration is stored.",
                "Nothing was measured: there are {questions} questions, and at least {fewest} "
                "that are right and {fewest} that are wrong are needed. No calibration is stored.",
                made.questions,
            ).format(questions=made.questions, fewest=FEWEST)
        )
        return
    if too_few:
        claims = joined("; ", too_few)
        say(
            _(
                "Not measured, since at least {fewest} questions in which it is true and {fewest} "
                "in which it is not are needed: {claims}."
            ).format(claims=claims, fewest=FEWEST)
        )
    if not made.claims:
        say(
            _(
                "What is known of an answer does not tell whether it is right: no calibration is "
                "stored."
            )
        )
        return
    columns = [
        _("What"),
        _("Confidence"),
        _("Right"),
        _("95 % CI"),
        _("Questions"),
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
    title = ngettext(
        "Confidence of “{name}”, measured with {questions} question ({unanswerable} without an "
        "answer in the notes)",
        "Confidence of “{name}”, measured with {questions} questions ({unanswerable} without an "
        "answer in the notes)",
        made.questions,
    ).format(name=name, questions=made.questions, unanswerable=made.unanswerable)
    print_table(columns, rows, title=title)
    if found.silence:
        print_table(SILENCE_COLUMNS, _silence_rows(found.silence))
    if made.silence is None:
        say(
            _(
                "Nothing tells questions with an answer from those without, so “rag ask” is never "
                "silent because of that."
            )
        )
    say(
        _(
            "Stored: answers of this configuration tell their confidence as long as neither the "
            "notes nor the model change."
        )
    )


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
