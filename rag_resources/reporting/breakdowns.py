"""Tables of the report that break evaluations down: by group, by stage, over time."""

from collections.abc import Iterator, Mapping, Sequence
from uuid import UUID

from rag_resources.core.durations import months_in_words
from rag_resources.core.evaluation import StoredEvaluation
from rag_resources.core.messages import Message
from rag_resources.evaluation.summary import EVIDENCE_WORDS
from rag_resources.languages.labels import stage_label
from rag_resources.migration.status import gate_words
from rag_resources.reporting.data import SHOWN_HISTORY, EvaluationReport, ReportedConfiguration
from rag_resources.reporting.plots.evaluations import LatencyBar, stage_order
from rag_resources.reporting.tables import ABSENT, Cell, PageTable, interval, moment
from rag_resources.store.promotions import Promotion

SHOWN_TAGS = 25

_GROUPS = {
    "category": Message.REPORT_GROUP_CATEGORY,
    "difficulty": Message.REPORT_GROUP_DIFFICULTY,
    "tag": Message.REPORT_GROUP_TAG,
}


def groups_tables(report: EvaluationReport) -> list[PageTable]:
    """Return Hit_Rate@10 by category, by difficulty and by the most frequent tags."""
    found: dict[str, dict[str, float]] = {}
    for item in report.leading:
        for group, means in item.detail.breakdown.items():
            kind, _, name = group.partition(":")
            sizes = found.setdefault(kind, {})
            sizes[name] = max(sizes.get(name, 0.0), means["queries"])
    return [_group_table(report, kind, found[kind]) for kind in _GROUPS if kind in found]


def stages_table(report: EvaluationReport) -> PageTable:
    """Return the percentiles of each stage, slowest first, and of the whole retrieval."""
    bars = latency_bars(report)
    rows = [
        (
            Cell(stage_label(stage)),
            *(
                _latencies(bar.stages[stage].p50_ms, bar.stages[stage].p95_ms)
                if stage in bar.stages
                else Cell(ABSENT)
                for bar in bars
            ),
        )
        for stage in stage_order(bars)
    ]
    rows.append((Cell(Message.REPORT_WHOLE), *(_latencies(bar.p50_ms, bar.p95_ms) for bar in bars)))
    return PageTable(
        Message.REPORT_LATENCY_CAPTION,
        (Message.COLUMN_STAGE, *(bar.name for bar in bars)),
        tuple(rows),
    )


def latency_bars(report: EvaluationReport) -> list[LatencyBar]:
    """Return the latencies of the leading configurations."""
    return [
        LatencyBar(
            item.name,
            item.detail.stages,
            item.evaluation.latency_p50_ms,
            item.evaluation.latency_p95_ms,
        )
        for item in report.leading
    ]


def history_table(report: EvaluationReport) -> PageTable:
    """Return the newest evaluations of the leading configurations, newest first."""
    newest = report.history[::-1][:SHOWN_HISTORY]
    return PageTable(
        Message.REPORT_HISTORY_CAPTION.format(shown=len(newest), total=len(report.history)),
        (
            Message.COLUMN_EVALUATED,
            Message.COLUMN_CONFIGURATION,
            "Hit_Rate@10",
            "MRR",
            Message.COLUMN_QUERIES,
            Message.COLUMN_GOLDEN,
        ),
        tuple(
            (
                Cell(moment(item.created_at)),
                Cell(item.configuration, tuple(_doubts(report, item))),
                Cell(
                    f"{item.hit_rate_at_10:.3f}",
                    (interval(item.hit_rate_at_10_low, item.hit_rate_at_10_high),),
                ),
                Cell(f"{item.mrr:.3f}"),
                Cell(str(item.total_queries)),
                Cell(item.golden_hash),
            )
            for item in newest
        ),
    )


def _doubts(report: EvaluationReport, item: StoredEvaluation) -> Iterator[str]:
    if item.is_disturbed:
        yield Message.GATE_DISTURBED
    yield from _aged(report, item.evaluation_id)


def _aged(report: EvaluationReport, evaluation_id: UUID | None) -> tuple[str, ...]:
    """Return the word for figures that are not current; nothing for others."""
    evidence = report.evidence.get(evaluation_id) if evaluation_id else None
    return () if evidence is None or evidence.is_current else (EVIDENCE_WORDS[evidence.state],)


def _confirmations(promotions: Sequence[Promotion]) -> list[tuple[Promotion, bool]]:
    """Pair each promotion with whether the same configuration served before it."""
    before = [None, *promotions][: len(promotions)]
    return [
        (
            item,
            earlier is not None
            and (earlier.configuration, earlier.config_hash)
            == (item.configuration, item.config_hash),
        )
        for earlier, item in zip(before, promotions, strict=True)
    ]


def promotions_table(report: EvaluationReport) -> PageTable:
    """Return the promotions, newest first."""
    return PageTable(
        Message.REPORT_PROMOTIONS_CAPTION,
        (
            Message.COLUMN_SINCE,
            Message.COLUMN_CONFIGURATION,
            Message.COLUMN_MODEL,
            Message.COLUMN_REASON,
        ),
        tuple(
            (
                Cell(moment(item.promoted_at)),
                Cell(item.configuration, _aged(report, item.evaluation_id)),
                Cell(item.model),
                Cell(item.reason or (Message.REPORT_CONFIRMED if is_same else ABSENT)),
            )
            for item, is_same in reversed(_confirmations(report.promotions))
        ),
        is_prose=True,
    )


def batches_table(report: EvaluationReport) -> PageTable:
    """Return the batches of all migrations, newest first."""
    return PageTable(
        Message.REPORT_BATCHES_CAPTION,
        (
            Message.COLUMN_MEASURED,
            Message.COLUMN_MODEL,
            Message.COLUMN_MONTHS,
            "Hit_Rate@10",
            "MRR",
            Message.COLUMN_GATE,
            Message.COLUMN_REASON,
        ),
        tuple(
            (
                Cell(moment(item.finished_at)),
                Cell(item.model),
                Cell(months_in_words(item.months) or Message.MIGRATION_MEASURED_AGAIN),
                Cell(f"{item.hit_rate_at_10:.3f}"),
                Cell(f"{item.mrr:.3f}"),
                Cell(gate_words(item), tone="bad" if item.gate == "closed" else ""),
                Cell(item.reason),
            )
            for item in reversed(report.batches)
        ),
        is_prose=True,
    )


def _group_table(report: EvaluationReport, kind: str, sizes: Mapping[str, float]) -> PageTable:
    names = sorted(sizes)
    caption = Message.REPORT_GROUPS_CAPTION.format(group=_GROUPS[kind])
    if kind == "tag" and len(names) > SHOWN_TAGS:
        names = sorted(names, key=lambda name: (-sizes[name], name))[:SHOWN_TAGS]
        more = Message.REPORT_GROUPS_MORE.format(shown=SHOWN_TAGS, total=len(sizes))
        caption = caption + " " + more
    return PageTable(
        caption,
        (Message.COLUMN_GROUP, *(item.name for item in report.leading)),
        tuple(
            (Cell(name), *(_group_cell(item, f"{kind}:{name}") for item in report.leading))
            for name in names
        ),
    )


def _group_cell(item: ReportedConfiguration, group: str) -> Cell:
    means = item.detail.breakdown.get(group)
    if means is None:
        return Cell(ABSENT)
    rate, queries = means["hit_rate_at_10"], means["queries"]
    said = Message.REPORT_GROUP_CELL.format(
        hits=round(rate * queries), queries=round(queries), mrr=means["mrr"]
    )
    return Cell(f"{rate:.3f}", (said,))


def _latencies(p50_ms: float, p95_ms: float) -> Cell:
    return Cell(f"{p50_ms:.1f}", (f"{p95_ms:.1f}",))
