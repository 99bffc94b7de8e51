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
from rag_resources.core.measurement import Versions
from rag_resources.core.metrics import (
    SERVED,
    JudgedRanking,
    distinct_in_order,
    mean_metrics,
    per_query_metrics,
    percentile,
    percentile_interval,
)
from rag_resources.core.page_metrics import DocumentPage, judge_pages
from rag_resources.core.passage_metrics import NoteRange, judge_passages, target_ranges
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
        retrieved_passages: Ranges of the results in their notes, best first, without the sentences
            around them.
        places: The question's places, at their positions in the notes when it was asked.
        retrieved_pages: Pages of the results that come from documents, best first, with repeats.
        pages: The pages of documents that its places lie on.
        deep_note_ids: The same as `retrieved_note_ids` to the depth that the configuration
            searches, if the question was asked that deep.
    """

    golden: GoldenEntry
    retrieved_note_ids: tuple[UUID, ...]
    latency_ms: float
    stages: Mapping[str, float]
    degraded: tuple[str, ...] = ()
    error: str | None = None
    context: tuple[RetrievalResult, ...] = ()
    retrieved_passages: tuple[NoteRange, ...] = ()
    places: tuple[LocatedPlace, ...] = ()
    retrieved_pages: tuple[DocumentPage, ...] = ()
    pages: frozenset[DocumentPage] = frozenset()
    deep_note_ids: tuple[UUID, ...] = ()

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
    def deep_rank(self) -> int | None:
        """1-based rank of the first relevant note as deep as was asked; None if absent."""
        found = distinct_in_order(self.deep_note_ids or self.retrieved_note_ids)
        relevant = self.golden.relevant_note_ids
        return next((at for at, note in enumerate(found, start=1) if note in relevant), None)

    @property
    def is_hit(self) -> bool:
        """Whether a relevant note is among the first ten distinct notes."""
        return self.judged.first_relevant_rank is not None

    @property
    def is_served(self) -> bool:
        """Whether a relevant note is among what a user gets. Property 58."""
        return any(result.note_id in self.golden.relevant_note_ids for result in self.context)

    @property
    def is_found_in_vain(self) -> bool:
        """Whether a relevant note is among the first ten, but not among what a user gets."""
        return self.is_hit and not self.is_served

    @property
    def judged_passages(self) -> JudgedRanking | None:
        """Its passages in the same form; None for a question without places."""
        targets = target_ranges(self.golden.relevant_note_ids, self.places)
        return judge_passages(self.retrieved_passages, targets) if targets else None

    @property
    def judged_pages(self) -> JudgedRanking | None:
        """Its pages in the same form; None for a question whose places lie in no document."""
        return judge_pages(self.retrieved_pages, self.pages) if self.pages else None


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
class PlaceSummary:
    """The figures of an evaluation per passage, or per page, over the questions with places.

    Attributes:
        metrics: Mean of each metric, failed questions as misses; all 0 without questions.
        per_query: Each metric of each of those questions, by golden id.
        first_ranks: 1-based rank of the first relevant passage or page, None if there is none.
    """

    metrics: Mapping[str, float]
    per_query: Mapping[str, Mapping[str, float]]
    first_ranks: Mapping[str, int | None]

    @property
    def queries(self) -> int:
        """How many questions it covers."""
        return len(self.per_query)


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
        breakdown: Means by category (`category:causal`), difficulty (`difficulty:3`) and tag
            (`tag:salud`), with the number of questions under `queries`.
        stages: Percentiles per stage.
        latency_p95_interval: 95 % interval of the p95 latency, in milliseconds.
        passages: The same metrics per passage.
        pages: The same metrics per page, over the questions whose places lie in documents.
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
    passages: PlaceSummary
    pages: PlaceSummary
    judgements: JudgeSummary | None = None
    answers: AnswerSummary | None = None


@dataclass(frozen=True, slots=True)
class StoredEvaluation:
    """The part of a row of `evaluation_results` that checks, tables and promotions need.

    Attributes:
        passage_queries: Number of questions with places; if 0, the metrics per passage are None.
        page_queries: Number of questions whose places lie in documents.
        page_metrics: Mean of each metric per page; None if there are none.
        answers: The figures of the answers; None if they were not measured.
        served_hit_rate: Share of questions with a relevant note among what a user gets. This and
            the fields marked "or None" are None in evaluations from before they were recorded.
        latency_p95_low_ms: Lower end of the 95 % interval of the p95, or None.
        latency_p95_high_ms: Upper end, or None.
        contents: Fingerprints of what it searched, or None.
        measured_at: When it began, by the database's clock, or None.
        degraded_queries: Questions that could not be asked in full.
        latency_queries: Questions whose latency was measured, or None.
        late_queries: Those of them not answered in full within users' deadline, or None.
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
    index_version: int
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
    passage_queries: int = 0
    passage_hit_rate_at_1: float | None = None
    passage_hit_rate_at_3: float | None = None
    passage_hit_rate_at_5: float | None = None
    passage_hit_rate_at_10: float | None = None
    passage_mrr: float | None = None
    passage_ndcg_at_10: float | None = None
    passage_precision_at_10: float | None = None
    passage_recall_at_10: float | None = None
    served_hit_rate: float | None = None
    latency_p95_low_ms: float | None = None
    latency_p95_high_ms: float | None = None
    contents: Contents | None = None
    measured_at: datetime | None = None
    degraded_queries: int = 0
    latency_queries: int | None = None
    late_queries: int | None = None
    page_queries: int = 0
    page_metrics: Mapping[str, float] | None = None
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
        return self.mrr, self.served_hit_rate or 0.0, self.hit_rate_at_10

    def is_faster_than(self, other: "StoredEvaluation") -> bool:
        """Whether its p95 is lower beyond the noise of both: their intervals do not overlap."""
        if self.latency_p95_high_ms is None or other.latency_p95_low_ms is None:
            return False
        return self.latency_p95_high_ms < other.latency_p95_low_ms

    @property
    def versions(self) -> Versions:
        """The versions of what was evaluated."""
        return Versions(
            config_hash=self.config_hash,
            golden_hash=self.golden_hash,
            model=self.model,
            model_digest=self.model_digest,
            chunking_hashes=self.chunking_hashes,
            index_version=self.index_version,
        )


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
        passages=_summarize({outcome.key: outcome.judged_passages for outcome in outcomes}),
        pages=_summarize({outcome.key: outcome.judged_pages for outcome in outcomes}),
        judgements=judgements,
        answers=answers,
    )


def _summarize(rankings: Mapping[str, JudgedRanking | None]) -> PlaceSummary:
    judged = {key: ranking for key, ranking in rankings.items() if ranking}
    per_query = per_query_metrics(judged)
    return PlaceSummary(
        metrics=mean_metrics(per_query),
        per_query=per_query,
        first_ranks={key: ranking.first_relevant_rank for key, ranking in judged.items()},
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


def _breakdown(
    outcomes: Sequence[QueryOutcome], per_query: Mapping[str, Mapping[str, float]]
) -> dict[str, dict[str, float]]:
    groups: dict[str, list[str]] = {}
    for outcome in outcomes:
        groups.setdefault(f"category:{outcome.golden.category}", []).append(outcome.key)
        groups.setdefault(f"difficulty:{outcome.golden.difficulty}", []).append(outcome.key)
        for tag in dict.fromkeys(outcome.golden.tags):
            groups.setdefault(f"tag:{tag}", []).append(outcome.key)
    return {
        name: {
            "queries": float(len(keys)),
            **{
                metric: fmean(per_query[key][metric] for key in keys)
                for metric in ("hit_rate_at_1", "hit_rate_at_5", "hit_rate_at_10", "mrr")
            },
        }
        for name, keys in sorted(groups.items())
    }
