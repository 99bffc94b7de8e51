"""The value types of an evaluation. Metrics are in `core.metrics`, the gate in `core.gate`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import fmean
from uuid import UUID

from rag_resources.core.answer_metrics import AnswerFigures, AnswerSummary
from rag_resources.core.evidence import Contents
from rag_resources.core.gate import GateConfig, GateVerdict, judge
from rag_resources.core.golden import GoldenEntry
from rag_resources.core.golden_places import LocatedPlace
from rag_resources.core.judging import JudgeSummary
from rag_resources.core.metrics import (
    SERVED,
    JudgedRanking,
    mean_metrics,
    per_query_metrics,
    percentile,
    percentile_interval,
)
from rag_resources.core.types import RetrievalResult


@dataclass(frozen=True, slots=True)
class QueryOutcome:
    """The result of one golden question.

    Attributes:
        golden: A stored entry, so its id is not None.
        retrieved_note_ids: Notes of the results until ten distinct ones, best first, with repeats;
            none beyond the depth that the configuration searches.
        latency_ms: Time of the whole retrieval, or until it failed, without users' deadline.
        stages: Milliseconds per stage.
        degraded: Stages that were skipped; the question was not asked in full.
        error: Why it failed, in Spanish; None if it did not.
        context: The results that a user gets: the first ones; an answer is made from them.
        places: The question's places, at their positions in the notes when it was asked.
    """

    golden: GoldenEntry
    retrieved_note_ids: tuple[UUID, ...]
    latency_ms: float
    stages: Mapping[str, float]
    degraded: tuple[str, ...] = ()
    error: str | None = None
    context: tuple[RetrievalResult, ...] = ()
    places: tuple[LocatedPlace, ...] = ()

    @property
    def key(self) -> str:
        """The question's key in the metrics."""
        return str(self.golden.golden_id)

    @property
    def judged(self) -> JudgedRanking:
        """Its ranking in the form metrics want."""
        return JudgedRanking(
            relevant=frozenset(str(note_id) for note_id in self.golden.relevant_note_ids),
            retrieved=tuple(str(note_id) for note_id in self.retrieved_note_ids),
        )

    @property
    def is_hit(self) -> bool:
        """Whether a relevant note is among the first ten distinct notes."""
        return self.judged.first_relevant_rank is not None

    @property
    def is_served(self) -> bool:
        """Whether a relevant note is among what a user gets. Property 58."""
        return any(result.note_id in self.golden.relevant_note_ids for result in self.context)


@dataclass(frozen=True, slots=True)
class Timing:
    """How long a question took under the deadline that users have.

    Attributes:
        latency_ms: Time of the whole retrieval; at least the deadline if not answered in full.
        stages: Milliseconds per stage.
        degraded: Stages that were skipped.
    """

    latency_ms: float
    stages: Mapping[str, float]
    degraded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Nearest-rank percentiles of latencies, in milliseconds."""

    p50_ms: float
    p95_ms: float
    p99_ms: float


@dataclass(frozen=True, slots=True)
class Summary:
    """The figures of an evaluation.

    Attributes:
        degraded_queries: Questions that could not be asked in full, twice; any of them disturbs the
            evaluation.
        latency_queries: Questions whose latency was measured.
        late_queries: Those of them that were not answered in full within users' deadline.
        metrics: Mean of each metric over all questions, failed ones as misses.
        per_query: Each metric of each question, by golden id.
        breakdown: Means by category (`category:causal`) and difficulty (`difficulty:3`), with the
            number of questions under `queries`.
        stages: Percentiles per stage.
        latency_p95_interval: 95 % interval of the p95 latency, in milliseconds.
        judgements: Judgements of the answers; None if nothing was judged.
        answers: Citations, silence and confidence of the answers; None if nothing was answered.
    """

    total_queries: int
    failed_queries: int
    degraded_queries: int
    latency_queries: int
    late_queries: int
    metrics: Mapping[str, float]
    per_query: Mapping[str, Mapping[str, float]]
    breakdown: Mapping[str, Mapping[str, float]]
    latency: Percentiles
    latency_p95_interval: tuple[float, float]
    stages: Mapping[str, Percentiles]
    verdict: GateVerdict
    judgements: JudgeSummary | None = None
    answers: AnswerSummary | None = None


@dataclass(frozen=True, slots=True)
class StoredEvaluation:
    """The part of a row of `evaluation_results` that checks, tables and promotions need.

    Attributes:
        answers: The figures of the answers; None if they were not measured.
        served_hit_rate: Share of questions with a relevant note among what a user gets.
        latency_p95_low_ms: Lower end of the 95 % interval of the p95.
        latency_p95_high_ms: Upper end.
        contents: Fingerprints of what it searched.
        measured_at: When it began, by the database's clock.
        degraded_queries: Questions that could not be asked in full.
        latency_queries: Questions whose latency was measured.
        late_queries: Those of them not answered in full within users' deadline.
        breakdown: As in `Summary`.
        judge: The name of the judge; None, as all that concerns it, if nothing was judged.
        answerer: What wrote the judged answers.
    """

    evaluation_id: UUID
    configuration: str
    config: Mapping[str, object]
    config_hash: str
    golden_hash: str
    model: str
    model_digest: str
    chunking_hashes: tuple[str, ...]
    total_queries: int
    failed_queries: int
    hit_rate_at_1: float
    hit_rate_at_3: float
    hit_rate_at_5: float
    hit_rate_at_10: float
    hit_rate_at_10_low: float
    hit_rate_at_10_high: float
    mrr: float
    ndcg_at_10: float
    precision_at_10: float
    recall_at_10: float
    latency_p50_ms: float
    latency_p95_ms: float
    latency_p99_ms: float
    breakdown: Mapping[str, Mapping[str, float]]
    gate: str
    created_at: datetime
    served_hit_rate: float
    latency_p95_low_ms: float
    latency_p95_high_ms: float
    contents: Contents
    measured_at: datetime
    latency_queries: int
    late_queries: int
    degraded_queries: int = 0
    answers: AnswerFigures | None = None
    faithfulness: float | None = None
    answer_relevance: float | None = None
    judge: str | None = None
    judge_model: str | None = None
    judge_version: str | None = None
    answerer: str | None = None
    judged_queries: int | None = None
    judge_failures: int | None = None

    @property
    def is_disturbed(self) -> bool:
        """Whether a question was not asked in full; no gate uses such an evaluation."""
        return self.degraded_queries > 0

    @property
    def quality(self) -> tuple[float, float, float]:
        """The order of evaluations that no test distinguishes: MRR, Hit_Rate@final, Hit_Rate@10."""
        return self.mrr, self.served_hit_rate, self.hit_rate_at_10

    def is_faster_than(self, other: "StoredEvaluation") -> bool:
        """Whether its p95 is lower beyond the noise of both: their intervals do not overlap."""
        return self.latency_p95_high_ms < other.latency_p95_low_ms


def hits_of(outcomes: Sequence[QueryOutcome]) -> dict[UUID, bool]:
    """Return whether each question found a relevant note among the first ten, by golden id."""
    return {
        outcome.golden.golden_id: outcome.is_hit for outcome in outcomes if outcome.golden.golden_id
    }


def percentiles(values: Sequence[float]) -> Percentiles:
    """Return p50, p95 and p99 of at least one value. Property 27."""
    return Percentiles(*(percentile(values, share) for share in (0.50, 0.95, 0.99)))


def summarize(
    outcomes: Sequence[QueryOutcome],
    judgements: JudgeSummary | None = None,
    *,
    answers: AnswerSummary | None = None,
    gate: GateConfig | None = None,
    timings: Sequence[Timing] | None = None,
) -> Summary:
    """Compute the figures of an evaluation.

    Args:
        outcomes: One per golden question, at least one.
        judgements: Judgements of their answers, if they were judged.
        answers: Their answers, if there are any.
        gate: Thresholds for the verdict; None takes the defaults.
        timings: Times under users' deadline; None takes the times of the outcomes.

    Properties: 25 to 28, 58.
    """
    ranked = per_query_metrics({outcome.key: outcome.judged for outcome in outcomes})
    per_query = {
        outcome.key: {**ranked[outcome.key], SERVED: float(outcome.is_served)}
        for outcome in outcomes
    }
    timed: Sequence[QueryOutcome | Timing] = outcomes if timings is None else timings
    latencies = [item.latency_ms for item in timed]
    hits = sum(per_query[outcome.key]["hit_rate_at_10"] == 1 for outcome in outcomes)
    stage_names = list(dict.fromkeys(name for item in timed for name in item.stages))
    degraded = sum(bool(outcome.degraded) for outcome in outcomes)
    return Summary(
        total_queries=len(outcomes),
        failed_queries=sum(outcome.error is not None for outcome in outcomes),
        degraded_queries=degraded,
        latency_queries=len(timed),
        late_queries=sum(bool(item.degraded) for item in timed),
        metrics=mean_metrics(per_query),
        per_query=per_query,
        breakdown=_breakdown(outcomes, per_query),
        latency=percentiles(latencies),
        latency_p95_interval=percentile_interval(latencies, 0.95),
        stages={
            name: percentiles([item.stages[name] for item in timed if name in item.stages])
            for name in stage_names
        },
        verdict=judge(
            hits,
            len(outcomes),
            threshold=(gate or GateConfig()).hit_rate_at_10,
            is_disturbed=degraded > 0,
        ),
        judgements=judgements,
        answers=answers,
    )


def judge_stored(evaluation: StoredEvaluation, gate: GateConfig) -> GateVerdict:
    """Judge a stored evaluation by the current gate."""
    hits = round(evaluation.hit_rate_at_10 * evaluation.total_queries)
    return judge(
        hits,
        evaluation.total_queries,
        threshold=gate.hit_rate_at_10,
        is_disturbed=evaluation.is_disturbed,
    )


_BROKEN_DOWN = ("hit_rate_at_1", "hit_rate_at_3", "hit_rate_at_5", "hit_rate_at_10", "mrr")


def _breakdown(
    outcomes: Sequence[QueryOutcome], per_query: Mapping[str, Mapping[str, float]]
) -> dict[str, dict[str, float]]:
    groups: dict[str, list[str]] = {}
    for outcome in outcomes:
        groups.setdefault(f"category:{outcome.golden.category}", []).append(outcome.key)
        groups.setdefault(f"difficulty:{outcome.golden.difficulty}", []).append(outcome.key)
    return {
        name: {
            "queries": float(len(keys)),
            **{metric: fmean(per_query[key][metric] for key in keys) for metric in _BROKEN_DOWN},
        }
        for name, keys in sorted(groups.items())
    }
