"""Trains a learned fusion: grouped folds, a conditional logistic model, the choice of its penalty.

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
    """Fit a conditional logistic model to which candidate of a question answers.

    It minimises the mean over the questions of ``-log(share of the relevant candidates)``, where a
    candidate's share is its exp(logit) over the sum of all, plus ``penalty / 2 * |weights|²`` of
    the standardised features. So only candidates of one question are told apart. The intercept puts
    0.5 midway between the mean relevant candidate and the mean other one. The result depends on
    nothing else, and is rounded as it is stored.

    Args:
        questions: Those that do not teach are left out.
        penalty: > 0.

    Raises:
        InvalidParameterError: No question teaches.

    Source: McFadden, "Conditional logit analysis of qualitative choice behavior", 1974.
    """
    taught = [question for question in questions if question.teaches]
    if not taught:
        raise InvalidParameterError(Message.FUSION_NOTHING_TO_LEARN)
    rows = [item.features for question in taught for item in question.candidates]
    names = [name for name in Feature if any(name in features for features in rows)]
    values = np.array([[own.get(name, np.nan) for name in names] for own in rows])
    means = np.nanmean(values, axis=0).round(_DECIMALS)
    spreads = np.nanstd(values, axis=0).round(_DECIMALS)
    scales = np.where(spreads > 0, spreads, 1.0)
    standardised = np.nan_to_num((values - means) / scales)
    weights = _minimum(standardised, taught, penalty).round(_DECIMALS)
    shares = np.concatenate([_shares(question) for question in taught]) / len(taught)
    return LearnedModel(
        intercept=round(-float(shares @ standardised @ weights), _DECIMALS),
        features={
            name: FeatureWeight(weight=float(weight), mean=float(mean), scale=float(scale))
            for name, weight, mean, scale in zip(names, weights, means, scales, strict=True)
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
    """Half for the relevant candidates together, half for the others."""
    answers = _answers(question)
    positive = sum(answers)
    return [0.5 / (positive if own else len(answers) - positive) for own in answers]


def _answers(question: KnownQuestion) -> list[bool]:
    return [item.note_id in question.relevant for item in question.candidates]


def _minimum(values: Matrix, questions: Sequence[KnownQuestion], penalty: float) -> Matrix:
    """Return the weights; `values` has a row for each candidate, `(n_rows, n_features)`."""
    sizes = np.array([len(question.candidates) for question in questions])
    starts = np.cumsum(sizes) - sizes
    relevant = np.concatenate([_answers(question) for question in questions])

    def softmax(logits: Matrix) -> tuple[Matrix, Matrix]:
        """The logarithm of each question's sum of exp(logit), and each candidate's share of it."""
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
