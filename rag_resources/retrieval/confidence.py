"""Says in words how sure a response is. What that means is in `core.confidence`."""

from rag_resources.core.confidence import BandName, Claim, Confidence
from rag_resources.core.messages import Message
from rag_resources.core.texts import Text

_CLAIMS = {
    Claim.RESULTS: Message.CONFIDENCE_RESULTS,
    Claim.FIRST: Message.CONFIDENCE_FIRST,
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


def band_in_words(name: BandName) -> Text:
    """Return the name of a band."""
    return _BANDS[name].format()
