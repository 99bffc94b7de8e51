"""Says in words how likely a response is right. How that is known is in `core.confidence`."""

from dataclasses import replace

from rag_resources.core.confidence import BandName, Claim, Confidence, Silence
from rag_resources.languages.messages import Text, _

_CLAIMS = {
    Claim.RESULTS: _(
        "Confidence {band}: of {questions} questions like this, a note among the results answered "
        "in {precision:.0f}% (95% CI: {low:.0f}–{high:.0f})"
    ),
    Claim.FIRST: _(
        "Confidence {band} in the first one: of {questions} questions like this, its note "
        "answered in {precision:.0f}% (95% CI: {low:.0f}–{high:.0f})"
    ),
    Claim.CITATION: _(
        "Confidence {band} in the first citation: of {questions} questions like this, it was "
        "right in {precision:.0f}% (95% CI: {low:.0f}–{high:.0f})"
    ),
}
_BANDS = {
    BandName.HIGH: _("high"),
    BandName.MEDIUM: _("medium"),
    BandName.LOW: _("low"),
}


def confidence_in_words(confidence: Confidence) -> list[Text]:
    """Return a sentence for each claim, with the measured precision, or why there is none."""
    if confidence.missing is not None:
        return [_("Confidence not calibrated: {reason}").format(reason=confidence.missing)]
    return [
        _CLAIMS[claim].format(
            band=_BANDS[band.name],
            questions=band.questions,
            precision=100 * band.precision,
            low=100 * band.interval.low,
            high=100 * band.interval.high,
        )
        for claim, band in confidence.bands.items()
    ]


def answer_in_words(confidence: Confidence | None, silence: Silence | None) -> list[Text]:
    """Say how likely an answer is right, and why it was withheld, or why that is not known."""
    if silence is None:
        return []
    reason = confidence.missing if confidence else None
    if silence.missing is not None and silence.missing == reason:
        return [
            _(
                "Not calibrated, so that what the notes do not say is sometimes answered, too: "
                "{reason}"
            ).format(reason=reason)
        ]
    said = []
    if silence.is_silent and silence.curve and silence.point:
        curve, point = silence.curve, silence.point
        shares = (100 * curve.misses(point), 100 * curve.false_answers(point))
        said.append(
            _(
                "What there is looks like what is found when no note answers. This silence leaves "
                "{misses:.0f}% of the questions unanswered that have an answer, and "
                "{false_answers:.0f}% of those without one are answered. “rag retrieve” shows the "
                "nearest passages."
            ).format(misses=shares[0], false_answers=shares[1])
        )
    elif confidence and not silence.is_silent:
        bands = dict(confidence.bands)
        if Claim.CITATION in bands:
            bands = {Claim.CITATION: bands[Claim.CITATION]}
        said += confidence_in_words(replace(confidence, bands=bands))
    if silence.missing is not None:
        said.append(
            _("Silence not calibrated, so whatever can be answered is: {reason}").format(
                reason=silence.missing
            )
        )
    return said


def band_in_words(name: BandName) -> Text:
    """Return the name of a band."""
    return _BANDS[name].format()
