"""The part of the report about answers: their citations, silence and confidence.

The verdicts of judges are in `tables.answers_table`.
"""

from rag_resources.core.answer_metrics import (
    ANSWER_METRICS,
    AnswerFigures,
    Estimate,
    Reliability,
)
from rag_resources.core.confidence import Band
from rag_resources.core.gate import GateState
from rag_resources.core.messages import Message
from rag_resources.core.silence import SilenceCurve
from rag_resources.evaluation.summary import ANSWER_METRIC_WORDS
from rag_resources.reporting.data import EvaluationReport, ReportedConfiguration
from rag_resources.reporting.tables import ABSENT, GATE_MARKS, Cell, PageTable, interval
from rag_resources.retrieval.confidence import band_in_words

_ORDER = (GateState.DISTURBED, GateState.FAIL, GateState.INCONCLUSIVE, GateState.PASS)


def citations_table(report: EvaluationReport) -> PageTable:
    """Return what was measured of the answers; no rows if nothing was."""
    rows = [
        (Cell(item.name), *_row(figures))
        for item in report.configurations
        if (figures := item.evaluation.answers)
    ]
    return PageTable(
        Message.REPORT_CITATIONS_CAPTION,
        (
            Message.COLUMN_CONFIGURATION,
            *(ANSWER_METRIC_WORDS[name] for name in ANSWER_METRICS),
            Message.COLUMN_MISSES,
            Message.COLUMN_FALSE_ANSWERS,
            Message.COLUMN_BANDS,
            "Brier",
        ),
        tuple(rows),
    )


def answers_gate(report: EvaluationReport, item: ReportedConfiguration) -> Cell:
    """Say whether citations and silence reach their thresholds."""
    gates, gate = item.gates, report.gate
    state = next(each for each in _ORDER if each in (gates.citations, gates.silence))
    mark, tone = GATE_MARKS[state]
    warns = not (gate.citation_precision_blocks or gate.false_answers_blocks)
    return Cell(
        f"{mark} {gates.citations_in_words}",
        (gates.silence_in_words, *((Message.REPORT_ONLY_WARNS,) if warns else ())),
        tone,
    )


def silence_curves(report: EvaluationReport) -> dict[str, SilenceCurve]:
    """Return the curves of the leading configurations that have one."""
    return {
        item.name: figures.silence
        for item in report.leading
        if (figures := item.evaluation.answers) and figures.silence
    }


def reliabilities(report: EvaluationReport) -> dict[str, tuple[Reliability, ...]]:
    """Return the reliability of the confidence, for the leading configurations that have one."""
    return {
        item.name: figures.citation.reliability
        for item in report.leading
        if (figures := item.evaluation.answers) and figures.citation
    }


def _row(figures: AnswerFigures) -> tuple[Cell, ...]:
    return (
        *(_estimate(figures.metrics.get(name)) for name in ANSWER_METRICS),
        _estimate(figures.misses),
        _estimate(figures.false_answers),
        *_confidence(figures),
    )


def _confidence(figures: AnswerFigures) -> tuple[Cell, Cell]:
    found = figures.citation
    if found is None:
        return Cell(ABSENT), Cell(ABSENT)
    bands = " · ".join(
        f"{band_in_words(band.name)} {band.precision:.2f} ({interval(*_ends(band))})"
        for band in found.bands
    )
    constant = Message.REPORT_BRIER_CONSTANT.format(constant=found.constant_brier)
    return Cell(bands), Cell(f"{found.brier:.3f}", (constant,))


def _ends(band: Band) -> tuple[float, float]:
    return band.interval.low, band.interval.high


def _estimate(found: Estimate | None) -> Cell:
    if found is None:
        return Cell(ABSENT)
    return Cell(f"{found.mean:.3f}", (interval(found.low, found.high),))
