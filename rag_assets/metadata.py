"""Evaluations as Dagster metadata: numbers as numbers, so that the UI plots them over time."""

from typing import Any

import dagster as dg

from rag_resources.core.evaluation import Summary
from rag_resources.core.messages import Message

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


def evaluation_metadata(summary: Summary) -> dict[str, Any]:
    """Return the numbers of an evaluation, and its breakdown as a table."""
    return {
        **{name: summary.metrics[name] for name in _PLOTTED},
        "hit_rate_at_10_low": summary.verdict.interval.low,
        "hit_rate_at_10_high": summary.verdict.interval.high,
        "gate": summary.verdict.state.value,
        "latency_p50_ms": summary.latency.p50_ms,
        "latency_p95_ms": summary.latency.p95_ms,
        "latency_p99_ms": summary.latency.p99_ms,
        "total_queries": summary.total_queries,
        "failed_queries": summary.failed_queries,
        "degraded_queries": summary.degraded_queries,
        "breakdown": dg.MetadataValue.md(_breakdown(summary)),
        "stages": dg.MetadataValue.md(_stages(summary)),
    }


def _breakdown(summary: Summary) -> str:
    rows = [
        Message.TABLE_BREAKDOWN,
        "|---|---|---|---|---|---|",
    ]
    rows.extend(
        f"| {name} | {values['queries']:.0f} | {values['hit_rate_at_1']:.3f} "
        f"| {values['hit_rate_at_5']:.3f} | {values['hit_rate_at_10']:.3f} | {values['mrr']:.3f} |"
        for name, values in summary.breakdown.items()
    )
    return "\n".join(rows)


def _stages(summary: Summary) -> str:
    rows = [Message.TABLE_STAGES, "|---|---|---|---|"]
    rows.extend(
        f"| {name} | {values.p50_ms:.1f} | {values.p95_ms:.1f} | {values.p99_ms:.1f} |"
        for name, values in summary.stages.items()
    )
    return "\n".join(rows)
