"""Trains a learned fusion: grouped folds, the penalty, and the quality of the trained model.

The model itself is in `core.learned_fusion`; asking the questions in `evaluation.fusion_training`.
"""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from uuid import UUID

from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.fusion_config import Feature, LearnedModel
from rag_resources.core.learned_fusion import Features, predict
from rag_resources.core.logistic_training import Group, fit_conditional
from rag_resources.core.messages import Message
from rag_resources.core.metrics import DEPTH

PENALTIES = (1.0, 0.1, 0.01, 0.001, 0.0001)
"""Strengths of the regularisation to choose from, the strongest first; it wins a tie."""

INNER_FOLDS = 4


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
        return self.group.teaches

    @property
    def group(self) -> Group[Feature]:
        """Its candidates as a group; those of relevant notes are the wanted ones."""
        return Group(
            [item.features for item in self.candidates],
            [item.note_id in self.relevant for item in self.candidates],
        )


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
        seed: Seed of the order of the groups.

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

    See `core.logistic_training.fit_conditional`.

    Args:
        questions: Those that do not teach are left out.
        penalty: > 0.

    Raises:
        InvalidParameterError: No question teaches.
    """
    taught = [question.group for question in questions if question.teaches]
    if not taught:
        raise InvalidParameterError(Message.FUSION_NOTHING_TO_LEARN)
    fitted = fit_conditional(taught, tuple(Feature), penalty=penalty)
    return LearnedModel(intercept=fitted.intercept, features=dict(fitted.features))


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
    """Return the MRR of the parts, each judged by a model trained on the others."""
    ranks = []
    for part in parts:
        model = fit([item for item in questions if item.golden_id not in part], penalty=penalty)
        ranks += [reciprocal_rank(model, item) for item in questions if item.golden_id in part]
    return fmean(ranks)
