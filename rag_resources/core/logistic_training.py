"""Fits logistic models: which of several candidates is wanted, or whether an outcome is true.

The models themselves are in `core.logistic`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic

import numpy as np
from numpy.typing import NDArray

from rag_resources.core.logistic import FeatureWeight, Name

DECIMALS = 6
"""Decimals of a fitted model; it is rounded so that a stored model gives the same probabilities."""

Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Group(Generic[Name]):
    """Candidates that compete with each other, such as those of one question.

    Attributes:
        candidates: The features of each.
        relevant: Whether each is a wanted one.
    """

    candidates: Sequence[Mapping[Name, float]]
    relevant: Sequence[bool]

    @property
    def teaches(self) -> bool:
        """Whether one candidate is wanted and another one is not."""
        return len(set(self.relevant)) == 2


@dataclass(frozen=True, slots=True)
class Fitted(Generic[Name]):
    """A model: its intercept and the weight of each feature."""

    intercept: float
    features: Mapping[Name, FeatureWeight]


def fit_conditional(
    groups: Sequence[Group[Name]], names: Sequence[Name], *, penalty: float
) -> Fitted[Name]:
    """Fit a conditional logistic model of which candidate of a group is wanted.

    It minimises the mean over the groups of ``-log(share of the wanted candidates)``, where a
    candidate's share is its exp(logit) over the sum of all, plus ``penalty / 2 * |weights|²`` of
    the standardised features. So it only compares candidates within a group. The intercept puts
    0.5 midway between the mean wanted candidate and the mean other one. The result is
    deterministic, and rounded as it is stored.

    Args:
        groups: At least one, each teaches.
        names: The features to use; one that no candidate has is left out.
        penalty: > 0.

    Source: McFadden, "Conditional logit analysis of qualitative choice behavior", 1974.
    """
    rows = [features for group in groups for features in group.candidates]
    used = [name for name in names if any(name in features for features in rows)]
    standardised, means, scales = _standardise(rows, used)
    weights = _minimum(standardised, groups, penalty).round(DECIMALS)
    shares = np.concatenate([_shares(group.relevant) for group in groups]) / len(groups)
    return Fitted(
        round(-float(shares @ standardised @ weights), DECIMALS),
        {
            name: FeatureWeight(weight=float(weight), mean=float(mean), scale=float(scale))
            for name, weight, mean, scale in zip(used, weights, means, scales, strict=True)
        },
    )


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

    def loss(weights: Matrix) -> tuple[float, Matrix]:
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


def _standardise(rows: Sequence[Mapping[Name, float]], names: Sequence[Name]) -> tuple[Matrix, ...]:
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


def _shares(relevant: Sequence[bool]) -> list[float]:
    """Return weights: half for the wanted candidates together, half for the others."""
    positive = sum(relevant)
    return [0.5 / (positive if own else len(relevant) - positive) for own in relevant]


def _minimum(values: Matrix, groups: Sequence[Group[Name]], penalty: float) -> Matrix:
    """Return the weights; `values` has a row for each candidate, `(n_rows, n_features)`."""
    from scipy.optimize import minimize

    sizes = np.array([len(group.candidates) for group in groups])
    starts = np.cumsum(sizes) - sizes
    relevant = np.concatenate([group.relevant for group in groups])

    def softmax(logits: Matrix) -> tuple[Matrix, Matrix]:
        """Return the log of each group's sum of exp(logit), and each candidate's share of it."""
        highest = np.maximum.reduceat(logits, starts)
        terms = np.exp(logits - np.repeat(highest, sizes))
        sums = np.add.reduceat(terms, starts)
        return highest + np.log(sums), terms / np.repeat(sums, sizes)

    def loss(weights: Matrix) -> tuple[float, Matrix]:
        logits = values @ weights
        of_all, shares = softmax(logits)
        of_relevant, wanted = softmax(np.where(relevant, logits, -np.inf))
        slopes = values.T @ (shares - wanted) / len(sizes) + penalty * weights
        return float((of_all - of_relevant).mean() + penalty / 2 * weights @ weights), slopes

    start = np.zeros(values.shape[1])
    found: Matrix = minimize(loss, start, jac=True, method="L-BFGS-B", options={"gtol": 1e-8}).x
    return found
