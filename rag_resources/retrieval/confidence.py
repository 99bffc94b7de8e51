"""Says in words how likely a response is right. How that is known is in `core.confidence`."""

from dataclasses import replace

from rag_resources.core.confidence import BandName, Claim, Confidence, Silence
from rag_resources.core.messages import Message
from rag_resources.core.texts import Text

_CLAIMS = {
    Claim.RESULTS: Message.CONFIDENCE_RESULTS,
    Claim.FIRST: Message.CONFIDENCE_FIRST,
    Claim.CITATION: Message.CONFIDENCE_CITATION,
}
_BANDS = {
    BandName.HIGH: Message.BAND_HIGH,
    BandName.MEDIUM: Message.BAND_MEDIUM,
    BandName.LOW: Message.BAND_LOW,
}


def confidence_in_words(confidence: Confidence) -> list[Text]:
    """Return a sentence for each claim, with the measured precision, or why there is none."""
    if confidence.missing is not None:
        return [Message.CONFIDENCE_MISSING.format(reason=confidence.missing)]
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
        return [Message.ANSWER_UNCALIBRATED.format(reason=reason)]
    said = []
    if silence.is_silent and silence.curve and silence.point:
        curve, point = silence.curve, silence.point
        shares = (100 * curve.misses(point), 100 * curve.false_answers(point))
        said.append(Message.SILENCE_WHY.format(misses=shares[0], false_answers=shares[1]))
    elif confidence and not silence.is_silent:
        bands = dict(confidence.bands)
        if Claim.CITATION in bands:
            bands = {Claim.CITATION: bands[Claim.CITATION]}
        said += confidence_in_words(replace(confidence, bands=bands))
    if silence.missing is not None:
        said.append(Message.SILENCE_MISSING.format(reason=silence.missing))
    return said


def band_in_words(name: BandName) -> Text:
    """Return the name of a band."""
    return _BANDS[name].format()
