"""The data of the evaluation report, as one value.

`reporting.reading` reads it; `reporting.tables` and `reporting.page` show it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from rag_resources.core.attribution import EvaluatedQuestion, Flip
from rag_resources.core.comparison import Comparison, HitChanges, NonInferiority, Verdict
from rag_resources.core.configuration import NamedConfiguration
from rag_resources.core.counterfactuals import Attribution
from rag_resources.core.evaluation import StoredEvaluation
from rag_resources.core.evidence import Evidence
from rag_resources.core.gate import GateConfig
from rag_resources.evaluation.gates import Gates
from rag_resources.store.migration import StoredBatch
from rag_resources.store.promotions import Promotion
from rag_resources.store.report import EvaluationDetail, NoteOpening
from rag_resources.store.status import DatabaseStatus

SHOWN_FLIPS = 15
SHOWN_NEWCOMERS = 2
SHOWN_UNFOUND = 30
SHOWN_IN_VAIN = 15
SHOWN_HISTORY = 100

_INVERSE = {Verdict.BETTER: Verdict.WORSE, Verdict.WORSE: Verdict.BETTER}


@dataclass(frozen=True, slots=True)
class Contrast:
    """An evaluation compared with an earlier one, question by question.

    Attributes:
        before: The evaluation that the serving configuration was promoted on. For that evaluation
            itself: its predecessor.
        queries: Questions in both, with the same relevant notes.
        left_out: Questions in only one of them, or with other relevant notes.
        flips: All flips, lost questions first.
        served: Hits lost and gained among what users get; None if one did not measure that.
    """

    before: StoredEvaluation
    queries: int
    left_out: int
    flips: tuple[Flip, ...]
    served: HitChanges | None = None

    @property
    def shown(self) -> tuple[Flip, ...]:
        """The first flips; at most half of them are gains."""
        lost = [flip for flip in self.flips if flip.is_lost]
        gained = [flip for flip in self.flips if not flip.is_lost]
        kept = gained[: max(SHOWN_FLIPS // 2, SHOWN_FLIPS - len(lost))]
        return (*lost[: SHOWN_FLIPS - len(kept)], *kept)

    @property
    def lost(self) -> int:
        """Number of questions that are no longer found in the first ten."""
        return sum(flip.is_lost for flip in self.flips if not flip.is_served_only)

    @property
    def gained(self) -> int:
        """Number of questions that are newly found in the first ten."""
        return sum(not flip.is_lost for flip in self.flips if not flip.is_served_only)

    def inferiority(self, margin: float) -> NonInferiority:
        """Judge Hit_Rate@10; see `judge_inferiority`."""
        return HitChanges(self.lost, self.gained, self.queries).inferiority(margin)

    def served_inferiority(self, margin: float) -> NonInferiority | None:
        """Judge the hit rate of what users get; None if one of the two did not measure it."""
        return self.served.inferiority(margin) if self.served else None


@dataclass(frozen=True, slots=True)
class ReportedConfiguration:
    """A configuration with its newest evaluation.

    Attributes:
        named: The configuration as it is now; None if its file is gone.
        gates: The verdicts of the present gates.
        refusal: Why it may not serve on this evaluation, in Spanish; None if it may.
        has_questions: Whether its questions are stored and not archived; only for leading ones.
        contrast: None if there is nothing to compare with.
        found_in_vain: Questions whose note is among the first ten but not among what a user gets,
            in the order of their ranks; only for leading ones.
        causes: What the lost questions of the contrast are due to; None if that was not examined.
    """

    evaluation: StoredEvaluation
    detail: EvaluationDetail
    named: NamedConfiguration | None
    gates: Gates
    refusal: str | None
    has_questions: bool
    contrast: Contrast | None
    found_in_vain: tuple[EvaluatedQuestion, ...] = ()
    causes: Attribution | None = None

    @property
    def name(self) -> str:
        """The configuration's name."""
        return self.evaluation.configuration

    def is_of(self, promotion: Promotion | None) -> bool:
        """Whether this is the configuration that the promotion made serve."""
        return promotion is not None and promotion.configuration == self.name


@dataclass(frozen=True, slots=True)
class MatrixCell:
    """A metric of one configuration against another; `p_value` is Holm-corrected."""

    difference: float
    p_value: float
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class ComparisonMatrix:
    """Pairwise comparison of the leading configurations that were last asked the same questions.

    Attributes:
        names: Best first.
        queries: Number of questions of each.
        pairs: By first and second name, in the order of `names`.
        unfound: Questions that no configuration found.
    """

    names: tuple[str, ...]
    queries: int
    pairs: Mapping[tuple[str, str], Comparison]
    unfound: tuple[EvaluatedQuestion, ...]

    def cell(self, row: str, column: str, metric: str) -> MatrixCell:
        """Return how a metric of `row` differs from that of `column`."""
        is_stored = (column, row) in self.pairs
        comparison = self.pairs[(column, row) if is_stored else (row, column)]
        item = next(each for each in comparison.metrics if each.metric == metric)
        if is_stored:
            return MatrixCell(item.difference, item.adjusted_p_value, item.verdict)
        verdict = _INVERSE.get(item.verdict, item.verdict)
        return MatrixCell(-item.difference, item.adjusted_p_value, verdict)


@dataclass(frozen=True, slots=True)
class EvaluationReport:
    """Everything the report shows.

    Attributes:
        read_at: When the data was read, UTC.
        status: What the database contains and what serves.
        golden: Hash of the present golden dataset.
        gate: The present gate.
        configurations: Every evaluated configuration, best first.
        leading: The best configurations, always including the serving one.
        history: Evaluations of the leading configurations, oldest first.
        evidence: By id, whether the newest of them, and the promoted one, are current, aged or
            stale.
        promotions: Oldest first.
        batches: Of all migrations, oldest first.
        matrix: Comparison of the leading configurations.
        notes: The notes that the shown questions mention, if they still exist.
    """

    read_at: datetime
    status: DatabaseStatus
    golden: str
    gate: GateConfig
    configurations: tuple[ReportedConfiguration, ...]
    leading: tuple[ReportedConfiguration, ...]
    history: tuple[StoredEvaluation, ...]
    evidence: Mapping[UUID, Evidence]
    promotions: tuple[Promotion, ...]
    batches: tuple[StoredBatch, ...]
    matrix: ComparisonMatrix
    notes: Mapping[UUID, NoteOpening]
