"""Measures how sure responses are: fits the model of a claim, and measures its bands, by folds.

What a calibration says is in `core.confidence`; asking the questions in `evaluation.calibration`.
"""

import hashlib
import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from rag_resources.core.confidence import (
    SIGNALS,
    Band,
    BandName,
    Calibration,
    Claim,
    ClaimModel,
    Signal,
    Signals,
)
from rag_resources.core.gate import Interval, wilson_interval
from rag_resources.core.logistic import FeatureWeight, probability
from rag_resources.core.logistic_training import fit_logistic
from rag_resources.core.significance import (
    SEED,
    DifferenceInterval,
    bootstrap_intervals,
    randomization_p_values,
)
from rag_resources.core.silence import SilenceCase, SilenceCurve, silence_curve

FOLDS = 10
PENALTY = 0.01
"""Weak: there are a few signals and hundreds of questions. It was not tuned."""
LEVEL = 0.05
FEWEST = 20
"""Fewest questions of either outcome; with fewer the bands would say nothing."""

_RESAMPLES = 2_000
_MOST_BINS = 10
_FEWEST_IN_BIN = 20

Values = NDArray[np.float64]
Truths = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question, what was known of its response, and what turned out to be true of it.

    Attributes:
        relevant: The notes that answer it; empty if none does.
        signals: None if nothing was found.
        true: Whether each claim is true; no claim is if no note answers the question. A claim that
            is missing was not made.
        is_hidden: Whether the notes that answer it were hidden from the search.
    """

    key: UUID
    relevant: frozenset[UUID]
    signals: Signals | None
    true: Mapping[Claim, bool]
    is_hidden: bool = False

    def known(self, claim: Claim) -> Signals:
        """Return what a claim is told from; empty if nothing is known."""
        found = self.signals or {}
        own = {signal: found[signal] for signal in SIGNALS[claim] if signal in found}
        # Without a sentence that could be said there is nothing to claim of it.
        return {} if Signal.ODDS in SIGNALS[claim] and Signal.ODDS not in own else own


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """Responses with about the same probability, and how many of them the claim was true of."""

    probability: float
    right: int
    questions: int

    @property
    def interval(self) -> Interval:
        """The 95 % interval of the share by Wilson."""
        return wilson_interval(self.right, self.questions)


@dataclass(frozen=True, slots=True)
class Measured:
    """How well probabilities tell the true from the untrue, over responses not fitted to.

    Attributes:
        auc: Probability that a true one is ranked before an untrue one, ties as half.
        auc_interval: Its 95 % interval, by bootstrap over the questions.
        brier: Mean squared error of the probabilities; lower is better.
        constant_brier: The same of one probability for all, the share of true ones.
        gain: 95 % interval of the second minus the first, by BCa bootstrap.
        p_value: Of that difference, by the paired randomization test.
        reliability: What was said and what came true, in bins of about equal size, ascending.
    """

    auc: float
    auc_interval: DifferenceInterval
    brier: float
    constant_brier: float
    gain: DifferenceInterval
    p_value: float
    reliability: tuple[ReliabilityBin, ...] = ()

    @property
    def tells_something(self) -> bool:
        """Whether the probabilities are better than one for all, at 5 %."""
        return self.brier < self.constant_brier and self.p_value < LEVEL


@dataclass(frozen=True, slots=True)
class Calibrated:
    """A calibration, and how well each claim's probabilities did out of their folds.

    Attributes:
        measured: By claim; a claim with too few questions of either outcome is missing.
        bands: Likewise, also of claims that the calibration does not have.
        silence: Misses and false answers by threshold; None if the notes were never hidden.
    """

    calibration: Calibration
    measured: Mapping[Claim, Measured]
    bands: Mapping[Claim, tuple[Band, ...]]
    silence: SilenceCurve | None = None


def calibrate(
    asked: Sequence[AskedQuestion], *, answerer: str = "", claims: Collection[Claim] = tuple(Claim)
) -> Calibrated:
    """Fit every claim and measure it by cross-validation, by models of questions about other notes.

    A claim is in the calibration only if its probabilities, out of their folds, are significantly
    better than one for all. A response without results is no case of any claim.

    Args:
        asked: At least one.
        answerer: What the answers were told from, with its version.
        claims: Those to fit.
    """
    models: dict[Claim, ClaimModel] = {}
    measured: dict[Claim, Measured] = {}
    bands: dict[Claim, tuple[Band, ...]] = {}
    silence: SilenceCurve | None = None
    for claim in claims:
        cases = [item for item in asked if claim in item.true and item.known(claim)]
        outcomes = [item.true[claim] for item in cases]
        if min(sum(outcomes), len(outcomes) - sum(outcomes)) < FEWEST:
            continue
        likely = _out_of_fold(cases, claim)
        found = [likely[item.key] for item in cases]
        measured[claim] = measure(found, outcomes)
        bands[claim] = thirds(found, outcomes)
        if claim is Claim.ANSWERABLE:
            silence = _silence(asked, likely)
        if measured[claim].tells_something:
            intercept, signals = _fit(cases, claim)
            models[claim] = ClaimModel(intercept=intercept, signals=signals, bands=bands[claim])
    made = Calibration(
        claims=models,
        questions=sum(not item.is_hidden for item in asked),
        unanswerable=sum(not item.relevant for item in asked),
        silence=silence if Claim.ANSWERABLE in models else None,
        answerer=answerer,
    )
    return Calibrated(made, measured, bands, silence)


def _silence(asked: Sequence[AskedQuestion], likely: Mapping[UUID, float]) -> SilenceCurve | None:
    return silence_curve(
        [
            SilenceCase(_fold(item), likely.get(item.key), not item.true[Claim.ANSWERABLE])
            for item in asked
            if Claim.ANSWERABLE in item.true
        ]
    )


def measure(likely: Sequence[float], outcomes: Sequence[bool]) -> Measured:
    """Measure probabilities by what came true.

    Args:
        likely: In [0, 1].
        outcomes: In the same order, some true and some not.
    """
    values, true = np.array(likely, dtype=float), np.array(outcomes, dtype=bool)
    errors = (values - true) ** 2
    constant = (true.mean() - true) ** 2
    gains = (constant - errors)[:, None]
    return Measured(
        auc=_auc(values, true),
        auc_interval=_auc_interval(values, true),
        brier=float(errors.mean()),
        constant_brier=float(constant.mean()),
        gain=bootstrap_intervals(gains)[0],
        p_value=randomization_p_values(gains)[0],
        reliability=reliability(likely, outcomes),
    )


def reliability(likely: Sequence[float], outcomes: Sequence[bool]) -> tuple[ReliabilityBin, ...]:
    """Compare probabilities with what came true, in bins of about equal size.

    Args:
        likely: In [0, 1], at least one.
        outcomes: In the same order.

    Returns:
        Ascending; the probability of a bin is the mean of its own.
    """
    ordered = sorted(zip(likely, outcomes, strict=True))
    count = max(1, min(_MOST_BINS, len(ordered) // _FEWEST_IN_BIN))
    edges = [len(ordered) * number // count for number in range(count + 1)]
    return tuple(
        ReliabilityBin(
            probability=fmean(each for each, _ in ordered[low:high]),
            right=sum(true for _, true in ordered[low:high]),
            questions=high - low,
        )
        for low, high in itertools.pairwise(edges)
    )


def thirds(likely: Sequence[float], outcomes: Sequence[bool]) -> tuple[Band, ...]:
    """Cut the range of probabilities at its thirds, and count what came true in each.

    Equal probabilities are never cut apart, so there may be fewer than three bands.

    Args:
        likely: Probabilities in [0, 1], at least one.
        outcomes: In the same order.

    Returns:
        The highest first; the last one begins at 0.
    """
    ordered = sorted(likely)
    cuts = [ordered[len(ordered) * part // 3] for part in (2, 1)]
    edges = [float("inf"), *cuts, 0.0]
    bands = []
    for name, high, low in zip(BandName, edges, edges[1:], strict=False):
        inside = [true for each, true in zip(likely, outcomes, strict=True) if low <= each < high]
        if inside:
            bands.append(
                Band(name=name, from_probability=low, right=sum(inside), questions=len(inside))
            )
    return tuple(bands)


def _out_of_fold(cases: Sequence[AskedQuestion], claim: Claim) -> dict[UUID, float]:
    """Return the probability of each case by a model that saw no question about its notes, by key.

    Questions about several notes tie so many others together that parts without common notes would
    be of very different sizes. So the parts are drawn by one note of each question, and a model
    leaves out the questions that share a note with the part it judges.
    """
    likely: dict[UUID, float] = {}
    for number in range(FOLDS):
        part = [item for item in cases if _fold(item) == number]
        notes = {note for item in part for note in item.relevant}
        others = [item for item in cases if _fold(item) != number and not item.relevant & notes]
        # Without other questions nothing is known of these, whatever they say of each other.
        intercept, signals = _fit(others, claim) if others else (0.0, {})
        likely |= {item.key: probability(intercept, signals, item.known(claim)) for item in part}
    return likely


def _fold(item: AskedQuestion) -> int:
    named = min(item.relevant, default=item.key)
    return int.from_bytes(hashlib.sha256(named.bytes).digest()[:8], "big") % FOLDS


def _fit(cases: Sequence[AskedQuestion], claim: Claim) -> tuple[float, dict[Signal, FeatureWeight]]:
    rows = [item.known(claim) for item in cases]
    return fit_logistic(rows, [item.true[claim] for item in cases], penalty=PENALTY)


def _auc(values: Values, true: Truths) -> float:
    """Return the Mann-Whitney statistic of the true ones, scaled to [0, 1], ties as half."""
    heights = np.unique(values, return_inverse=True)[1]
    return _auc_of_heights(heights[true], heights[~true])


def _auc_interval(values: Values, true: Truths) -> DifferenceInterval:
    """Return the percentile bootstrap interval; either outcome is resampled by itself."""
    generator = np.random.default_rng(SEED)
    heights = np.unique(values, return_inverse=True)[1]
    groups = [heights[true], heights[~true]]
    drawn = [
        _auc_of_heights(*(generator.choice(group, len(group)) for group in groups))
        for _ in range(_RESAMPLES)
    ]
    low, high = np.quantile(drawn, [0.025, 0.975])
    return DifferenceInterval(float(low), float(high))


def _auc_of_heights(positive: NDArray[np.intp], negative: NDArray[np.intp]) -> float:
    """Return the share of pairs whose positive one is higher, ties as half.

    Args:
        positive: Places in an ascending order, equal for equal values.
        negative: Likewise.
    """
    levels = int(max(positive.max(), negative.max())) + 1
    others = np.bincount(negative, minlength=levels)
    below = others.cumsum() - others / 2
    return float(below[positive].sum() / (len(positive) * len(negative)))
