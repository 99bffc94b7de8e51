"""How sure a response is: a band whose precision was measured on the user's own golden questions.

What the bands are read from is in `core.confidence_signals`, how they are measured in
`core.calibration`. An answer made from the passages can be judged by the same claims.
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
    """What is known of a response before anybody reads it; see `core.confidence_signals`."""

    DROP = "drop"
    WORDS = "words"
    LENGTH = "length"
    SCORE = "score"
    GAP = "gap"
    ODDS = "odds"
    LEAD = "lead"
    COVERAGE = "coverage"
    CONTEXT = "context"
    PASSAGE = "passage"
    KIND = "kind"


Signals = Mapping[Signal, float]


class Claim(StrEnum):
    """What may be true of a response, or of the answer made from it.

    `results`: a note that answers is among the results that a user gets. `first`: it is the first.
    `citation`: the first sentence of the answer cites what answers. `answerable`: the notes that
    answer were searched; what is unlikely to be so is not answered (`core.silence`).
    """

    RESULTS = "results"
    FIRST = "first"
    CITATION = "citation"
    ANSWERABLE = "answerable"


OF_RESPONSES = (Claim.RESULTS, Claim.FIRST)
OF_ANSWERS = (Claim.CITATION,)
"""What people are told of each, as bands."""

_OF_RESPONSE = (Signal.DROP, Signal.WORDS, Signal.LENGTH)
_OF_ANSWER = tuple(signal for signal in Signal if signal is not Signal.WORDS)
SIGNALS: Mapping[Claim, tuple[Signal, ...]] = {
    Claim.RESULTS: _OF_RESPONSE,
    Claim.FIRST: _OF_RESPONSE,
    Claim.CITATION: _OF_ANSWER,
    Claim.ANSWERABLE: _OF_ANSWER,
}
"""What each claim is told from."""


class BandName(StrEnum):
    """The three bands, each with a third of the questions that measured them."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Band(Part):
    """The responses whose probability is at least `from_probability`, and below the band above.

    Attributes:
        right: For how many of the questions in the band the claim was true, each by a model that
            had not seen questions about the same notes.
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
        """Return how likely the claim is true of a response, in [0, 1]."""
        return probability(self.intercept, self.signals, signals)

    def band_of(self, signals: Signals) -> Band:
        """Return the band of a response."""
        likely = self.probability_of(signals)
        return next(
            (band for band in self.bands if likely >= band.from_probability), self.bands[-1]
        )


class Calibration(Part):
    """What a configuration's golden questions say about its responses.

    Attributes:
        claims: Only those that the signals tell something of.
        questions: How many questions it was made from.
        unanswerable: How many of them no note answers.
        silence: Misses and false answers by threshold; None if nothing tells when to be silent.
        answerer: What the claims of answers were told from, with its version; they hold for no
            other.
    """

    claims: dict[Claim, ClaimModel]
    questions: int = Field(ge=1)
    unanswerable: int = Field(ge=0)
    silence: SilenceCurve | None = None
    answerer: str = ""


@dataclass(frozen=True, slots=True)
class Confidence:
    """How sure a response is.

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
    """Whether an answer is withheld, by what threshold.

    Attributes:
        is_silent: Whether nothing is said.
        curve: What was measured; None without a calibration.
        point: The threshold that was used; None likewise.
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
    """Return how sure a response with these signals is, as far as these claims are calibrated."""
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
    """Return whether a response with these signals is answered; None if nothing tells.

    Args:
        calibration: Of the configuration.
        signals: Of the answer.
        allowed_misses: Share of answerable questions that may be left unanswered.
    """
    model = calibration.claims.get(Claim.ANSWERABLE)
    if model is None or calibration.silence is None:
        return None
    point = calibration.silence.at(allowed_misses)
    is_silent = model.probability_of(signals) < point.threshold
    return Silence(is_silent, calibration.silence, point)
