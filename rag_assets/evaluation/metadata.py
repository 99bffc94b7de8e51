"""Evaluations as Dagster metadata: numbers stay numbers, so that the UI plots them over time."""

from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg

from rag_assets.labels import rounded
from rag_resources.application.evaluations import Evaluations
from rag_resources.core.answer_metrics import AnswerFigures
from rag_resources.core.evaluation import Percentiles, QueryOutcome, StoredEvaluation
from rag_resources.core.metrics import SERVED
from rag_resources.core.tables import markdown_table
from rag_resources.evaluation.comparison import EvaluationComparison
from rag_resources.evaluation.comparison_tables import (
    attribution_in_words,
    changes_table,
    flips_table,
    metrics_table,
)
from rag_resources.evaluation.summary import (
    GATE_WORDS,
    group_in_words,
    missed_rows,
)
from rag_resources.languages.labels import stage_label
from rag_resources.languages.messages import _

_SHOWN_QUESTIONS = 20
_SHOWN_FLIPS = 50
_PLOTTED = (
    "hit_rate_at_1",
    "hit_rate_at_3",
    "hit_rate_at_5",
    "hit_rate_at_10",
    "mrr",
    "ndcg_at_10",
    "precision_at_10",
    "recall_at_10",
)


def comparison_metadata(evaluations: Evaluations, found: EvaluationComparison) -> dict[str, Any]:
    """Return a comparison: numbers, changes, flips, and what lost the lost questions."""
    changes, flips = changes_table(found), flips_table(found, shown=_SHOWN_FLIPS)
    answers = (
        {"comparison_of_answers": dg.MetadataValue.md(metrics_table(found.answers).markdown())}
        if found.answers
        else {}
    )
    return {
        "comparison": dg.MetadataValue.md(metrics_table(found.comparison).markdown()),
        **answers,
        "changes": dg.MetadataValue.md(
            changes.markdown()
            if changes.rows
            else _("Configuration, model, questions and index are the same.")
        ),
        "causes": attribution_in_words(evaluations.attribute(found)),
        "flips": dg.MetadataValue.md(
            flips.markdown()
            if flips.rows
            else _("No question is lost or gained among the first ten.")
        ),
        "lost": sum(flip.is_lost for flip in found.flips),
        "gained": sum(not flip.is_lost for flip in found.flips),
    }


def stored_metadata(evaluation: StoredEvaluation) -> dict[str, Any]:
    """Return `evaluation_metadata` of an evaluation that is stored, with its id."""
    return {
        "evaluation_id": str(evaluation.evaluation_id),
        "config_hash": evaluation.config_hash,
        **evaluation_metadata(evaluation),
    }


def evaluation_metadata(evaluation: StoredEvaluation) -> dict[str, Any]:
    """Return the metrics of an evaluation and its breakdown; what was not measured is left out.

    The numbers of a disturbed evaluation are text: a plot could not mark them as such.
    """
    measured = {
        **{name: getattr(evaluation, name) for name in _PLOTTED},
        SERVED: evaluation.served_hit_rate,
        "hit_rate_at_10_low": evaluation.hit_rate_at_10_low,
        "hit_rate_at_10_high": evaluation.hit_rate_at_10_high,
        "gate": GATE_WORDS[evaluation.gate],
        "latency_p50_ms": evaluation.latency_p50_ms,
        "latency_p95_ms": evaluation.latency_p95_ms,
        "latency_p99_ms": evaluation.latency_p99_ms,
        "total_queries": evaluation.total_queries,
        "failed_queries": evaluation.failed_queries,
        "degraded_queries": evaluation.degraded_queries,
        "latency_queries": evaluation.latency_queries,
        "late_queries": evaluation.late_queries,
        **_judge_metadata(evaluation),
        **_answer_metadata(evaluation.answers),
        "breakdown": dg.MetadataValue.md(_breakdown(evaluation.breakdown)),
    }
    told = {name: value for name, value in measured.items() if value is not None}
    return unplotted(told) if evaluation.is_disturbed else told


def unplotted(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata with its numbers as text, which Dagster shows but does not plot."""
    return {
        name: str(rounded(name, value)) if isinstance(value, int | float) else value
        for name, value in metadata.items()
    }


def _judge_metadata(evaluation: StoredEvaluation) -> dict[str, Any]:
    """Return the judgements of the answers; empty if nothing was judged."""
    if evaluation.judge is None:
        return {}
    return {
        "faithfulness": evaluation.faithfulness,
        "answer_relevance": evaluation.answer_relevance,
        "judged_queries": evaluation.judged_queries,
        "judge_failures": evaluation.judge_failures,
        "judge": f"{evaluation.judge}: {evaluation.judge_model}, {evaluation.judge_version}",
        "answerer": evaluation.answerer,
    }


def _answer_metadata(figures: AnswerFigures | None) -> dict[str, Any]:
    """Return what was measured of the answers; what was not is left out, not 0."""
    if figures is None:
        return {}
    shares = {"misses": figures.misses, "false_answers": figures.false_answers}
    return {
        "answered_queries": figures.answered,
        **{name: estimate.mean for name, estimate in figures.metrics.items()},
        **{name: share.mean for name, share in shares.items() if share},
        **({"citation_brier": figures.citation.brier} if figures.citation else {}),
    }


def question_metadata(outcomes: Sequence[QueryOutcome]) -> dict[str, Any]:
    """Return the first questions that were missed as a table."""
    rows = missed_rows(outcomes)
    if not rows:
        return {}
    columns = (_("Question"), _("came first"))
    parts = [
        _("Without a relevant note among the first ten: {count}.").format(count=len(rows)),
        markdown_table(columns, rows[:_SHOWN_QUESTIONS]),
    ]
    if len(rows) > _SHOWN_QUESTIONS:
        parts.append(
            _("{shown} are shown; all with “rag evaluate NAME --no-store --json”.").format(
                shown=_SHOWN_QUESTIONS
            )
        )
    return {"missed": dg.MetadataValue.md("\n\n".join(parts))}


def stage_metadata(stages: Mapping[str, Percentiles]) -> dict[str, Any]:
    """Return the latencies by stage as a table."""
    rows = [
        (stage_label(stage), *(f"{ms:.1f}" for ms in (own.p50_ms, own.p95_ms, own.p99_ms)))
        for stage, own in stages.items()
    ]
    return {
        "stages": dg.MetadataValue.md(
            markdown_table(_("| stage | p50 ms | p95 ms | p99 ms |"), rows)
        )
    }


def _breakdown(breakdown: Mapping[str, Mapping[str, float]]) -> str:
    metrics = ("hit_rate_at_1", "hit_rate_at_5", "hit_rate_at_10", "mrr")
    rows = (
        (
            group_in_words(group),
            f"{values['queries']:.0f}",
            *(f"{values[metric]:.3f}" for metric in metrics),
        )
        for group, values in sorted(breakdown.items())
    )
    return markdown_table(_("| | questions | Hit_Rate@1 | Hit_Rate@5 | Hit_Rate@10 | MRR |"), rows)
