"""The JSON form of what `rag evaluate` shows."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from uuid import UUID

if TYPE_CHECKING:
    from rag_resources.core.answer_metrics import AnswerSummary
    from rag_resources.core.configuration import NamedConfiguration
    from rag_resources.core.evaluation import Percentiles, QueryOutcome
    from rag_resources.core.judging import JudgeSummary
    from rag_resources.evaluation.gates import Gates
    from rag_resources.evaluation.runner import Evaluation


def evaluation_json(
    evaluation: "Evaluation",
    named: "NamedConfiguration",
    gates: "Gates",
    names: Mapping[UUID, str],
) -> dict[str, Any]:
    """Return an evaluation with its gates.

    Args:
        evaluation: As it was made.
        named: The evaluated configuration.
        gates: Their verdicts.
        names: The external ids of the notes that `notes_to_name` returns.
    """
    summary = evaluation.summary
    verdict = gates.hit_rate
    return {
        "evaluationId": str(evaluation.evaluation_id) if evaluation.evaluation_id else None,
        "configuration": named.name,
        "configHash": named.retrieval.config_hash,
        "model": named.retrieval.model,
        "totalQueries": summary.total_queries,
        "failedQueries": summary.failed_queries,
        "degradedQueries": summary.degraded_queries,
        "latencyQueries": summary.latency_queries,
        "lateQueries": summary.late_queries,
        "metrics": dict(summary.metrics),
        "breakdown": {name: dict(values) for name, values in summary.breakdown.items()},
        "latency": _latency(summary.latency),
        "stages": {name: _latency(values) for name, values in summary.stages.items()},
        "gate": {
            "state": verdict.state.value,
            "hitRateAt10": verdict.hit_rate,
            "interval": [verdict.interval.low, verdict.interval.high],
            "threshold": verdict.threshold,
            "queriesToSettle": verdict.queries_to_settle,
            "latency": gates.latency.value,
            "citations": gates.citations.value,
            "silence": gates.silence.value,
            "regression": gates.regression.value,
            "obstacle": gates.obstacle,
        },
        "judgements": _judgements_as_json(summary.judgements),
        "answers": _answers_as_json(summary.answers),
        "missed": [
            _question_as_json(outcome, names)
            for outcome in evaluation.outcomes
            if not outcome.is_hit and not outcome.error
        ],
        "failures": [
            {"query": outcome.golden.query, "error": outcome.error}
            for outcome in evaluation.outcomes
            if outcome.error
        ],
    }


def notes_to_name(evaluation: "Evaluation") -> set[UUID]:
    """Return the notes of the questions that the JSON form lists."""
    listed = (each for each in evaluation.outcomes if not each.is_hit)
    return {
        note_id
        for outcome in listed
        for note_id in (*outcome.golden.relevant_note_ids, *outcome.retrieved_note_ids)
    }


def _question_as_json(outcome: "QueryOutcome", names: Mapping[UUID, str]) -> dict[str, Any]:
    relevant = outcome.golden.relevant_note_ids
    retrieved = [UUID(note_id) for note_id in outcome.judged.distinct]
    return {
        "goldenId": outcome.key,
        "query": outcome.golden.query,
        "relevantNoteIds": list(map(str, relevant)),
        "relevantNotes": [names.get(note_id, str(note_id)) for note_id in relevant],
        "retrievedNoteIds": list(map(str, retrieved)),
        "retrievedNotes": [names.get(note_id, str(note_id)) for note_id in retrieved],
    }


def _judgements_as_json(judgements: "JudgeSummary | None") -> dict[str, Any] | None:
    if judgements is None:
        return None
    return {
        "faithfulness": judgements.faithfulness,
        "answerRelevance": judgements.answer_relevance,
        "judgedQueries": judgements.judged,
        "judgeFailures": judgements.failures,
        "judge": judgements.info.name,
        "judgeModel": judgements.info.model,
        "judgeVersion": judgements.info.version,
        "answerer": judgements.info.answerer,
    }


def _answers_as_json(answers: "AnswerSummary | None") -> dict[str, Any] | None:
    if answers is None:
        return None
    figures = answers.figures
    claims = {"citation": figures.citation, "answerable": figures.answerable}
    curve = figures.silence
    return {
        "answerer": figures.answerer,
        "questions": figures.questions,
        "answered": figures.answered,
        "failed": figures.failed,
        "metrics": {
            name: {"mean": own.mean, "interval": [own.low, own.high]}
            for name, own in figures.metrics.items()
        },
        "silence": curve.to_json(curve.points[0]) if curve else None,
        "claims": {
            name: {
                "auc": own.auc,
                "aucInterval": [own.auc_low, own.auc_high],
                "brier": own.brier,
                "constantBrier": own.constant_brier,
                "bands": [band.to_json() for band in own.bands],
            }
            for name, own in claims.items()
            if own
        },
    }


def _latency(values: "Percentiles") -> dict[str, float]:
    return {"p50Ms": values.p50_ms, "p95Ms": values.p95_ms, "p99Ms": values.p99_ms}
