"""Compares two evaluations metric by metric: which is better, and by how much.

The statistics are in `core.significance`; loading evaluations belongs in `evaluation.comparison`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from uuid import UUID

import numpy as np

from rag_resources.core.answer_metrics import ANSWER_METRICS, FIRST_CITATION, FIRST_QUOTATION
from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.metrics import SERVED
from rag_resources.core.significance import (
    DifferenceInterval,
    Matrix,
    bootstrap_intervals,
    holm,
    loss_p_value,
    mcnemar_p_value,
    paired_proportions_interval,
    randomization_p_values,
)
from rag_resources.languages.messages import _

ALPHA = 0.05
HITS = "hit_rate_at_10"
COMPARED = (HITS, SERVED, "mrr", "ndcg_at_10")
"""What is found."""
_TESTED = (*COMPARED, *ANSWER_METRICS)
_YES_OR_NO = (HITS, FIRST_CITATION, FIRST_QUOTATION)
QueryMetrics = Mapping[UUID, Mapping[str, float]]
"""Every metric of every question, by golden id."""


class Verdict(StrEnum):
    """What the evidence says about the second evaluation compared with the first."""

    BETTER = "better"
    WORSE = "worse"
    NO_EVIDENCE = "no evidence"


class Inferiority(StrEnum):
    """Whether the second evaluation may replace the first.

    `inferior`: it is worse, and a loss of more than the margin cannot be ruled out.
    """

    NON_INFERIOR = "non-inferior"
    INFERIOR = "inferior"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class MetricComparison:
    """One metric of two evaluations over the same questions.

    Attributes:
        before: Mean of the first.
        after: Mean of the second.
        interval: 95 % interval of after minus before, by BCa bootstrap.
        p_value: Two-sided: exact McNemar for hits, paired randomization for the others.
        adjusted_p_value: By Holm, over everything compared in the same call.
    """

    metric: str
    before: float
    after: float
    interval: DifferenceInterval
    p_value: float
    adjusted_p_value: float

    @property
    def difference(self) -> float:
        """After minus before."""
        return self.after - self.before

    @property
    def verdict(self) -> Verdict:
        """The verdict at a family-wise level of 5 %."""
        if self.adjusted_p_value > ALPHA or self.difference == 0:
            return Verdict.NO_EVIDENCE
        return Verdict.BETTER if self.difference > 0 else Verdict.WORSE


@dataclass(frozen=True, slots=True)
class HitChanges:
    """How many of the common questions one of two evaluations found and the other did not."""

    lost: int
    gained: int
    queries: int

    def inferiority(self, margin: float) -> "NonInferiority":
        """Judge the hit rate of the second; see `judge_inferiority`."""
        return judge_inferiority(
            lost=self.lost, gained=self.gained, queries=self.queries, margin=margin
        )


@dataclass(frozen=True, slots=True)
class Comparison:
    """The metrics of two evaluations over the questions they have in common."""

    queries: int
    metrics: tuple[MetricComparison, ...]


@dataclass(frozen=True, slots=True)
class NonInferiority:
    """Whether a hit rate fell, and whether a loss of more than the margin can be ruled out.

    Attributes:
        interval: Tango's 90 % interval of its difference; each side is a test at 5 %.
    """

    state: Inferiority
    interval: DifferenceInterval
    margin: float


def compare(before: QueryMetrics, after: QueryMetrics) -> Comparison:
    """Compare two evaluations over the questions they have in common.

    Raises:
        InvalidParameterError: They have none.
    """
    return compare_pairs([(before, after)])[0]


def compare_pairs(pairs: Sequence[tuple[QueryMetrics, QueryMetrics]]) -> list[Comparison]:
    """Compare pairs of evaluations as one family, with one correction over all of them.

    Args:
        pairs: The first and the second evaluation of each pair.

    Raises:
        InvalidParameterError: A pair has no question in common.
    """
    common = [tuple(sorted(before.keys() & after.keys())) for before, after in pairs]
    if not all(common):
        raise InvalidParameterError(_("There is no common question to compare."))
    measured: dict[int, list[MetricComparison]] = {}
    # Pairs over the same questions share the random signs and resamples, which cost the most.
    for keys in dict.fromkeys(common):
        members = [index for index, own in enumerate(common) if own == keys]
        measured |= _measure(pairs, members, keys)
    flat = [item.p_value for index in range(len(pairs)) for item in measured[index]]
    adjusted = iter(holm(flat))
    return [
        Comparison(
            len(keys),
            tuple(replace(item, adjusted_p_value=next(adjusted)) for item in measured[index]),
        )
        for index, keys in enumerate(common)
    ]


def judge_inferiority(*, lost: int, gained: int, queries: int, margin: float) -> NonInferiority:
    """Test at 5 % whether a hit rate fell by less than the margin, and whether it fell at all.

    It fell if the exact McNemar test says so, or if the interval is beyond the margin. A loss that
    is significant, but significantly smaller than the margin, is not inferiority.

    Args:
        lost: Questions found before and not after.
        gained: Questions found after and not before.
        queries: Number of all questions, >= 1.
        margin: Share of questions that may be lost, in (0, 1).
    """
    interval = paired_proportions_interval(
        lost=lost, gained=gained, queries=queries, level=1 - 2 * ALPHA
    )
    if interval.low > -margin:
        state = Inferiority.NON_INFERIOR
    elif interval.high < -margin or loss_p_value(lost, gained) <= ALPHA:
        state = Inferiority.INFERIOR
    else:
        state = Inferiority.UNDECIDED
    return NonInferiority(state, interval, margin)


def hit_changes(before: QueryMetrics, after: QueryMetrics, metric: str) -> HitChanges:
    """Count the hits lost and gained of a hit rate, over the common questions."""
    keys = before.keys() & after.keys()
    differences = [after[key][metric] - before[key][metric] for key in keys]
    lost, gained = (sum(sign * value > 0 for value in differences) for sign in (-1, 1))
    return HitChanges(lost, gained, len(keys))


def _measure(
    pairs: Sequence[tuple[QueryMetrics, QueryMetrics]], members: Sequence[int], keys: Sequence[UUID]
) -> dict[int, list[MetricComparison]]:
    """Measure the pairs with the given indexes, which all have the same questions."""
    columns = [(index, metric) for index in members for metric in _recorded(*pairs[index], keys)]
    differences = np.column_stack(
        [_differences(*pairs[index], keys, metric) for index, metric in columns]
    )
    p_values = randomization_p_values(differences)
    intervals = bootstrap_intervals(differences)
    measured: dict[int, list[MetricComparison]] = {index: [] for index in members}
    for column, (index, metric) in enumerate(columns):
        p_value = _mcnemar(differences[:, column]) if metric in _YES_OR_NO else p_values[column]
        before, after = (
            float(np.mean([asked[key][metric] for key in keys])) for asked in pairs[index]
        )
        measured[index].append(
            MetricComparison(metric, before, after, intervals[column], p_value, p_value)
        )
    return measured


def _recorded(before: QueryMetrics, after: QueryMetrics, keys: Sequence[UUID]) -> list[str]:
    """Return the metrics that both measured; an evaluation may be older than a metric."""
    return [
        metric
        for metric in _TESTED
        if all(metric in before[key] and metric in after[key] for key in keys)
    ]


def _differences(
    before: QueryMetrics, after: QueryMetrics, keys: Sequence[UUID], metric: str
) -> list[float]:
    return [after[key][metric] - before[key][metric] for key in keys]


def _mcnemar(differences: Matrix) -> float:
    return mcnemar_p_value(int((differences < 0).sum()), int((differences > 0).sum()))
