"""Evaluations as Dagster metadata: numbers stay numbers, so that the UI plots them over time."""

from collections.abc import Sequence
from typing import Any

import dagster as dg

from rag_resources.application.evaluations import Evaluations
from rag_resources.core.answer_metrics import AnswerSummary
from rag_resources.core.evaluation import PlaceSummary, Summary
from rag_resources.core.judging import JudgeSummary
from rag_resources.core.messages import Message
from rag_resources.core.metrics import SERVED
from rag_resources.core.tables import markdown_table
from rag_resources.database.pool import PoolStatistics
from rag_resources.evaluation.runner import Evaluation
from rag_resources.evaluation.summary import GATE_WORDS
from rag_resources.languages.labels import stage_label
from rag_resources.retrieval.profile import LatencyProfile, ProfileSummary

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


def evaluation_metadata(evaluation: Evaluation, evaluations: Evaluations) -> dict[str, Any]:
    """Return the metrics of an evaluation, its breakdown, and its retrieval latencies."""
    summary = evaluation.summary
    return {
        **{name: summary.metrics[name] for name in _PLOTTED},
        SERVED: summary.metrics[SERVED],
        "hit_rate_at_10_low": summary.verdict.interval.low,
        "hit_rate_at_10_high": summary.verdict.interval.high,
        "gate": GATE_WORDS[summary.verdict.state],
        "latency_p50_ms": summary.latency.p50_ms,
        "latency_p95_ms": summary.latency.p95_ms,
        "latency_p99_ms": summary.latency.p99_ms,
        "total_queries": summary.total_queries,
        "failed_queries": summary.failed_queries,
        "degraded_queries": summary.degraded_queries,
        "latency_queries": summary.latency_queries,
        "late_queries": summary.late_queries,
        **_place_metadata("passage", summary.passages),
        **_place_metadata("page", summary.pages),
        **_judge_metadata(summary.judgements),
        **_answer_metadata(summary.answers),
        "breakdown": dg.MetadataValue.md(_breakdown(summary)),
        "profile": dg.MetadataValue.md(
            profile_markdown(evaluation.profile, pool=evaluations.connections())
        ),
    }


def _place_metadata(kind: str, summary: PlaceSummary) -> dict[str, Any]:
    """Return the metrics per passage or page; empty, not zeros, if no question names one."""
    if not summary.queries:
        return {}
    means = {f"{kind}_{name}": summary.metrics[name] for name in _PLOTTED}
    return {f"{kind}_queries": summary.queries, **means}


def _judge_metadata(judgements: JudgeSummary | None) -> dict[str, Any]:
    """Return the judgements of the answers; a mean without values is left out, not 0."""
    if judgements is None:
        return {}
    info = judgements.info
    means = {
        "faithfulness": judgements.faithfulness,
        "answer_relevance": judgements.answer_relevance,
    }
    return {
        **{name: mean for name, mean in means.items() if mean is not None},
        "judged_queries": judgements.judged,
        "judge_failures": judgements.failures,
        "judge": f"{info.name}: {info.model}, {info.version}",
        "answerer": info.answerer,
    }


def _answer_metadata(answers: AnswerSummary | None) -> dict[str, Any]:
    """Return the measured figures of the answers; missing ones are left out, not 0."""
    if answers is None:
        return {}
    figures = answers.figures
    shares = {"misses": figures.misses, "false_answers": figures.false_answers}
    return {
        "answered_queries": figures.answered,
        **{name: estimate.mean for name, estimate in figures.metrics.items()},
        **{name: share.mean for name, share in shares.items() if share},
        **({"citation_brier": figures.citation.brier} if figures.citation else {}),
    }


def profile_markdown(summary: ProfileSummary, *, pool: PoolStatistics) -> str:
    """Return the cost of an evaluation's retrievals as tables in Spanish.

    Evaluations use no cache, so there are no figures of caches; `retrieval_log` has them.

    Args:
        summary: The evaluation's latencies.
        pool: Statistics of the connections to the database.
    """
    stages = {
        **summary.stages,
        Message.PROFILE_TOTAL: summary.total,
        Message.PROFILE_CACHED: summary.cached,
    }
    pool_row = (pool.size, pool.in_use, pool.waiting, pool.requests)
    tables: dict[str, list[Sequence[object]]] = {
        Message.TABLE_PROFILE: [_profile_row(name, item) for name, item in stages.items() if item],
        Message.TABLE_DEGRADED: [
            (stage_label(stage), count) for stage, count in summary.degraded.items()
        ],
        Message.TABLE_POOL: [(*pool_row, f"{pool.wait_ms_avg:.2f}", pool.connections_lost)],
    }
    always = {Message.TABLE_PROFILE, Message.TABLE_POOL}
    return "\n\n".join(
        markdown_table(head, rows) for head, rows in tables.items() if rows or head in always
    )


def _profile_row(name: str, profile: LatencyProfile) -> Sequence[object]:
    shares = profile.percentiles
    times = (profile.average_ms, shares.p50_ms, shares.p95_ms, shares.p99_ms)
    return stage_label(name), profile.count, *(f"{milliseconds:.1f}" for milliseconds in times)


def _breakdown(summary: Summary) -> str:
    metrics = ("hit_rate_at_1", "hit_rate_at_5", "hit_rate_at_10", "mrr")
    rows = (
        (name, f"{values['queries']:.0f}", *(f"{values[metric]:.3f}" for metric in metrics))
        for name, values in summary.breakdown.items()
    )
    return markdown_table(Message.TABLE_BREAKDOWN, rows)
