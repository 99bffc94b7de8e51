"""Decides whether a configuration is better with the causal graph than without it.

It must not harm the questions that one note answers, and it must gain on those that need several.
The evaluations are read in `evaluation.gates`.
"""

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

import numpy as np

from rag_resources.core.comparison import (
    ALPHA,
    HITS,
    Inferiority,
    NonInferiority,
    QueryMetrics,
    hit_changes,
)
from rag_resources.core.significance import (
    DifferenceInterval,
    bootstrap_intervals,
    randomization_p_values,
)
from rag_resources.languages.messages import Text, _

SINGLE, MULTI = "hops:single", "hops:multi"
"""Tags of golden questions: one note is enough for the answer, or several are needed."""

RECALL = "recall_at_10"


@dataclass(frozen=True, slots=True)
class GraphVerdict:
    """The effect of the graph on the questions.

    Attributes:
        harm: Hit_Rate@10 of the questions with one note; None if it could not be compared.
        gain: Mean difference of recall@10 of the questions with several notes.
        interval: Its 95 % interval, by BCa bootstrap; None if it could not be compared.
        p_value: Two-sided, by paired randomization.
        reason: Why it has not won, in Spanish; None if it has.
    """

    harm: NonInferiority | None = None
    gain: float = 0.0
    interval: DifferenceInterval | None = None
    p_value: float = 1.0
    reason: Text | None = None

    @property
    def has_won(self) -> bool:
        """Whether it does no harm, and gains."""
        return self.reason is None


def judge_graph(
    before: QueryMetrics,
    after: QueryMetrics,
    *,
    single: Collection[UUID],
    multi: Collection[UUID],
    margin: float,
) -> GraphVerdict:
    """Judge a configuration with the graph against the same one without it.

    Args:
        before: Every metric of every question, without the graph.
        after: The same with the graph.
        single: The questions that one note answers.
        multi: The questions that need several notes.
        margin: Share of the `single` questions whose hit may be lost, in (0, 1).
    """
    common = before.keys() & after.keys()
    ones, others = sorted(common & set(single)), sorted(common & set(multi))
    if not ones or not others:
        return GraphVerdict(
            reason=_(
                "questions with the tag hops:single or with hops:multi are missing: without them "
                "it is not known whether the graph harms or helps; tag them with “rag golden "
                "update”"
            ).format()
        )
    changes = hit_changes(_only(before, ones), _only(after, ones), HITS)
    harm = changes.inferiority(margin)
    differences = np.array([[after[key][RECALL] - before[key][RECALL]] for key in others])
    gain = float(differences.mean())
    (interval,) = bootstrap_intervals(differences)
    (p_value,) = randomization_p_values(differences)
    reason = None
    if harm is None or harm.state is not Inferiority.NON_INFERIOR:
        low = harm.interval.low if harm else -1.0
        reason = _(
            "the graph may harm the {count} questions about a single note: it is not ruled out "
            "that their Hit_Rate@10 falls by more than {margin:.3f} (end of the interval: "
            "{low:+.3f})"
        ).format(count=len(ones), low=low, margin=margin)
    elif gain <= 0 or p_value > ALPHA:
        reason = _(
            "the graph gains nothing on the {count} questions about several notes: recall@10 "
            "{gain:+.3f} ({low:+.3f} to {high:+.3f}; p = {p_value:.3f})"
        ).format(
            count=len(others), gain=gain, low=interval.low, high=interval.high, p_value=p_value
        )
    return GraphVerdict(harm, gain, interval, p_value, reason)


def _only(metrics: QueryMetrics, keys: Collection[UUID]) -> QueryMetrics:
    return {key: metrics[key] for key in keys}
