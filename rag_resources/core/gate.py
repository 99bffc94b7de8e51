"""The three-state gate over Hit_Rate@10 with its confidence interval, and further conditions.

Whether one evaluation is worse than another is decided in `core.comparison`.
"""

import math
from dataclasses import dataclass
from enum import StrEnum
from statistics import NormalDist

from pydantic import BaseModel, ConfigDict, Field

from rag_resources.core.errors import InvalidParameterError
from rag_resources.languages.messages import _

HIT_RATE_THRESHOLD = 0.85
_MOST_QUERIES = 1_000_000
_ROUNDING = 1e-9
_Z = NormalDist().inv_cdf(0.975)


class GateConfig(BaseModel):
    """The thresholds of an evaluation.

    Those of answers only warn by default, since what can be reached depends on the corpus: one
    that is set blocks a promotion.

    Attributes:
        hit_rate_at_10: Lowest Hit_Rate@10.
        latency_p95_ms: Upper limit of the p95 latency of a retrieval, in milliseconds.
        margin: How far Hit_Rate@10 and Hit_Rate@final may be below those of the serving
            configuration.
        citation_precision: Lowest share of an answer's citations that are right.
        false_answers: Highest share of questions that are answered while their notes are hidden,
            with as many answerable ones left unanswered as the settings allow.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    hit_rate_at_10: float = Field(HIT_RATE_THRESHOLD, gt=0, le=1)
    latency_p95_ms: float = Field(2000.0, gt=0)
    margin: float = Field(0.02, gt=0, lt=1)
    citation_precision: float = Field(0.5, ge=0, le=1)
    false_answers: float = Field(0.5, ge=0, le=1)

    @property
    def citations_block(self) -> bool:
        """Whether the precision of citations blocks a promotion."""
        return "citation_precision" in self.model_fields_set

    @property
    def false_answers_block(self) -> bool:
        """Whether false answers block a promotion."""
        return "false_answers" in self.model_fields_set


class GateState(StrEnum):
    """The verdict. `fail` and `disturbed` stop a promotion; `inconclusive` is a pass that warns.

    `disturbed`: the evaluation did not ask every question in full, so it proves nothing.
    """

    PASS = "pass"  # noqa: S105 - a verdict, not a password
    INCONCLUSIVE = "inconclusive"
    FAIL = "fail"
    DISTURBED = "disturbed"

    @property
    def allows_promotion(self) -> bool:
        """Whether the condition is met."""
        return self in (GateState.PASS, GateState.INCONCLUSIVE)


@dataclass(frozen=True, slots=True)
class Interval:
    """A 95 % confidence interval of a proportion, inside [0, 1]."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class GateVerdict:
    """The gate's verdict.

    Attributes:
        hit_rate: Observed Hit_Rate@10.
        interval: Its Wilson 95 % interval.
        queries_to_settle: Fewest additional questions that bring the lower bound to the threshold
            if the observed rate stays the same. 0 unless the state is inconclusive; None if no
            number is enough.
    """

    state: GateState
    hit_rate: float
    interval: Interval
    threshold: float
    queries_to_settle: int | None

    @property
    def allows_promotion(self) -> bool:
        """Whether the hard rule holds: observed rate >= threshold, in an undisturbed evaluation."""
        return self.state.allows_promotion


def wilson_interval(hits: int, queries: int) -> Interval:
    """Return the Wilson score interval of a proportion at 95 %.

    Source: Wilson, JASA 1927; a test compares with `scipy.stats`.

    Raises:
        InvalidParameterError: Not 0 <= hits <= queries, or no queries.
    """
    if not 0 <= hits <= queries or queries == 0:
        raise InvalidParameterError(
            _("{hits} hits of {queries} questions cannot be judged.").format(
                hits=hits, queries=queries
            )
        )
    rate = hits / queries
    # The upper bound of the hit rate is 1 minus the lower bound of the miss rate.
    high = 1 - _lower_bound(queries - hits, queries)
    return Interval(min(rate, _lower_bound(hits, queries)), max(rate, high))


def judge(
    hits: int,
    queries: int,
    *,
    threshold: float = HIT_RATE_THRESHOLD,
    is_disturbed: bool = False,
) -> GateVerdict:
    """Judge an observed Hit_Rate@10.

    Args:
        hits: Questions with a relevant note in the first ten distinct notes.
        queries: All questions, failed ones included.
        threshold: Threshold of the hard rule.
        is_disturbed: Whether a question was not asked in full; then nothing is concluded.
    """
    interval = wilson_interval(hits, queries)
    if is_disturbed:
        return GateVerdict(GateState.DISTURBED, hits / queries, interval, threshold, 0)
    # Counts are compared, not rates: 17/20 >= 0.85 must not depend on the rounding of 0.85.
    if hits < math.ceil(threshold * queries - 1e-9):
        return GateVerdict(GateState.FAIL, hits / queries, interval, threshold, 0)
    if interval.low >= threshold:
        return GateVerdict(GateState.PASS, hits / queries, interval, threshold, 0)
    more = queries_to_settle(hits, queries, threshold)
    return GateVerdict(GateState.INCONCLUSIVE, hits / queries, interval, threshold, more)


def judge_share(share: float, interval: Interval, *, lowest: float) -> GateState:
    """Judge a share that must not be below a threshold; `judge` does so for hit rates.

    Returns:
        `fail` if the share is below it, `inconclusive` if only its interval is.
    """
    if share < lowest - _ROUNDING:
        return GateState.FAIL
    return GateState.PASS if interval.low >= lowest - _ROUNDING else GateState.INCONCLUSIVE


def queries_to_settle(hits: int, queries: int, threshold: float) -> int | None:
    """Return the smallest number of further questions that settles the gate at the observed rate.

    Of n questions, `floor(rate * n)` are assumed to hit. Because of the rounding, the lower bound
    is not monotonic in n, so a binary search over it could miss the smallest n. Without the
    rounding the bound increases with n and is never smaller. So the search starts at the n where
    the unrounded bound reaches the threshold.

    Args:
        hits: Hits so far.
        queries: Questions so far, at least 1.
        threshold: The value that the lower bound must reach.

    Returns:
        How many more than `queries`; None if `_MOST_QUERIES` questions are not enough.
    """
    low, high = queries, _MOST_QUERIES + 1
    while low < high:
        middle = (low + high) // 2
        if _lower_bound(hits / queries * middle, middle) >= threshold - _ROUNDING:
            high = middle
        else:
            low = middle + 1
    settled = (
        total
        for total in range(low, _MOST_QUERIES + 1)
        if _lower_bound(hits * total // queries, total) >= threshold
    )
    first = next(settled, None)
    return None if first is None else first - queries


def _lower_bound(hits: float, queries: int) -> float:
    """Return the lower Wilson bound in closed form, which also accepts fractional hits."""
    rate, weight = hits / queries, _Z**2 / queries
    spread = _Z * math.sqrt(rate * (1 - rate) / queries + weight / (4 * queries))
    return max(0.0, (rate + weight / 2 - spread) / (1 + weight))
