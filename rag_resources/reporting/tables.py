"""Tables of the evaluation report: the quality of each configuration, alone and compared.

Breakdowns of evaluations are in `reporting.breakdowns`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from rag_resources.core.comparison import HITS, Verdict
from rag_resources.core.configuration import Role, usable_retrieval
from rag_resources.core.evaluation import StoredEvaluation
from rag_resources.core.evidence import EvidenceState
from rag_resources.core.gate import GateState, wilson_interval
from rag_resources.core.messages import METRIC_WORDS, Message
from rag_resources.core.metrics import SERVED
from rag_resources.evaluation.comparison_tables import attribution_table
from rag_resources.evaluation.summary import (
    EVIDENCE_WORDS,
    VERDICT_WORDS,
    inferiority_in_words,
    p_value_in_words,
    verdict_in_words,
)
from rag_resources.reporting.data import (
    SHOWN_IN_VAIN,
    ComparisonMatrix,
    EvaluationReport,
    ReportedConfiguration,
)

ABSENT = "–"
NO_BREAK = "\u00a0"
GATE_MARKS = {
    GateState.PASS: ("✓", "good"),
    GateState.INCONCLUSIVE: ("≈", "open"),
    GateState.FAIL: ("✗", "bad"),
    GateState.DISTURBED: ("?", "bad"),
}
_STALE_MARK = ("·", "open")
_VERDICT_MARKS = {
    Verdict.BETTER: ("▲", "good"),
    Verdict.WORSE: ("▼", "bad"),
    Verdict.NO_EVIDENCE: ("·", ""),
}


@dataclass(frozen=True, slots=True)
class Cell:
    """A table cell: a text, a second text in small print, and a tone.

    Attributes:
        tone: `good`, `open`, `bad` or empty; the text alone says the same.
    """

    text: str
    details: tuple[str, ...] = ()
    tone: str = ""


@dataclass(frozen=True, slots=True)
class PageTable:
    """A table whose first column names the rows; `is_prose` if its cells are text, not numbers."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    is_prose: bool = False


def moment(value: datetime) -> str:
    """Format a time in UTC."""
    return f"{value.astimezone(UTC):%Y-%m-%d %H:%M}"


def configurations_table(report: EvaluationReport) -> PageTable:
    """Return every configuration with its hit rates, their intervals and its gate's verdict.

    The columns per passage appear if any configuration was judged per passage.
    """
    columns: tuple[str, ...] = (
        *("Hit_Rate@1", "Hit_Rate@3", "Hit_Rate@5", "Hit_Rate@10"),
        *(METRIC_WORDS[SERVED], "MRR", "nDCG@10", "p50/p95 ms"),
    )
    by_passage = any(item.evaluation.passage_queries for item in report.configurations)
    if by_passage:
        columns += (Message.COLUMN_PASSAGE_HIT_RATE, Message.COLUMN_PASSAGE_MRR)
    return PageTable(
        Message.REPORT_CONFIGURATIONS_CAPTION,
        (Message.COLUMN_CONFIGURATION, Message.COLUMN_GATE, *columns),
        tuple(
            (
                *_configuration_row(report, item),
                *(_passage_cells(item.evaluation) if by_passage else ()),
            )
            for item in report.configurations
        ),
    )


def gates_table(
    report: EvaluationReport,
    answers: Callable[[EvaluationReport, ReportedConfiguration], Cell],
) -> PageTable:
    """Return the gates of the leading configurations, and whether each may serve.

    Args:
        report: The data.
        answers: Says whether the answers reach their thresholds.
    """
    return PageTable(
        Message.REPORT_GATES_CAPTION,
        (
            Message.COLUMN_CONFIGURATION,
            "Hit_Rate@10",
            "p95",
            Message.REPORT_ANSWERS,
            Message.COLUMN_AGAINST_SERVING,
            Message.COLUMN_MAY_SERVE,
        ),
        tuple(
            (
                Cell(item.name),
                _hit_rate_gate(report, item),
                _latency_gate(report, item),
                answers(report, item),
                _against(report, item),
                _may_serve(report, item),
            )
            for item in report.leading
        ),
        is_prose=True,
    )


def matrix_table(report: EvaluationReport) -> PageTable:
    """Return the pairwise comparison of the configurations."""
    matrix = report.matrix
    told = {item.name: told_name(item) for item in report.leading}
    return PageTable(
        Message.REPORT_MATRIX_CAPTION.format(queries=matrix.queries),
        (Message.COLUMN_CONFIGURATION, *(told.get(name, name) for name in matrix.names)),
        tuple(
            (
                Cell(told.get(row, row)),
                *(_matrix_cell(matrix, row, column) for column in matrix.names),
            )
            for row in matrix.names
        ),
    )


def answers_table(report: EvaluationReport) -> PageTable:
    """Return the judgements of the answers; no rows if nothing was judged."""
    rows = []
    for item in report.configurations:
        judged = item.detail.judgements
        if judged:
            info = judged.info
            values = (
                _judged(judged.faithfulness),
                _judged(judged.answer_relevance),
                str(judged.judged),
                str(judged.failures),
            )
            rows.append(
                (
                    Cell(item.name),
                    *map(Cell, values),
                    Cell(info.name, (info.model, info.version)),
                    Cell(info.answerer),
                )
            )
    return PageTable(
        Message.REPORT_ANSWERS_CAPTION,
        (
            Message.COLUMN_CONFIGURATION,
            Message.COLUMN_FAITHFULNESS,
            Message.COLUMN_RELEVANCE,
            Message.COLUMN_JUDGED,
            Message.COLUMN_UNJUDGED,
            Message.COLUMN_JUDGE,
            Message.COLUMN_ANSWERER,
        ),
        tuple(rows),
    )


def in_vain_table(item: ReportedConfiguration) -> PageTable:
    """Return the first questions that were found but not for a user, each with its rank."""
    return PageTable(
        Message.REPORT_IN_VAIN_CAPTION,
        (Message.COLUMN_QUESTION, Message.COLUMN_RANK),
        tuple(
            (Cell(question.query), Cell(str(question.rank)))
            for question in item.found_in_vain[:SHOWN_IN_VAIN]
        ),
        is_prose=True,
    )


def causes_table(item: ReportedConfiguration) -> PageTable | None:
    """Return what the lost questions are due to; None if that was not examined."""
    if item.causes is None:
        return None
    found = attribution_table(item.causes)
    rows = tuple(tuple(Cell(text) for text in row) for row in found.rows)
    return PageTable(found.title, found.columns, rows)


def against_in_words(report: EvaluationReport, item: ReportedConfiguration) -> list[str]:
    """Say what an evaluation lost and gained, against what, and whether it is clearly worse."""
    contrast = item.contrast
    if item.gates.disturbance:
        return [item.gates.disturbance]
    if not item.has_questions:
        return [Message.REPORT_ARCHIVED]
    if contrast is None:
        return [Message.REPORT_AGAINST_NOTHING]
    said = [
        Message.REPORT_AGAINST.format(
            name=contrast.before.configuration,
            moment=moment(contrast.before.created_at),
            queries=contrast.queries,
            lost=contrast.lost,
            gained=contrast.gained,
        ),
        inferiority_in_words(contrast.inferiority(report.gate.margin)),
    ]
    served = contrast.served_inferiority(report.gate.margin)
    if contrast.served and served:
        said.append(
            Message.COMPARE_FLIPS_SERVED.format(
                lost=contrast.served.lost, gained=contrast.served.gained
            )
        )
        said.append(inferiority_in_words(served, SERVED))
    if contrast.left_out:
        said.append(Message.REPORT_AGAINST_LEFT_OUT.format(count=contrast.left_out))
    outdated = item.gates.against.outdated if item.gates.against else None
    if item.gates.staleness or outdated:
        said.append(Message.REPORT_AGAINST_STALE)
    return said


def interval(low: float, high: float) -> str:
    """Format the interval of a proportion."""
    return f"{low:.3f}–{high:.3f}"


def _configuration_row(report: EvaluationReport, item: ReportedConfiguration) -> tuple[Cell, ...]:
    own = item.evaluation
    rates = (own.hit_rate_at_1, own.hit_rate_at_3, own.hit_rate_at_5, own.hit_rate_at_10)
    values = (
        f"{own.mrr:.3f}",
        f"{own.ndcg_at_10:.3f}",
        f"{own.latency_p50_ms:.0f}/{own.latency_p95_ms:.0f}",
    )
    return (
        Cell(item.name, tuple(_circumstances(report, item))),
        _verdict(report, item),
        *(_hit_rate(rate, own.total_queries) for rate in rates),
        Cell(ABSENT)
        if own.served_hit_rate is None
        else _hit_rate(own.served_hit_rate, own.total_queries),
        *map(Cell, values),
    )


def _verdict(report: EvaluationReport, item: ReportedConfiguration) -> Cell:
    """Say whether it passes the gate, and why its figures are not current."""
    mark, tone = _gate_mark(item)
    evidence = item.gates.evidence
    said = verdict_in_words(item.evaluation, report.gate, evidence)
    reasons = () if evidence.is_current else (evidence.explanation,)
    return Cell(f"{mark}{NO_BREAK}{said}", reasons, tone)


def _passage_cells(own: StoredEvaluation) -> tuple[Cell, ...]:
    if own.passage_hit_rate_at_10 is None or own.passage_mrr is None:
        return Cell(ABSENT), Cell(ABSENT)
    return (
        _hit_rate(own.passage_hit_rate_at_10, own.passage_queries),
        Cell(
            f"{own.passage_mrr:.3f}",
            (Message.REPORT_OF_QUERIES.format(count=own.passage_queries),),
        ),
    )


def _circumstances(report: EvaluationReport, item: ReportedConfiguration) -> Iterator[str]:
    """Say what a reader must know to interpret the numbers."""
    own = item.evaluation
    if item.is_of(report.status.promotion):
        yield Message.REPORT_IS_SERVING
    config = usable_retrieval(own.config, origin=own.configuration)
    searches_words = config is not None and not config.uses_vectors
    yield Message.REPORT_EVALUATED.format(
        moment=moment(own.created_at),
        model=Message.REPORT_NO_MODEL if searches_words else own.model,
        queries=own.total_queries,
    )
    if own.golden_hash != report.golden:
        yield Message.REPORT_OTHER_GOLDEN.format(golden=own.golden_hash)
    if own.failed_queries:
        yield Message.REPORT_FAILED.format(count=own.failed_queries)
    if item.gates.disturbance:
        yield item.gates.disturbance


def _hit_rate(rate: float, queries: int) -> Cell:
    wilson = wilson_interval(round(rate * queries), queries)
    return Cell(f"{rate:.3f}", (interval(wilson.low, wilson.high),))


def _hit_rate_gate(report: EvaluationReport, item: ReportedConfiguration) -> Cell:
    mark, tone = _gate_mark(item)
    said = item.gates.description
    return Cell(f"{mark} {said}", _warning(report.gate.hit_rate_blocks), tone)


def _gate_mark(item: ReportedConfiguration) -> tuple[str, str]:
    if item.gates.staleness:
        return _STALE_MARK
    return GATE_MARKS[item.gates.hit_rate.state]


def _latency_gate(report: EvaluationReport, item: ReportedConfiguration) -> Cell:
    p95, limit = item.evaluation.latency_p95_ms, report.gate.latency_p95_ms
    blocks = _warning(report.gate.latency_blocks)
    if item.gates.disturbance:
        return Cell(f"? {Message.GATE_DISTURBED}", tone="bad")
    if item.gates.latency is GateState.PASS:
        return Cell(f"✓ {Message.REPORT_UNDER_LIMIT.format(p95=p95, limit=limit)}", blocks, "good")
    return Cell(f"✗ {Message.REPORT_OVER_LIMIT.format(p95=p95, limit=limit)}", blocks, "bad")


def _against(report: EvaluationReport, item: ReportedConfiguration) -> Cell:
    first, *others = against_in_words(report, item)
    details = (*others, *_warning(report.gate.regression_blocks))
    if item.gates.against is None:
        return Cell(first, details)
    mark, tone = GATE_MARKS[item.gates.regression]
    return Cell(f"{mark} {first}", details, tone)


def _warning(blocks: bool) -> tuple[str, ...]:
    return () if blocks else (Message.REPORT_ONLY_WARNS,)


def _may_serve(report: EvaluationReport, item: ReportedConfiguration) -> Cell:
    serving = report.status.promotion
    if serving and serving.evaluation_id == item.evaluation.evaluation_id:
        return Cell(Message.REPORT_IS_SERVING, tone="good")
    if item.named and item.named.role is Role.REFERENCE:
        return Cell(Message.REPORT_REFERENCE)
    if item.refusal:
        return Cell(Message.REPORT_MAY_NOT_SERVE.format(reason=item.refusal), tone="bad")
    return Cell(Message.REPORT_MAY_SERVE, tone="good")


def _matrix_cell(matrix: ComparisonMatrix, row: str, column: str) -> Cell:
    if row == column:
        return Cell(ABSENT)
    cells = {metric: matrix.cell(row, column, metric) for metric in ("mrr", HITS)}
    mark, tone = _VERDICT_MARKS[cells["mrr"].verdict]
    return Cell(
        f"{mark} {VERDICT_WORDS[cells['mrr'].verdict]}",
        tuple(
            said
            for metric, cell in cells.items()
            for said in (
                f"{METRIC_WORDS[metric]} {cell.difference:+z.3f}",
                f"p {p_value_in_words(cell.p_value)}",
            )
        ),
        tone,
    )


def told_name(item: ReportedConfiguration) -> str:
    """Return the name of a configuration; says so if its figures are stale."""
    stale = EVIDENCE_WORDS[EvidenceState.STALE]
    return f"{item.name} ({stale})" if item.gates.staleness else item.name


def _judged(value: float | None) -> str:
    return Message.NOT_JUDGED if value is None else _mean(value)


def _mean(value: float | None) -> str:
    return ABSENT if value is None else f"{value:.3f}"
