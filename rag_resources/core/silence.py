"""Decides when an answer is withheld, by the curve of misses and false answers.

Every golden question is asked twice: as it is, and with its relevant notes hidden. No answer to the
first is a miss; an answer to the second is false. The probability that is compared with the
threshold is that of `Claim.ANSWERABLE` in `core.confidence`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from rag_resources.core.fusion_config import Part, Share
from rag_resources.core.gate import Interval, wilson_interval

ALLOWED_MISSES = 0.1
"""Share of answerable questions that may be left unanswered, by default."""
MOST_ALLOWED_MISSES = 0.5
_STEP = 0.01
_ROUNDING = 1e-9


class SilencePoint(Part):
    """The misses and false answers of one threshold.

    Attributes:
        threshold: A response whose probability is below it is not answered.
        allowed: The share of misses that it was chosen for.
        missed: Questions left unanswered although their notes were there.
        false_answers: Questions answered although their notes were hidden.
    """

    threshold: Share
    allowed: Share
    missed: int = Field(ge=0)
    false_answers: int = Field(ge=0)


class SilenceCurve(Part):
    """Misses and false answers by threshold.

    Each question is counted with a threshold that was chosen without the questions of its fold, so
    the counts can be expected of other questions too.

    Attributes:
        asked: Questions asked with their notes.
        hidden: Questions asked without them.
        points: One for each allowed share of misses, ascending; so are their thresholds.
    """

    asked: int = Field(ge=1)
    hidden: int = Field(ge=1)
    points: tuple[SilencePoint, ...] = Field(min_length=1)

    def at(self, allowed_misses: float) -> SilencePoint:
        """Return the last point that was chosen for at most this share of misses."""
        found = [point for point in self.points if point.allowed <= allowed_misses + _ROUNDING]
        return found[-1] if found else self.points[0]

    def misses(self, point: SilencePoint) -> float:
        """Return the share of questions that the threshold leaves unanswered."""
        return point.missed / self.asked

    def false_answers(self, point: SilencePoint) -> float:
        """Return the share of questions without their notes that are answered nevertheless."""
        return point.false_answers / self.hidden

    def intervals(self, point: SilencePoint) -> tuple[Interval, Interval]:
        """Return the 95 % intervals of misses and of false answers by Wilson."""
        return (
            wilson_interval(point.missed, self.asked),
            wilson_interval(point.false_answers, self.hidden),
        )

    def to_json(self, point: SilencePoint) -> dict[str, Any]:
        """Return the camelCase form of one point."""
        missed, false = self.intervals(point)
        return {
            "allowedMisses": point.allowed,
            "misses": self.misses(point),
            "missesInterval": [missed.low, missed.high],
            "falseAnswers": self.false_answers(point),
            "falseAnswersInterval": [false.low, false.high],
            "questions": self.asked,
        }


@dataclass(frozen=True, slots=True)
class SilenceCase:
    """A question asked with its notes, or without them.

    Attributes:
        part: Its fold in the cross-validation.
        probability: Probability that the notes answer, by a model trained on other folds; None if
            no sentence could answer, which is silence at any threshold.
    """

    part: int
    probability: float | None
    is_hidden: bool

    @property
    def height(self) -> float:
        """Its probability, or a value below any probability."""
        return -1.0 if self.probability is None else self.probability


def silence_curve(cases: Sequence[SilenceCase]) -> SilenceCurve | None:
    """Return the curve of some cases; None unless there are both kinds.

    Properties: 48.
    """
    asked = sorted(case.height for case in cases if not case.is_hidden)
    hidden = [case for case in cases if case.is_hidden]
    if not asked or not hidden:
        return None
    parts = sorted({case.part for case in cases})
    known = {
        part: sorted(c.height for c in cases if not c.is_hidden and c.part != part) or asked
        for part in parts
    }
    points = []
    for step in range(round(MOST_ALLOWED_MISSES / _STEP) + 1):
        allowed = round(step * _STEP, 2)
        own = {part: threshold_for(values, allowed) for part, values in known.items()}
        silent = [case for case in cases if case.height < own[case.part]]
        missed = sum(not case.is_hidden for case in silent)
        points.append(
            SilencePoint(
                threshold=threshold_for(asked, allowed),
                allowed=allowed,
                missed=missed,
                false_answers=len(hidden) - (len(silent) - missed),
            )
        )
    return SilenceCurve(asked=len(asked), hidden=len(hidden), points=tuple(points))


def threshold_for(heights: Sequence[float], allowed_misses: float) -> float:
    """Return the highest threshold below which at most a share of questions lies.

    Args:
        heights: Those of questions asked with their notes, ascending, at least one; negative
            without a probability. If more are negative than allowed, the threshold is 0.
        allowed_misses: In [0, 1).
    """
    most = math.floor(allowed_misses * len(heights) + _ROUNDING)
    return max(0.0, heights[min(most, len(heights) - 1)])
