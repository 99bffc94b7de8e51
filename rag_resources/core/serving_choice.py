"""Chooses the configuration to serve among those that may.

Whether a configuration may serve is decided before, by its gates (`evaluation.gates`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rag_resources.core.comparison import ALPHA, HITS, QueryMetrics, hit_changes
from rag_resources.core.evaluation import StoredEvaluation
from rag_resources.core.metrics import SERVED
from rag_resources.core.significance import holm, loss_p_value, randomization_p_values

_MRR = "mrr"


@dataclass(frozen=True, slots=True)
class Passed:
    """A configuration that may serve.

    Attributes:
        evaluation: The evaluation that it passed its gates on.
        questions: Every metric of every question of that evaluation.
    """

    evaluation: StoredEvaluation
    questions: QueryMetrics


def best_to_serve(
    passed: Sequence[Passed], *, serving: str | None, name: str = ""
) -> StoredEvaluation:
    """Choose the configuration to serve among those that may.

    1. One that loses significantly more questions than the one with the highest Hit_Rate@10 is out.
       The same is then done by Hit_Rate@final.
    2. The serving configuration stays, unless another one has a significantly higher MRR. One with
       the same fields under another name does not take its place.
    3. Otherwise the highest MRR wins. Among equal figures, one is out if it is slower than another
       and the intervals of p95 do not overlap, since the load of the machine moves p95 more than
       configurations do. Then the first name wins.

    All tests are paired by question, at 5 %, with Holm's adjustment over the configurations. Two
    without a common question are no evidence against each other.

    Args:
        passed: At least one.
        serving: Hash of the serving configuration; None if nothing serves.
        name: Its name.
    """
    left = _without_all_losers(passed)
    present = [item for item in left if item.evaluation.config_hash == serving]
    present = [item for item in present if _name(item) == name] or present
    if present:
        left = _with_higher_mrr(left, min(present, key=_name)) or present
    best = max(item.evaluation.quality for item in left)
    tied = [item for item in left if item.evaluation.quality == best]
    fast = [
        item
        for item in tied
        if not any(other.evaluation.is_faster_than(item.evaluation) for other in tied)
    ]
    return min(fast, key=_name).evaluation


def losers(passed: Sequence[Passed]) -> frozenset[str]:
    """Name the configurations that are out because they lose significantly more questions."""
    left = {_name(item) for item in _without_all_losers(passed)}
    return frozenset(_name(item) for item in passed if _name(item) not in left)


def ahead_in_mrr(evaluations: Sequence[StoredEvaluation], serving: str) -> list[str]:
    """Name the configurations whose MRR is higher than that of the serving one, if only by chance.

    Args:
        evaluations: The latest of each configuration.
        serving: Name of the serving configuration; if it was not evaluated, there are none.
    """
    own = {item.configuration: item.mrr for item in evaluations}
    return [name for name, mrr in own.items() if serving in own and mrr > own[serving]]


def _without_all_losers(passed: Sequence[Passed]) -> list[Passed]:
    return _without_losers(_without_losers(passed, HITS), SERVED)


def _without_losers(passed: Sequence[Passed], metric: str) -> list[Passed]:
    """Leave out those that are significantly worse than the one with the highest hit rate."""
    best = max(passed, key=lambda item: (_hit_rate(item, metric), item.evaluation.quality))
    others = [item for item in passed if item is not best]
    changes = [hit_changes(best.questions, item.questions, metric) for item in others]
    p_values = holm([loss_p_value(own.lost, own.gained) for own in changes])
    kept = [item for item, p_value in zip(others, p_values, strict=True) if p_value > ALPHA]
    return [best, *kept]


def _hit_rate(item: Passed, metric: str) -> float:
    measured = item.evaluation
    return measured.hit_rate_at_10 if metric == HITS else measured.served_hit_rate


def _with_higher_mrr(passed: Sequence[Passed], present: Passed) -> list[Passed]:
    """Keep those whose MRR is significantly higher than that of what serves."""
    others = [item for item in passed if item is not present]
    differences = [_differences(present, item) for item in others]
    p_values = holm(
        [randomization_p_values(np.array(own)[:, None])[0] if own else 1.0 for own in differences]
    )
    return [
        item
        for item, own, p_value in zip(others, differences, p_values, strict=True)
        if sum(own) > 0 and p_value <= ALPHA
    ]


def _differences(before: Passed, after: Passed) -> list[float]:
    first, second = before.questions, after.questions
    return [second[key][_MRR] - first[key][_MRR] for key in sorted(first.keys() & second.keys())]


def _name(item: Passed) -> str:
    return item.evaluation.configuration
