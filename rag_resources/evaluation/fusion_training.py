"""Trains a learned fusion on the golden questions, and judges it on questions it did not see.

The model and the folds are in `core.fusion_training`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from rag_resources.core.comparison import (
    ALPHA,
    Comparison,
    MetricComparison,
    QueryMetrics,
    compare,
)
from rag_resources.core.configuration import RetrievalConfig
from rag_resources.core.errors import (
    DisturbedEvaluationError,
    InvalidGoldenDatasetError,
    InvalidInputError,
)
from rag_resources.core.evaluation import QueryOutcome, summarize
from rag_resources.core.fusion_config import Feature, FusionConfig, LearnedModel
from rag_resources.core.fusion_training import (
    KnownCandidate,
    KnownQuestion,
    Trained,
    grouped_folds,
    train,
)
from rag_resources.core.golden import GoldenEntry
from rag_resources.core.logistic import FeatureWeight
from rag_resources.core.messages import Message
from rag_resources.database.pool import Database
from rag_resources.evaluation.asking import BOUND_MS, ask_in_full, golden_questions
from rag_resources.retrieval.pipeline import RetrievalPipeline

OUTER_FOLDS = 5
STEPS = 3
"""How often each question is asked: for its candidates, with the present fusion, with a model."""

# A model is needed for the features to be looked up; its predictions are not used.
_BLANK = LearnedModel(
    intercept=0, features={Feature.LENGTH: FeatureWeight(weight=0, mean=0, scale=1)}
)


@dataclass(frozen=True, slots=True)
class FusionTraining:
    """The result of training a fusion.

    Attributes:
        base: The name of the present configuration.
        config: That configuration with the model.
        trained: The model trained on all questions.
        by_part: For each outer fold, the model trained on the questions outside it.
        teaching: Number of questions with both a relevant and an irrelevant candidate; a model
            learns only from these.
        comparison: The models of the outer folds against the present configuration.
    """

    base: str
    config: RetrievalConfig
    trained: Trained
    by_part: tuple[Trained, ...]
    teaching: int
    comparison: Comparison

    @property
    def mrr(self) -> MetricComparison:
        """The metric that decides."""
        return next(item for item in self.comparison.metrics if item.metric == "mrr")

    @property
    def is_better(self) -> bool:
        """Whether MRR is higher on the outer folds, at 5 %, by the paired randomization test.

        This one metric was fixed beforehand, so its p-value is not corrected for the others.
        """
        return self.mrr.difference > 0 and self.mrr.p_value < ALPHA


def with_model(config: RetrievalConfig, model: LearnedModel) -> RetrievalConfig:
    """Return a configuration that fuses by a learned model."""
    return config.model_copy(update={"fusion": FusionConfig(method="learned", learned=model)})


def train_fusion(
    database: Database,
    pipeline: RetrievalPipeline,
    base: str,
    config: RetrievalConfig,
    *,
    tag: str | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> FusionTraining:
    """Train a fusion by nested cross-validation, in folds that share no relevant note.

    Nothing is stored. Every question is judged through the whole pipeline, by a model trained on
    questions about other notes.

    Args:
        database: Open.
        pipeline: Over that database.
        base: The name of the present configuration.
        config: The present configuration.
        tag: Only questions with this tag; None takes all.
        progress: Called with 1 after each question, `STEPS` times.

    Raises:
        InvalidGoldenDatasetError: The questions are about too few notes.
        InvalidParameterError: No relevant note is ever among the candidates.
        DisturbedEvaluationError: A question could not be asked in full.
    """
    entries = golden_questions(database, tag)
    parts = grouped_folds(
        {_id(entry): frozenset(entry.relevant_note_ids) for entry in entries}, OUTER_FOLDS
    )
    if len(parts) < OUTER_FOLDS:
        message = Message.FUSION_TOO_FEW.format(count=len(entries), needed=OUTER_FOLDS)
        raise InvalidGoldenDatasetError(message, [])
    looking = with_model(config, _BLANK)
    pipeline.warm_up(looking)
    known = []
    for entry in entries:
        known.append(_look_up(pipeline, looking, entry, base))
        progress(1)
    before = ask_in_full(pipeline, config, entries, progress=progress)
    after: list[QueryOutcome] = []
    by_part = []
    for part in parts:
        made = train([item for item in known if item.golden_id not in part])
        judged = [entry for entry in entries if _id(entry) in part]
        after += ask_in_full(pipeline, with_model(config, made.model), judged, progress=progress)
        by_part.append(made)
    trained = train(known)
    return FusionTraining(
        base=base,
        config=with_model(config, trained.model),
        trained=trained,
        by_part=tuple(by_part),
        teaching=sum(item.teaches for item in known),
        comparison=compare(_query_metrics(before, base), _query_metrics(after, base)),
    )


def _look_up(
    pipeline: RetrievalPipeline, config: RetrievalConfig, entry: GoldenEntry, base: str
) -> KnownQuestion:
    relevant = frozenset(entry.relevant_note_ids)
    try:
        found, lost = pipeline.look_up(entry.query, config, deadline_ms=BOUND_MS)
    except InvalidInputError:  # The question cannot be asked: a miss with any fusion.
        return KnownQuestion(_id(entry), relevant, ())
    if lost:
        raise _disturbed(base, 1)
    candidates = tuple(
        KnownCandidate(chunk_id, note_id, features)
        for (chunk_id, note_id), features in sorted(found.features().items())
    )
    return KnownQuestion(_id(entry), relevant, candidates)


def _query_metrics(outcomes: Sequence[QueryOutcome], base: str) -> QueryMetrics:
    summary = summarize(outcomes)
    if summary.degraded_queries:
        raise _disturbed(base, summary.degraded_queries)
    return {UUID(key): metrics for key, metrics in summary.per_query.items()}


def _disturbed(base: str, count: int) -> DisturbedEvaluationError:
    reason = Message.DISTURBANCE.format(count=count)
    return DisturbedEvaluationError(
        Message.EXPERIMENT_DISTURBED.format(name=base, reason=reason), name=base
    )


def _id(entry: GoldenEntry) -> UUID:
    if entry.golden_id is None:
        raise ValueError("a stored question has an id")
    return entry.golden_id
