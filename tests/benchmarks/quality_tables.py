"""The tables of a quality benchmark, for a terminal and in Markdown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from rag_resources.cli.output import console, table
from rag_resources.core.comparison import (
    Comparison,
    MetricComparison,
    QueryMetrics,
    Verdict,
)
from rag_resources.core.experiment import Point, pareto_front
from rag_resources.core.gate import wilson_interval
from rag_resources.core.significance import bootstrap_intervals
from tests.benchmarks.quality_study import RANKED, Length, Study, Variant, fusion_variants

METRICS = {
    "hit_rate_at_1": "@1",
    "hit_rate_at_3": "@3",
    "hit_rate_at_5": "@5",
    "hit_rate_at_10": "Hit_Rate@10",
    "mrr": "MRR@10",
    "ndcg_at_10": "nDCG@10",
}
"""What is shown, by its name in the code."""

PASSAGE_METRICS = {"hit_rate_at_1": "@1 per passage", "mrr": "MRR@10 per passage"}
"""The same of metrics per passage."""

COMPARED_WORDS = tuple(METRICS[metric] for metric in RANKED)
FRONT_MARK = "◆"
NO_MODEL = "–"


@dataclass(frozen=True, slots=True)
class Table:
    """A table with a title above and a remark below."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    remark: str = ""


def quality_tables(
    facts: Mapping[str, str],
    lengths: Sequence[Length],
    variants: Sequence[Variant],
    defaults: Sequence[Variant],
    found: Study,
) -> list[Table]:
    """Return all tables of a benchmark.

    Args:
        facts: What the numbers are of.
        lengths: With everything measured.
        variants: Every named configuration with every model.
        defaults: The default with every model.
        found: What is compared.
    """
    return [
        Table("What was measured", ("", ""), list(facts.items())),
        *(_measured(length, variants) for length in lengths),
        *(_contrasts(length, found) for length in lengths),
        _fusion(lengths, defaults),
        _choices(found),
    ]


def show(tables: Sequence[Table]) -> None:
    """Print tables."""
    screen = console()
    for one in tables:
        screen.print(table(one.columns, one.rows, title=one.title))
        if one.remark:
            screen.print(f"{one.remark}\n")


def markdown(tables: Sequence[Table]) -> str:
    """Return tables as Markdown, each under a heading of the third level."""
    return "\n".join(map(_as_markdown, tables))


def _as_markdown(one: Table) -> str:
    rule = ["---"] * len(one.columns)
    lines = [f"| {' | '.join(cells)} |" for cells in (one.columns, rule, *one.rows)]
    return "\n".join(
        [f"### {one.title}", "", *lines, "", *([one.remark, ""] if one.remark else [])]
    )


def _measured(length: Length, variants: Sequence[Variant]) -> Table:
    """Every metric of every variant with its interval, best first."""
    points, rows, impaired = [], {}, 0
    for variant in variants:
        own = length.measured[variant.config.config_hash]
        label = f"{variant.name} {variant.model}"
        impaired += own.impaired
        points.append(Point(label, _mean(own.per_query, "mrr"), (own.p50_ms, own.p50_ms)))
        intervals = (with_interval(own.per_query, metric) for metric in METRICS)
        passages = (with_interval(own.passages, metric) for metric in PASSAGE_METRICS)
        rows[label] = [
            variant.name,
            variant.model or NO_MODEL,
            *intervals,
            *passages,
            f"{own.p50_ms:.0f}",
        ]
    for label in pareto_front(points):
        rows[label][-1] += f" {FRONT_MARK}"
    ordered = sorted(points, key=lambda point: (-point.quality, point.name))
    return Table(
        f"Quality with {length.title} ({length.notes:,} notes, {length.chunks:,} chunks)",
        ("configuration", "model", *METRICS.values(), *PASSAGE_METRICS.values(), "p50 ms"),
        [rows[point.name] for point in ordered],
        "Per passage: a returned chunk (or whole note) that overlaps the answer. "
        "@1, @3 and @5 are Hit_Rate, too. Intervals of 95 %: Wilson's for hits, BCa bootstrap for "
        "means. p50 leaves out embedding the question, and is of this run alone; "
        f"{FRONT_MARK}: none is both better by MRR@10 and faster. Questions that failed or were "
        f"answered in part: {impaired}.",
    )


def _contrasts(length: Length, found: Study) -> Table:
    """What the default is worth beside each other variant."""
    rows = []
    for contrast, comparison in found.contrasts:
        if contrast.length is length:
            default, other = (
                f"{own.name} {own.model}".strip() for own in (contrast.default, contrast.other)
            )
            rows.append((default, other, *differences(comparison)))
    return Table(
        f"The default against the others with {length.title}",
        ("default", "minus", *COMPARED_WORDS),
        rows,
        f"Paired over {len(length.questions):,} questions, BCa intervals of 95 %; p by McNemar's "
        "exact test for hits and by paired randomization for means, before and after Holm's "
        "adjustment over all comparisons of this page; by the latter, better or worse at 5 %.",
    )


def _fusion(lengths: Sequence[Length], defaults: Sequence[Variant]) -> Table:
    """MRR@10 of every way of fusing."""
    cells = [(length, default) for default in defaults for length in lengths]
    columns = [
        [_mean(length.of(variant), "mrr") for variant in (default, *fusion_variants(default))]
        for length, default in cells
    ]
    names = [defaults[0].name, *(variant.name for variant in fusion_variants(defaults[0]))]
    rows = [
        (name, *map(_shown, values), _shown(fmean(values)))
        for name, values in zip(names, zip(*columns, strict=True), strict=True)
    ]
    return Table(
        "Ways of fusing: MRR@10 over all questions",
        ("fusion", *(f"{default.model}, {length.title}" for length, default in cells), "mean"),
        rows,
        "Method and weight of the vectors; the words have the rest of 1.",
    )


def _choices(found: Study) -> Table:
    """What questions choose, judged by others."""
    judged = max((comparison.queries for _, comparison in found.scopes), default=0)
    return Table(
        "What half of the questions choose, and what the others say of it",
        (
            "chosen for",
            "chosen",
            "MRR@10",
            "default's",
            f"minus default: {COMPARED_WORDS[0]}",
            *COMPARED_WORDS[1:],
        ),
        [
            (
                scope.title,
                ", ".join(scope.chosen),
                _shown(_mean(scope.judged, "mrr")),
                _shown(_mean(scope.default, "mrr")),
                *differences(comparison),
            )
            for scope, comparison in found.scopes
        ],
        f"Chosen by MRR@10, judged on {judged:,} questions that did not choose; where there are "
        "several models or lengths, a question counts by its mean over them.",
    )


def differences(comparison: Comparison) -> list[str]:
    """Show each metric's difference with its interval, p-values and verdict."""
    return [_difference(metric) for metric in comparison.metrics]


def _difference(metric: MetricComparison) -> str:
    interval = f"[{_signed(metric.interval.low)}, {_signed(metric.interval.high)}]"
    p_values = f"p {_probability(metric.p_value)} → {_probability(metric.adjusted_p_value)}"
    verdict = "" if metric.verdict is Verdict.NO_EVIDENCE else f", {metric.verdict.value}"
    return f"{_signed(metric.difference)} {interval}, {p_values}{verdict}"


def _probability(value: float) -> str:
    return _shown(value) if value >= 0.001 else "<.001"


def with_interval(values: QueryMetrics, metric: str) -> str:
    """Show a mean with its interval of 95 %: Wilson's for hits, BCa bootstrap for the others."""
    own = [question[metric] for question in values.values()]
    if metric.startswith("hit_rate"):
        interval = wilson_interval(round(sum(own)), len(own))
        low, high = interval.low, interval.high
    else:
        low, high = bootstrap_intervals(np.array(own)[:, None])[0]
    return f"{_shown(fmean(own))} {_shown(low)}–{_shown(high)}"


def _mean(values: QueryMetrics, metric: str) -> float:
    return fmean(question[metric] for question in values.values())


def _shown(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


def _signed(value: float) -> str:
    """A difference with its sign, and no zero before the point."""
    return f"{value:+.3f}".replace("0.", ".", 1).replace("-.000", "+.000")
