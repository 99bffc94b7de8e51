"""The metrics of answers: citations against golden places, silence, and confidence.

The confidence itself belongs in `core.confidence`, withholding an answer in `core.silence`, and
answering the golden questions in `evaluation.answering`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np
from pydantic import Field

from rag_resources.core.answers import Answer
from rag_resources.core.calibration import Calibrated, Measured
from rag_resources.core.confidence import Claim
from rag_resources.core.fusion_config import Part, Share
from rag_resources.core.gate import Interval, wilson_interval
from rag_resources.core.golden_places import NoteRange
from rag_resources.core.significance import Matrix, bootstrap_intervals
from rag_resources.core.silence import SilenceCurve
from rag_resources.core.types import RetrievalResult

CITATION_PRECISION = "citation_precision"
CITATION_RECALL = "citation_recall"
FIRST_CITATION = "first_citation"
FIRST_QUOTATION = "first_quotation"
ANSWER_METRICS = (CITATION_PRECISION, CITATION_RECALL, FIRST_CITATION, FIRST_QUOTATION)

Citations = tuple[tuple[NoteRange, ...], ...]
"""The ranges that each sentence of an answer cites, in reading order."""


@dataclass(frozen=True, slots=True)
class EvaluatedAnswer:
    """The answer to a golden question.

    Attributes:
        citations: None if it could not be made; empty if the answer was empty.
        metrics: By name; empty if the answer was empty.
    """

    citations: Citations | None
    metrics: Mapping[str, float]


class Estimate(Part):
    """A mean over questions, with its 95 % interval: BCa bootstrap, or Wilson's of a share.

    If all values are 0, or all 1, it is Wilson's too: a bootstrap would make a point of it, however
    few questions there are.
    """

    mean: float
    low: float
    high: float


class AnswerFigures(Part):
    """The figures of an evaluation about the answers.

    Attributes:
        allowed_misses: Share of answerable questions that may be left unanswered.
        answerer: Name and version of the answerer.
        questions: How many were asked.
        answered: How many of them got an answer.
        failed: How many answers could not be made.
        metrics: Over the questions that got an answer.
        silence: The point of the curve for the allowed misses; None with too few questions.
        answerable: How well questions with and without their notes are separated; None with too
            few questions.
        citation: The quality of the first citation's confidence; None with too few questions.
    """

    answerer: str
    allowed_misses: Share
    questions: int = Field(ge=1)
    answered: int = Field(ge=0)
    failed: int = Field(ge=0)
    metrics: dict[str, Estimate]
    silence: SilenceCurve | None = None
    answerable: Measured | None = None
    citation: Measured | None = None

    @property
    def citation_precision(self) -> Estimate | None:
        """The mean share of an answer's citations that are right; None without answers."""
        return self.metrics.get(CITATION_PRECISION)

    @property
    def misses(self) -> Estimate | None:
        """The share of answerable questions that are left unanswered; None if not measured."""
        return self._silence(0)

    @property
    def false_answers(self) -> Estimate | None:
        """The share of questions that are answered without their notes; None if not measured."""
        return self._silence(1)

    def _silence(self, kind: int) -> Estimate | None:
        if self.silence is None:
            return None
        point = self.silence.at(self.allowed_misses)
        share = (self.silence.misses(point), self.silence.false_answers(point))[kind]
        interval = self.silence.intervals(point)[kind]
        return Estimate(mean=share, low=interval.low, high=interval.high)


@dataclass(frozen=True, slots=True)
class AnswerSummary:
    """The answers of an evaluation.

    Attributes:
        answers: By golden id.
    """

    figures: AnswerFigures
    answers: Mapping[str, EvaluatedAnswer]


def cited_ranges(answer: Answer, results: Sequence[RetrievalResult]) -> Citations:
    """Return what an answer cites as ranges of notes.

    Args:
        answer: Made from these results.
        results: Best first.
    """
    return tuple(
        tuple(range_in_note(results[own.rank - 1], own.span.start, own.span.end) for own in sources)
        for sources in (sentence.sources for sentence in answer.sentences)
    )


def range_in_note(result: RetrievalResult, start: int, end: int) -> NoteRange:
    """Return a range of a result's expanded content as a range of its note."""
    first = result.start_char - result.matched_bounds[0]
    return NoteRange(result.note_id, first + start, first + end)


def citation_metrics(
    citations: Citations, quoted: Sequence[NoteRange], targets: Sequence[NoteRange]
) -> dict[str, float]:
    """Judge the citations of an answer by the places that answer its question.

    Args:
        citations: At least one range.
        quoted: What readers are shown with the first sentence: the blocks that it stands in.
        targets: At least one range.

    Returns:
        `citation_precision`: the share of citations that overlap a target; `citation_recall`: the
        share of targets that a citation overlaps; `first_citation`: whether the first sentence has
        one that does; `first_quotation`: whether that or what is quoted with it does.
    """
    cited = [own for sentence in citations for own in sentence]
    right = [_is_right(own, targets) for own in cited]
    found = [any(own.overlaps(target) for own in cited) for target in targets]
    first = any(right[: len(citations[0])])
    return {
        CITATION_PRECISION: fmean(right),
        CITATION_RECALL: fmean(found),
        FIRST_CITATION: float(first),
        FIRST_QUOTATION: float(first or any(_is_right(own, targets) for own in quoted)),
    }


def _is_right(own: NoteRange, targets: Sequence[NoteRange]) -> bool:
    return any(own.overlaps(target) for target in targets)


def summarize_answers(
    answerer: str,
    answers: Mapping[str, EvaluatedAnswer],
    calibrated: Calibrated | None,
    *,
    allowed_misses: float,
) -> AnswerSummary:
    """Compute the figures of the answers.

    Args:
        answerer: Name and version of the answerer.
        answers: By golden id, at least one.
        calibrated: The calibration on the same questions, with and without their notes; None if
            none of them could be asked in full.
        allowed_misses: Share of answerable questions that may be left unanswered.
    """
    said = [own.metrics for own in answers.values() if own.metrics]
    names = [name for name in ANSWER_METRICS if said and all(name in own for own in said)]
    values = np.array([[own[name] for name in names] for own in said])
    intervals = _intervals(values) if names else []
    measured = calibrated.measured if calibrated else {}
    figures = AnswerFigures(
        answerer=answerer,
        allowed_misses=allowed_misses,
        questions=len(answers),
        answered=len(said),
        failed=sum(own.citations is None for own in answers.values()),
        metrics={
            name: Estimate(mean=float(column.mean()), low=interval.low, high=interval.high)
            for name, column, interval in zip(names, values.T, intervals, strict=True)
        },
        silence=_at_allowed(calibrated, allowed_misses),
        answerable=measured.get(Claim.ANSWERABLE),
        citation=measured.get(Claim.CITATION),
    )
    return AnswerSummary(figures, answers)


def _at_allowed(calibrated: Calibrated | None, allowed_misses: float) -> SilenceCurve | None:
    if calibrated is None or calibrated.silence is None:
        return None
    point = calibrated.silence.at(allowed_misses)
    return calibrated.silence.model_copy(update={"points": (point,)})


def _intervals(values: Matrix) -> list[Interval]:
    """Return the interval of the mean of each column, which are in [0, 1]: see `Estimate`."""
    found = []
    for column, resampled in zip(values.T, bootstrap_intervals(values), strict=True):
        is_share = column.min() == column.max() and column[0] in (0.0, 1.0)
        own = wilson_interval(int(column.sum()), len(column)) if is_share else resampled
        found.append(Interval(own.low, own.high))
    return found


def figures_from_json(stored: Any) -> AnswerFigures | None:
    """Return the figures that an evaluation stored; None if it is older than these figures."""
    return None if stored is None else AnswerFigures.model_validate(stored)
