"""Calibrates confidence: fits the model of each claim, and measures its bands by cross-validation.

Applying a calibration is in `core.confidence`; asking the questions in `evaluation.calibration`.
"""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
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
from rag_resources.core.fusion_config import Part
from rag_resources.core.logistic import FeatureWeight, Name, probability
from rag_resources.core.significance import (
    SEED,
    DifferenceInterval,
    bootstrap_intervals,
    randomization_p_values,
)
from rag_resources.core.silence import SilenceCase, SilenceCurve, silence_curve

FOLDS = 10
PENALTY = 0.01
"""L2 penalty; weak, because there are few signals and hundreds of questions. It was not tuned."""
LEVEL = 0.05
DECIMALS = 6
"""Decimals of a fitted model; it is rounded so that a stored model gives the same probabilities."""
FEWEST = 20
"""Fewest questions of either outcome; with fewer, the bands would be meaningless."""

_RESAMPLES = 2_000

Values = NDArray[np.float64]
Truths = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question, the signals of its response, and which claims about the response were true.

    Attributes:
        relevant: The notes that answer it; empty if none does.
        signals: None if nothing was found.
        true: Whether each claim is true; all are false if no note answers the question. A claim
            that is missing was not made.
        is_hidden: Whether the notes that answer it were hidden from the search.
    """

    key: UUID
    relevant: frozenset[UUID]
    signals: Signals | None
    true: Mapping[Claim, bool]
    is_hidden: bool = False

    def known(self, claim: Claim) -> Signals:
        """Return the signals of a claim; empty if there are none."""
        found = self.signals or {}
        own = {signal: found[signal] for signal in SIGNALS[claim] if signal in found}
        # Without a possible sentence there is nothing to claim about it.
        return {} if Signal.SENTENCE in SIGNALS[claim] and Signal.SENTENCE not in own else own


class Measured(Part):
    """The quality of probabilities, measured on responses that they were not fitted to.

    Attributes:
        auc: Probability that a true claim is ranked before an untrue one, ties as half.
        auc_low: The 95 % interval of `auc`, by bootstrap over the questions, begins here.
        brier: Mean squared error of the probabilities; lower is better.
        constant_brier: The same if every probability were the share of true claims.
        gain_low: The 95 % interval of the difference of the two, by BCa bootstrap, begins here.
        p_value: P-value of that difference, by the paired randomization test.
        bands: The thirds of the probabilities, the highest first.
    """

    auc: float
    auc_low: float
    auc_high: float
    brier: float
    constant_brier: float
    gain_low: float
    gain_high: float
    p_value: float
    bands: tuple[Band, ...] = ()

    @property
    def tells_something(self) -> bool:
        """Whether the probabilities are better than one for all, at 5 %."""
        return self.brier < self.constant_brier and self.p_value < LEVEL


@dataclass(frozen=True, slots=True)
class Calibrated:
    """A calibration, and the cross-validated quality of each claim's probabilities.

    Attributes:
        measured: By claim; a claim with too few questions of either outcome is missing.
        silence: Misses and false answers by threshold; None if the notes were never hidden.
    """

    calibration: Calibration
    measured: Mapping[Claim, Measured]
    silence: SilenceCurve | None = None


def calibrate(
    asked: Sequence[AskedQuestion], *, answerer: str = "", claims: Collection[Claim] = tuple(Claim)
) -> Calibrated:
    """Fit every claim and measure it by cross-validation, in folds without common notes.

    A claim is in the calibration only if its cross-validated probabilities are significantly better
    than a constant one. A response without results is no case of any claim.

    Args:
        asked: At least one.
        answerer: Name and version of what the signals of answers are computed from.
        claims: The claims to fit.
    """
    models: dict[Claim, ClaimModel] = {}
    measured: dict[Claim, Measured] = {}
    silence: SilenceCurve | None = None
    for claim in claims:
        cases = [item for item in asked if claim in item.true and item.known(claim)]
        outcomes = [item.true[claim] for item in cases]
        if min(sum(outcomes), len(outcomes) - sum(outcomes)) < FEWEST:
            continue
        likely = _out_of_fold(cases, claim)
        found = [likely[item.key] for item in cases]
        measured[claim] = measure(found, outcomes)
        if claim is Claim.ANSWERABLE:
            silence = _silence(asked, likely)
        if measured[claim].tells_something:
            intercept, signals = _fit(cases, claim)
            models[claim] = ClaimModel(
                intercept=intercept, signals=signals, bands=measured[claim].bands
            )
    made = Calibration(
        claims=models,
        questions=sum(not item.is_hidden for item in asked),
        unanswerable=sum(not item.relevant for item in asked),
        silence=silence if Claim.ANSWERABLE in models else None,
        answerer=answerer,
    )
    return Calibrated(made, measured, silence)


def _silence(asked: Sequence[AskedQuestion], likely: Mapping[UUID, float]) -> SilenceCurve | None:
    return silence_curve(
        [
            SilenceCase(_fold(item), likely.get(item.key), not item.true[Claim.ANSWERABLE])
            for item in asked
            if Claim.ANSWERABLE in item.true
        ]
    )


def measure(likely: Sequence[float], outcomes: Sequence[bool]) -> Measured:
    """Measure probabilities against outcomes.

    Args:
        likely: In [0, 1].
        outcomes: In the same order, some true and some not.
    """
    values, true = np.array(likely, dtype=float), np.array(outcomes, dtype=bool)
    errors = (values - true) ** 2
    constant = (true.mean() - true) ** 2
    gains = (constant - errors)[:, None]
    auc_low, auc_high = _auc_interval(values, true)
    gain_low, gain_high = bootstrap_intervals(gains)[0]
    return Measured(
        auc=_auc(values, true),
        auc_low=auc_low,
        auc_high=auc_high,
        brier=float(errors.mean()),
        constant_brier=float(constant.mean()),
        gain_low=gain_low,
        gain_high=gain_high,
        p_value=randomization_p_values(gains)[0],
        bands=thirds(likely, outcomes),
    )


def thirds(likely: Sequence[float], outcomes: Sequence[bool]) -> tuple[Band, ...]:
    """Divide the probabilities at their thirds into bands, and count the true ones in each.

    Equal probabilities are never separated, so there may be fewer than three bands.

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

    Questions about several notes connect so many others that folds without common notes would have
    very different sizes. So the folds are drawn by one note of each question, and a model leaves
    out the questions that share a note with the fold it judges.
    """
    likely: dict[UUID, float] = {}
    for number in range(FOLDS):
        part = [item for item in cases if _fold(item) == number]
        notes = {note for item in part for note in item.relevant}
        others = [item for item in cases if _fold(item) != number and not item.relevant & notes]
        # Without questions outside the fold there is no model, and all are equally likely.
        intercept, signals = _fit(others, claim) if others else (0.0, {})
        likely |= {item.key: probability(intercept, signals, item.known(claim)) for item in part}
    return likely


def _fold(item: AskedQuestion) -> int:
    named = min(item.relevant, default=item.key)
    return int.from_bytes(hashlib.sha256(named.bytes).digest()[:8], "big") % FOLDS


def _fit(cases: Sequence[AskedQuestion], claim: Claim) -> tuple[float, dict[Signal, FeatureWeight]]:
    rows = [item.known(claim) for item in cases]
    return fit_logistic(rows, [item.true[claim] for item in cases], penalty=PENALTY)


def fit_logistic(
    rows: Sequence[Mapping[Name, float]], outcomes: Sequence[bool], *, penalty: float
) -> tuple[float, dict[Name, FeatureWeight]]:
    """Fit a logistic regression of outcomes.

    It minimises the mean of ``-log(probability of the outcome)`` plus ``penalty / 2 * |weights|²``
    of the standardised values; the intercept is not penalised.

    Args:
        rows: The values of each case; at least one case.
        outcomes: Whether it came true, in the same order.
        penalty: > 0.

    Returns:
        The intercept, and the weight of each name of the rows.
    """
    from scipy.optimize import minimize

    names = list(dict.fromkeys(name for own in rows for name in own))
    values, means, scales = _standardise(rows, names)
    design = np.column_stack([np.ones(len(values)), values])
    wanted = np.array(outcomes, dtype=float)
    shrunk = np.array([0.0, *[1.0] * len(names)])

    def loss(weights: Values) -> tuple[float, Values]:
        logits = design @ weights
        slopes = design.T @ (1 / (1 + np.exp(-np.clip(logits, -500, 500))) - wanted) / len(wanted)
        fitted = (np.logaddexp(0, logits) - wanted * logits).mean()
        cost = penalty / 2 * float(shrunk @ weights**2)
        return float(fitted) + cost, slopes + penalty * shrunk * weights

    start = np.zeros(len(names) + 1)
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"gtol": 1e-8}).x
    intercept, *rest = (round(float(value), DECIMALS) for value in found)
    return intercept, {
        name: FeatureWeight(weight=weight, mean=float(mean), scale=float(scale))
        for name, weight, mean, scale in zip(names, rest, means, scales, strict=True)
    }


def _standardise(rows: Sequence[Mapping[Name, float]], names: Sequence[Name]) -> tuple[Values, ...]:
    """Return the values as standardised columns, with their means and scales.

    A missing value becomes 0, its mean. A column without spread keeps the scale 1.

    Args:
        rows: At least one value of each name.
        names: The names of the columns.

    Returns:
        `(n_rows, n_names)`, and two of `(n_names,)`.
    """
    values = np.array([[own.get(name, np.nan) for name in names] for own in rows])
    means = np.nanmean(values, axis=0).round(DECIMALS)
    spreads = np.nanstd(values, axis=0).round(DECIMALS)
    scales = np.where(spreads > 0, spreads, 1.0)
    return np.nan_to_num((values - means) / scales), means, scales


def _auc(values: Values, true: Truths) -> float:
    """Return the Mann-Whitney statistic of the true ones, scaled to [0, 1], ties as half."""
    heights = np.unique(values, return_inverse=True)[1]
    return _auc_of_heights(heights[true], heights[~true])


def _auc_interval(values: Values, true: Truths) -> DifferenceInterval:
    """Return the percentile bootstrap interval; each outcome is resampled separately."""
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
        positive: Ranks in ascending order, equal for equal values.
        negative: Ranks in the same order.
    """
    levels = int(max(positive.max(), negative.max())) + 1
    others = np.bincount(negative, minlength=levels)
    below = others.cumsum() - others / 2
    return float(below[positive].sum() / (len(positive) * len(negative)))
