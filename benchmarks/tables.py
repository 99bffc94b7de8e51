"""Tables of benchmarks, for a terminal and in Markdown, and how figures are shown in them."""

from collections.abc import Sequence
from dataclasses import dataclass

from rag_resources.cli.output import print_table, say
from rag_resources.core.comparison import (
    COMPARED,
    Comparison,
    MetricComparison,
    Verdict,
)
from rag_resources.core.metrics import SERVED
from rag_resources.evaluation.bench import METRICS, shown

RANKED = tuple(metric for metric in COMPARED if metric != SERVED)
"""The compared metrics of a ranking: a benchmark asks for more passages than a user gets."""

COMPARED_WORDS = tuple(METRICS[metric] for metric in RANKED)


@dataclass(frozen=True, slots=True)
class Table:
    """A table with a title above and a remark below."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    remark: str = ""


def show(tables: Sequence[Table]) -> None:
    """Print tables."""
    for one in tables:
        print_table(one.columns, one.rows, title=one.title)
        if one.remark:
            say(f"{one.remark}\n")


def markdown(tables: Sequence[Table]) -> str:
    """Return tables as Markdown, each under a heading of the third level."""
    return "\n".join(map(_as_markdown, tables))


def _as_markdown(one: Table) -> str:
    rule = ["---"] * len(one.columns)
    lines = [f"| {' | '.join(cells)} |" for cells in (one.columns, rule, *one.rows)]
    return "\n".join(
        [f"### {one.title}", "", *lines, "", *([one.remark, ""] if one.remark else [])]
    )


def length_title(paragraphs: int) -> str:
    """Say how many paragraphs a note has."""
    return f"{paragraphs} paragraph{'s' * (paragraphs > 1)} per note"


def differences(comparison: Comparison) -> list[str]:
    """Show each metric's difference with its interval, p-values and verdict."""
    return [_difference(metric) for metric in comparison.metrics]


def _difference(metric: MetricComparison) -> str:
    interval = f"[{_signed(metric.interval.low)}, {_signed(metric.interval.high)}]"
    p_values = f"p {_probability(metric.p_value)} → {_probability(metric.adjusted_p_value)}"
    verdict = "" if metric.verdict is Verdict.NO_EVIDENCE else f", {metric.verdict.value}"
    return f"{_signed(metric.difference)} {interval}, {p_values}{verdict}"


def _probability(value: float) -> str:
    return shown(value) if value >= 0.001 else "<.001"


def _signed(value: float) -> str:
    return f"{value:+.3f}".replace("0.", ".", 1).replace("-.000", "+.000")
