"""The three-state gate over Hit_Rate@10, the interval beside it, and what else may be gated.

Whether an evaluation is worse than another is `core.comparison`.
"""

import math
from dataclasses import dataclass
from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field
from scipy.stats import norm

from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.messages import Message

HIT_RATE_THRESHOLD = 0.85
_MOST_QUERIES = 1_000_000
_ROUNDING = 1e-9
_Z = float(norm.ppf(0.975))


class GateConfig(BaseModel):
    """What an evaluation must reach, and which of it stops a promotion. A gate that does not warns.

    Attributes:
        hit_rate_at_10: Lowest Hit_Rate@10.
        latency_p95_ms: What the p95 of a retrieval must stay under, in milliseconds.
        margin: How much lower than that of what serves Hit_Rate@10 may be.
        hit_rate_blocks: Whether a candidate under `hit_rate_at_10` is not promoted.
        latency_blocks: Whether one over `latency_p95_ms` is not.
        regression_blocks: Whether one that is worse by more than `margin` for certain is not.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    hit_rate_at_10: float = Field(HIT_RATE_THRESHOLD, gt=0, le=1)
    latency_p95_ms: float = Field(2000.0, gt=0)
    margin: float = Field(0.02, gt=0, lt=1)
    hit_rate_blocks: bool = True
    latency_blocks: bool = True
    regression_blocks: bool = True


class GateState(StrEnum):
    """The verdict. Only `fail` stops a promotion; `inconclusive` is a pass that warns."""

    PASS = "pass"  # noqa: S105 - a verdict, not a password
    INCONCLUSIVE = "inconclusive"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Interval:
    """A 95 % confidence interval of a proportion, inside [0, 1]."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class GateVerdict:
    """What the gate says.

    Attributes:
        hit_rate: Observed Hit_Rate@10.
        interval: Wilson 95 % interval of it.
        queries_to_settle: How many more questions, at least, bring the lower bound to the threshold
            if the observed rate holds; 0 unless the state is inconclusive; None if no number does.
    """

    state: GateState
    hit_rate: float
    interval: Interval
    threshold: float
    queries_to_settle: int | None

    @property
    def allows_promotion(self) -> bool:
        """Whether the hard rule, observed rate >= threshold, holds."""
        return self.state is not GateState.FAIL


def wilson_interval(hits: int, queries: int) -> Interval:
    """Return the Wilson score interval of a proportion at 95 %.

    Source: Wilson, JASA 1927; a test compares with `scipy.stats`.

    Raises:
        InvalidParameterError: Not 0 <= hits <= queries, or no queries.
    """
    if not 0 <= hits <= queries or queries == 0:
        raise InvalidParameterError(Message.GATE_COUNTS.format(hits=hits, queries=queries))
    rate = hits / queries
    # The upper bound of the hits is the lower bound of the misses, mirrored.
    high = 1 - _lower_bound(queries - hits, queries)
    return Interval(min(rate, _lower_bound(hits, queries)), max(rate, high))


def judge(hits: int, queries: int, *, threshold: float = HIT_RATE_THRESHOLD) -> GateVerdict:
    """Judge an observed Hit_Rate@10.

    Args:
        hits: Questions with a relevant note in the first ten distinct notes.
        queries: All questions, failed ones included.
        threshold: Of the hard rule.
    """
    interval = wilson_interval(hits, queries)
    # Counts, not rates: 17/20 >= 0.85 must not depend on how 0.85 is rounded.
    if hits < math.ceil(threshold * queries - 1e-9):
        return GateVerdict(GateState.FAIL, hits / queries, interval, threshold, 0)
    if interval.low >= threshold:
        return GateVerdict(GateState.PASS, hits / queries, interval, threshold, 0)
    more = queries_to_settle(hits, queries, threshold)
    return GateVerdict(GateState.INCONCLUSIVE, hits / queries, interval, threshold, more)


def queries_to_settle(hits: int, queries: int, threshold: float) -> int | None:
    """Return the smallest number of further questions that settles the gate at the observed rate.

    Of n questions, `floor(rate * n)` hit. Rounding down makes the lower bound rise and fall from
    one n to the next, so a binary search over it misses the smallest n. The bound without rounding
    only rises, and it is never the lower one: the search starts where that one reaches the
    threshold.

    Args:
        hits: Observed so far.
        queries: Asked so far, at least 1.
        threshold: That the lower bound must reach.

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
    """Return the lower Wilson bound in closed form, which also takes a fraction of a hit."""
    rate, weight = hits / queries, _Z**2 / queries
    spread = _Z * math.sqrt(rate * (1 - rate) / queries + weight / (4 * queries))
    return max(0.0, (rate + weight / 2 - spread) / (1 + weight))
