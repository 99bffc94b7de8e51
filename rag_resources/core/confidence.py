"""The confidence of a response: a band whose precision was measured on the user's golden questions.

The signals are in `core.confidence_signals`, measuring the bands in `core.calibration`. An answer
made from the passages can be judged by the same claims.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from pydantic import Field

from rag_resources.core.fusion_config import Part, Share
from rag_resources.core.gate import Interval, wilson_interval
from rag_resources.core.logistic import Coefficient, FeatureWeight, probability
from rag_resources.core.silence import SilenceCurve, SilencePoint


class Signal(StrEnum):
    """A number computed from a response that its confidence depends on; see its module."""

    DROP = "drop"
    WORDS = "words"
    LENGTH = "length"
    SCORE = "score"
    GAP = "gap"
    SENTENCE = "sentence"
    LEAD = "lead"
    SIMILARITY = "similarity"
    COVERAGE = "coverage"
    CONTEXT = "context"


Signals = Mapping[Signal, float]


class Claim(StrEnum):
    """A claim about a response, or about the answer made from it, that is true or false.

    `results`: a note that answers is among the results that a user gets. `first`: it is the first.
    `citation`: the first sentence of the answer cites a place or note that answers. `answerable`:
    the notes that answer were searched; if that is unlikely, no answer is given (`core.silence`).
    """

    RESULTS = "results"
    FIRST = "first"
    CITATION = "citation"
    ANSWERABLE = "answerable"


OF_RESPONSES = (Claim.RESULTS, Claim.FIRST)
OF_ANSWERS = (Claim.CITATION,)
"""The claims that people read about, as bands."""

_OF_RESPONSE = (Signal.DROP, Signal.WORDS, Signal.LENGTH)
_OF_ANSWER = tuple(signal for signal in Signal if signal is not Signal.WORDS)
SIGNALS: Mapping[Claim, tuple[Signal, ...]] = {
    Claim.RESULTS: _OF_RESPONSE,
    Claim.FIRST: _OF_RESPONSE,
    Claim.CITATION: _OF_ANSWER,
    Claim.ANSWERABLE: _OF_ANSWER,
}
"""The signals of each claim."""


class BandName(StrEnum):
    """The three bands, each with a third of the questions that measured them."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Band(Part):
    """The responses whose probability is at least `from_probability`, and below the band above.

    Attributes:
        right: For how many of the questions in the band the claim was true; each was judged by a
            model that had not seen questions about the same notes.
        questions: How many questions are in the band.
    """

    name: BandName
    from_probability: Share
    right: int = Field(ge=0)
    questions: int = Field(ge=1)

    @property
    def precision(self) -> float:
        """The measured share of responses for which the claim is true."""
        return self.right / self.questions

    @property
    def interval(self) -> Interval:
        """Its 95 % interval by Wilson."""
        return wilson_interval(self.right, self.questions)

    def to_json(self) -> dict[str, Any]:
        """Return the camelCase form of the command line, HTTP and the store."""
        return {
            "band": self.name.value,
            "precision": self.precision,
            "interval": [self.interval.low, self.interval.high],
            "questions": self.questions,
        }


class ClaimModel(Part):
    """The logistic model of one claim, and its bands.

    Attributes:
        bands: The highest first; the last one begins at 0.
    """

    intercept: Coefficient
    signals: dict[Signal, FeatureWeight] = Field(min_length=1)
    bands: tuple[Band, ...] = Field(min_length=1)

    def probability_of(self, signals: Signals) -> float:
        """Return the probability that the claim is true of a response, in [0, 1]."""
        return probability(self.intercept, self.signals, signals)

    def band_of(self, signals: Signals) -> Band:
        """Return the band of a response."""
        likely = self.probability_of(signals)
        return next(
            (band for band in self.bands if likely >= band.from_probability), self.bands[-1]
        )


class Calibration(Part):
    """The measured confidence of a configuration's responses.

    Attributes:
        claims: Only those that the signals predict better than a constant.
        questions: How many questions it was made from.
        unanswerable: How many of them no note answers.
        silence: Misses and false answers by threshold; None if no signal says when to be silent.
        answerer: Name and version of what the signals of answers were computed from; their claims
            are valid for no other.
    """

    claims: dict[Claim, ClaimModel]
    questions: int = Field(ge=1)
    unanswerable: int = Field(ge=0)
    silence: SilenceCurve | None = None
    answerer: str = ""


@dataclass(frozen=True, slots=True)
class Confidence:
    """The confidence of a response.

    Attributes:
        bands: By claim; empty without a calibration.
        missing: Why there is none, in Spanish; None if there is one.
    """

    bands: Mapping[Claim, Band]
    missing: str | None = None

    def reworded(self, render: Callable[[str], str]) -> "Confidence":
        """Return it with what is missing in other words."""
        return self if self.missing is None else replace(self, missing=render(self.missing))

    def to_json(self) -> dict[str, Any]:
        """Return the camelCase form; `missing` says why nothing is calibrated."""
        if self.missing is not None:
            return {"missing": self.missing}
        return {claim.value: band.to_json() for claim, band in self.bands.items()}


@dataclass(frozen=True, slots=True)
class Silence:
    """Whether an answer is withheld, and by which threshold.

    Attributes:
        is_silent: Whether it is withheld.
        curve: Misses and false answers by threshold; None without a calibration.
        point: The threshold that was used; None without a calibration.
        missing: Why there is none, in Spanish; None if there is one.
    """

    is_silent: bool
    curve: SilenceCurve | None = None
    point: SilencePoint | None = None
    missing: str | None = None

    def reworded(self, render: Callable[[str], str]) -> "Silence":
        """Return it with what is missing in other words."""
        return self if self.missing is None else replace(self, missing=render(self.missing))

    def to_json(self) -> dict[str, Any]:
        """Return the camelCase form; `missing` says why nothing is calibrated."""
        if self.curve is None or self.point is None:
            return {"silent": self.is_silent, "missing": self.missing}
        return {"silent": self.is_silent, **self.curve.to_json(self.point)}


def confidence_of(
    calibration: Calibration, signals: Signals, claims: Collection[Claim] = OF_RESPONSES
) -> Confidence:
    """Return the confidence of a response with these signals, for the calibrated claims."""
    return Confidence(
        {
            claim: model.band_of(signals)
            for claim, model in calibration.claims.items()
            if claim in claims
        }
    )


def silence_of(
    calibration: Calibration, signals: Signals, *, allowed_misses: float
) -> Silence | None:
    """Return whether an answer with these signals is withheld; None if that is not calibrated.

    Args:
        calibration: The configuration's.
        signals: The answer's.
        allowed_misses: Share of answerable questions that may be left unanswered.
    """
    model = calibration.claims.get(Claim.ANSWERABLE)
    if model is None or calibration.silence is None:
        return None
    point = calibration.silence.at(allowed_misses)
    is_silent = model.probability_of(signals) < point.threshold
    return Silence(is_silent, calibration.silence, point)
