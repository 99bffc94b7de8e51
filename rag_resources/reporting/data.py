"""What the report of evaluations shows, as one value.

`report_reading` reads it; its tables are `report_tables`, its page is `report_html`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from rag_resources.core.attribution import EvaluatedQuestion, Flip
from rag_resources.core.comparison import Comparison, NonInferiority, Verdict, judge_inferiority
from rag_resources.core.configuration import NamedConfiguration
from rag_resources.core.evaluation import StoredEvaluation
from rag_resources.core.gate import GateConfig, GateVerdict
from rag_resources.store.migration import StoredBatch
from rag_resources.store.promotions import Promotion
from rag_resources.store.report import EvaluationDetail, NoteOpening
from rag_resources.store.status import DatabaseStatus

SHOWN_FLIPS = 15
SHOWN_NEWCOMERS = 2
SHOWN_UNFOUND = 30

_INVERSE = {Verdict.BETTER: Verdict.WORSE, Verdict.WORSE: Verdict.BETTER}


@dataclass(frozen=True, slots=True)
class Contrast:
    """The questions of an evaluation beside those of another.

    Attributes:
        before: What serves, as it was promoted; for that itself, the evaluation before it.
        queries: Questions that both have, with the same relevant notes.
        left_out: Questions that one of them has otherwise, or not at all.
        flips: All of them, those lost first.
    """

    before: StoredEvaluation
    queries: int
    left_out: int
    flips: tuple[Flip, ...]

    @property
    def shown(self) -> tuple[Flip, ...]:
        """The first flips, up to half of them gains."""
        lost = [flip for flip in self.flips if flip.is_lost]
        gained = [flip for flip in self.flips if not flip.is_lost]
        kept = gained[: max(SHOWN_FLIPS // 2, SHOWN_FLIPS - len(lost))]
        return (*lost[: SHOWN_FLIPS - len(kept)], *kept)

    @property
    def lost(self) -> int:
        """How many questions are not found any more."""
        return sum(flip.is_lost for flip in self.flips)

    @property
    def gained(self) -> int:
        """How many were not found before."""
        return len(self.flips) - self.lost

    def inferiority(self, margin: float) -> NonInferiority:
        """Judge whether Hit_Rate@10 fell by no more than a margin."""
        return judge_inferiority(
            lost=self.lost, gained=self.gained, queries=self.queries, margin=margin
        )


@dataclass(frozen=True, slots=True)
class ReportedConfiguration:
    """The newest evaluation of a configuration.

    Attributes:
        named: As it is now; None if no file has it any more.
        verdict: By the gate as it is now.
        refusal: Why it may not serve on this evaluation, in Spanish; None if it may.
        has_questions: Whether they are there, and not archived; only of those leading.
        contrast: None if there is nothing to put beside it.
    """

    evaluation: StoredEvaluation
    detail: EvaluationDetail
    named: NamedConfiguration | None
    verdict: GateVerdict
    refusal: str | None
    has_questions: bool
    contrast: Contrast | None

    @property
    def name(self) -> str:
        """Of the configuration."""
        return self.evaluation.configuration

    def is_of(self, promotion: Promotion | None) -> bool:
        """Whether it is the configuration that a promotion made serve."""
        return promotion is not None and promotion.configuration == self.name


@dataclass(frozen=True, slots=True)
class MatrixCell:
    """A metric of one configuration against another; `p_value` is corrected by Holm."""

    difference: float
    p_value: float
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class ComparisonMatrix:
    """The leading configurations that were last asked the same questions, each against each.

    Attributes:
        names: Best first.
        queries: Questions of each.
        pairs: By the names of the first and the second, in the order of `names`.
        unfound: Questions that none of them found.
    """

    names: tuple[str, ...]
    queries: int
    pairs: Mapping[tuple[str, str], Comparison]
    unfound: tuple[EvaluatedQuestion, ...]

    def cell(self, row: str, column: str, metric: str) -> MatrixCell:
        """Return how a metric of the first differs from that of another."""
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
        read_at: When it was read, UTC.
        status: What the database holds, and what serves.
        golden: Hash of the golden dataset as it is now.
        gate: As it is now.
        configurations: Every one that was evaluated, best first.
        leading: The best of them, and what serves.
        history: Of those leading, oldest first.
        promotions: Oldest first.
        batches: Of all migrations, oldest first.
        matrix: Of those leading.
        notes: That the questions shown speak of, if they are still there.
    """

    read_at: datetime
    status: DatabaseStatus
    golden: str
    gate: GateConfig
    configurations: tuple[ReportedConfiguration, ...]
    leading: tuple[ReportedConfiguration, ...]
    history: tuple[StoredEvaluation, ...]
    promotions: tuple[Promotion, ...]
    batches: tuple[StoredBatch, ...]
    matrix: ComparisonMatrix
    notes: Mapping[UUID, NoteOpening]
