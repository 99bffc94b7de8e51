"""How sure a response is: a band whose precision was measured on the user's own golden questions.

What the bands are read from is in `core.confidence_signals`, how they are measured in
`core.calibration`. An answer made from the passages can be judged by the same claims.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from pydantic import Field

from rag_resources.core.fusion_config import Part, Share
from rag_resources.core.gate import Interval, wilson_interval
from rag_resources.core.logistic import Coefficient, FeatureWeight, probability


class Signal(StrEnum):
    """What is known of a response before anybody reads it; see `core.confidence_signals`."""

    DROP = "drop"
    WORDS = "words"
    LENGTH = "length"


Signals = Mapping[Signal, float]


class Claim(StrEnum):
    """What may be true of a response.

    `results`: a note that answers is among the results that a user gets. `first`: it is the first.
    """

    RESULTS = "results"
    FIRST = "first"


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

    def band_of(self, signals: Signals) -> Band:
        """Return the band of a response."""
        likely = probability(self.intercept, self.signals, signals)
        return next(
            (band for band in self.bands if likely >= band.from_probability), self.bands[-1]
        )


class Calibration(Part):
    """What a configuration's golden questions say about its responses.

    Attributes:
        claims: Only those that the signals tell something of.
        questions: How many questions it was made from.
        unanswerable: How many of them no note answers.
    """

    claims: dict[Claim, ClaimModel]
    questions: int = Field(ge=1)
    unanswerable: int = Field(ge=0)


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


def confidence_of(calibration: Calibration, signals: Signals) -> Confidence:
    """Return how sure a response with these signals is."""
    return Confidence(
        {claim: model.band_of(signals) for claim, model in calibration.claims.items()}
    )
