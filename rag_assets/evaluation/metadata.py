"""Evaluations as Dagster metadata: numbers as numbers, so that the UI plots them over time."""

from collections.abc import Mapping
from typing import Any

import dagster as dg

from rag_resources.application import Application
from rag_resources.core.evaluation import Summary
from rag_resources.core.judging import JudgeSummary
from rag_resources.core.messages import Message
from rag_resources.database.pool import PoolStatistics
from rag_resources.evaluation.runner import Evaluation
from rag_resources.providers.cache import CacheStatistics
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


def evaluation_metadata(evaluation: Evaluation, application: Application) -> dict[str, Any]:
    """Return the numbers of an evaluation, its breakdown and what its retrievals cost."""
    summary = evaluation.summary
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
        **_judge_metadata(summary.judgements),
        "breakdown": dg.MetadataValue.md(_breakdown(summary)),
        "profile": dg.MetadataValue.md(
            profile_markdown(
                evaluation.profile,
                caches=application.caches.statistics(),
                pool=application.database.statistics(),
            )
        ),
    }


def _judge_metadata(judgements: JudgeSummary | None) -> dict[str, Any]:
    """Return what a judge made of the answers; a mean over nothing is left out, not 0."""
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


def profile_markdown(
    summary: ProfileSummary,
    *,
    caches: Mapping[str, CacheStatistics],
    pool: PoolStatistics,
) -> str:
    """Return what retrievals cost, as tables in Spanish.

    Args:
        summary: Of the process so far.
        caches: By name.
        pool: The connections to the database.
    """
    tables = [[Message.TABLE_PROFILE, "|---|---|---|---|---|---|"]]
    tables[0].extend(_profile_row(name, stage) for name, stage in summary.stages.items())
    if summary.total:
        tables[0].append(_profile_row(Message.PROFILE_TOTAL, summary.total))
    if summary.cached:
        tables[0].append(_profile_row(Message.PROFILE_CACHED, summary.cached))
    if summary.degraded:
        tables.append([Message.TABLE_DEGRADED, "|---|---|"])
        tables[-1].extend(f"| {name} | {count} |" for name, count in summary.degraded.items())
    if caches:
        tables.append([Message.TABLE_CACHES, "|---|---|---|---|---|"])
        tables[-1].extend(_cache_row(name, counts) for name, counts in caches.items())
    tables.append([Message.TABLE_POOL, "|---|---|---|---|---|---|"])
    tables[-1].append(
        f"| {pool.size} | {pool.in_use} | {pool.waiting} | {pool.requests} "
        f"| {pool.wait_ms_avg:.2f} | {pool.connections_lost} |"
    )
    return "\n\n".join("\n".join(rows) for rows in tables)


def _profile_row(name: str, profile: LatencyProfile) -> str:
    shares = profile.percentiles
    return (
        f"| {name} | {profile.count} | {profile.average_ms:.1f} "
        f"| {shares.p50_ms:.1f} | {shares.p95_ms:.1f} | {shares.p99_ms:.1f} |"
    )


def _cache_row(name: str, counts: CacheStatistics) -> str:
    share = "–" if counts.hit_rate is None else f"{counts.hit_rate:.0%}"
    size = "–" if counts.size is None else str(counts.size)
    return f"| {name} | {counts.hits} | {counts.misses} | {share} | {size} |"


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
