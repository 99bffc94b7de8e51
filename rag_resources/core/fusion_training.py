"""Trains a learned fusion: grouped folds, a regularised logistic model, the choice of its penalty.

What the model computes is in `core.learned_fusion`; asking the questions in
`evaluation.fusion_training`.
"""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.fusion_config import Feature, FeatureWeight, LearnedModel
from rag_resources.core.learned_fusion import Features, predict
from rag_resources.core.messages import Message
from rag_resources.core.metrics import DEPTH

PENALTIES = (1.0, 0.1, 0.01, 0.001, 0.0001)
"""Strengths of the regularisation to choose from, the strongest first; it wins a tie."""

INNER_FOLDS = 4
_DECIMALS = 6

Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class KnownCandidate:
    """A candidate of a question with its features."""

    chunk_id: UUID
    note_id: UUID
    features: Features


@dataclass(frozen=True, slots=True)
class KnownQuestion:
    """A golden question with all candidates that its configuration finds."""

    golden_id: UUID
    relevant: frozenset[UUID]
    candidates: tuple[KnownCandidate, ...]

    @property
    def teaches(self) -> bool:
        """Whether a candidate answers it and another one does not."""
        return len({item.note_id in self.relevant for item in self.candidates}) == 2


@dataclass(frozen=True, slots=True)
class Trained:
    """A model and the penalty that it was trained with."""

    model: LearnedModel
    penalty: float


def grouped_folds(
    relevant: Mapping[UUID, frozenset[UUID]], count: int, *, seed: int = 1
) -> tuple[frozenset[UUID], ...]:
    """Cut questions into parts so that no two parts have a question about the same note.

    Args:
        relevant: The relevant notes of each question.
        count: How many parts, >= 2; fewer if the questions do not allow more.
        seed: Of the order of the groups.

    Returns:
        Disjoint parts of about the same size, none empty.
    """
    groups: list[tuple[set[UUID], set[UUID]]] = []  # Of questions, and of their notes.
    for question in sorted(relevant):
        questions, notes = {question}, set(relevant[question])
        apart = []
        for group in groups:
            if group[1] & notes:
                questions |= group[0]
                notes |= group[1]
            else:
                apart.append(group)
        groups = [*apart, (questions, notes)]

    def order(group: tuple[set[UUID], set[UUID]]) -> tuple[int, bytes]:
        named = f"{seed}\n{min(group[1], default='')}"
        return -len(group[0]), hashlib.sha256(named.encode()).digest()

    parts: list[set[UUID]] = [set() for _ in range(count)]
    for questions, _ in sorted(groups, key=order):
        min(parts, key=len).update(questions)
    return tuple(frozenset(part) for part in parts if part)


def fit(questions: Sequence[KnownQuestion], *, penalty: float) -> LearnedModel:
    """Fit a logistic model to whether candidates answer.

    It minimises the mean log loss, in which each question counts the same, and its relevant
    candidates as much as the others, plus ``penalty / 2 * |weights|²`` of the standardised
    features. The result depends on nothing else, and is rounded as it is stored.

    Args:
        questions: Those that do not teach are left out.
        penalty: > 0.

    Raises:
        InvalidParameterError: No question teaches.
    """
    rows = [
        (item.features, item.note_id in question.relevant, share)
        for question in questions
        if question.teaches
        for item, share in zip(question.candidates, _shares(question), strict=True)
    ]
    if not rows:
        raise InvalidParameterError(Message.FUSION_NOTHING_TO_LEARN)
    names = [name for name in Feature if any(name in features for features, _, _ in rows)]
    values = np.array([[own.get(name, np.nan) for name in names] for own, _, _ in rows])
    shares = np.array([share for _, _, share in rows])
    signs = np.where([answers for _, answers, _ in rows], 1.0, -1.0)
    means = np.nanmean(values, axis=0).round(_DECIMALS)
    spreads = np.nanstd(values, axis=0).round(_DECIMALS)
    scales = np.where(spreads > 0, spreads, 1.0)
    standardised = np.nan_to_num((values - means) / scales)
    found = _minimum(standardised, signs, shares / shares.sum(), penalty).round(_DECIMALS)
    return LearnedModel(
        intercept=float(found[-1]),
        features={
            name: FeatureWeight(weight=float(weight), mean=float(mean), scale=float(scale))
            for name, weight, mean, scale in zip(names, found, means, scales, strict=False)
        },
    )


def train(questions: Sequence[KnownQuestion]) -> Trained:
    """Fit a model with the penalty that is best in folds of these questions.

    Raises:
        InvalidParameterError: They are too few for two folds, or none teaches.

    Source: nested cross-validation, Cawley and Talbot, JMLR 2010, 11:2079-2107.
    """
    parts = grouped_folds({item.golden_id: item.relevant for item in questions}, INNER_FOLDS)
    if len(parts) < 2:
        raise InvalidParameterError(Message.FUSION_NOTHING_TO_LEARN)
    penalty = max(PENALTIES, key=lambda each: _judged(questions, parts, each))
    return Trained(fit(questions, penalty=penalty), penalty)


def reciprocal_rank(model: LearnedModel, question: KnownQuestion) -> float:
    """Return 1 over the rank of the first relevant note, ties by chunk id; 0 beyond `DEPTH`."""
    scored = sorted(
        question.candidates, key=lambda item: (-predict(model, item.features), item.chunk_id)
    )
    notes = list(dict.fromkeys(item.note_id for item in scored))[:DEPTH]
    return next((1 / rank for rank, note in enumerate(notes, 1) if note in question.relevant), 0.0)


def _judged(
    questions: Sequence[KnownQuestion], parts: Sequence[Collection[UUID]], penalty: float
) -> float:
    """Return the MRR of the parts, each by a model of the others."""
    ranks = []
    for part in parts:
        model = fit([item for item in questions if item.golden_id not in part], penalty=penalty)
        ranks += [reciprocal_rank(model, item) for item in questions if item.golden_id in part]
    return fmean(ranks)


def _shares(question: KnownQuestion) -> list[float]:
    answers = [item.note_id in question.relevant for item in question.candidates]
    positive = sum(answers)
    return [0.5 / (positive if own else len(answers) - positive) for own in answers]


def _minimum(values: Matrix, signs: Matrix, shares: Matrix, penalty: float) -> Matrix:
    """Return the weights and, last, the intercept."""

    def loss(parameters: Matrix) -> tuple[float, Matrix]:
        weights = parameters[:-1]
        margins = signs * (values @ weights + parameters[-1])
        slopes = -signs * shares * expit(-margins)
        value = float(shares @ np.logaddexp(0, -margins) + penalty / 2 * weights @ weights)
        return value, np.append(values.T @ slopes + penalty * weights, slopes.sum())

    start = np.zeros(values.shape[1] + 1)
    found: Matrix = minimize(loss, start, jac=True, method="L-BFGS-B", options={"gtol": 1e-8}).x
    return found
