"""Evaluations as pictures: hit rates with their intervals, latency by stage.

Their history over time is in `history`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rag_resources.core.evaluation import Percentiles
from rag_resources.core.gate import GateState, GateVerdict
from rag_resources.core.messages import Message
from rag_resources.languages.labels import stage_label
from rag_resources.reporting.plots.canvas import (
    BLUE,
    COLOURS,
    GREEN,
    GREY,
    INK,
    VERMILION,
    frame,
    name_rows,
    new_figure,
    write_beside,
)

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.container import Container
    from matplotlib.figure import Figure

_WIDTH_INCHES = 7.6
_ROW = 0.3
_HATCHES = ("", "///", "...", "xxx", "\\\\\\", "---", "+++", "ooo")
_GATES = {
    GateState.PASS: ("o", GREEN, Message.GATE_PASS),
    GateState.INCONCLUSIVE: ("D", BLUE, Message.GATE_INCONCLUSIVE),
    GateState.FAIL: ("X", VERMILION, Message.GATE_FAIL),
    GateState.DISTURBED: ("s", GREY, Message.GATE_DISTURBED),
}


@dataclass(frozen=True, slots=True)
class LatencyBar:
    """The latencies of a configuration: of each stage, and of whole retrievals."""

    name: str
    stages: Mapping[str, Percentiles]
    p50_ms: float
    p95_ms: float


def hit_rates_figure(verdicts: Mapping[str, GateVerdict], *, threshold: float) -> "Figure":
    """Draw Hit_Rate@10 of each configuration with its interval, and the threshold.

    Args:
        verdicts: By configuration, at least one, the first at the top.
        threshold: The gate's Hit_Rate@10.
    """
    from matplotlib.lines import Line2D

    figure = new_figure((_WIDTH_INCHES, 1.2 + _ROW * len(verdicts)))
    axes = figure.subplots()
    frame(axes, Message.PLOT_HIT_RATES, grid="x")
    axes.axvline(threshold, color=INK, linestyle="--", linewidth=1.2)
    for row, verdict in enumerate(verdicts.values()):
        marker, colour, _ = _GATES[verdict.state]
        low, high = verdict.interval.low, verdict.interval.high
        axes.plot([low, high], [row, row], color=colour, linewidth=2)
        axes.plot([verdict.hit_rate], [row], color=colour, marker=marker, markersize=8)
        said = f"{verdict.hit_rate:.3f} ({low:.3f}–{high:.3f})"
        write_beside(axes, row, said)
    name_rows(axes, list(verdicts))
    axes.set_xlim(right=1.01)
    states = [state for state in _GATES if state in {item.state for item in verdicts.values()}]
    handles = [
        Line2D([], [], marker=marker, color=colour, linewidth=2, label=label)
        for marker, colour, label in (_GATES[state] for state in states)
    ]
    label = Message.PLOT_THRESHOLD.format(value=threshold)
    handles.append(Line2D([], [], color=INK, linestyle="--", label=label))
    _legend(figure, handles)
    return figure


def latency_figure(bars: Sequence[LatencyBar], *, limit_ms: float) -> "Figure":
    """Draw the stacked medians of the stages, and mark median and p95 of whole retrievals.

    Args:
        bars: At least one, the first at the top.
        limit_ms: The gate's limit of the p95; drawn if the bars come near it.
    """
    from matplotlib.lines import Line2D

    figure = new_figure((_WIDTH_INCHES, 1.5 + (_ROW + 0.06) * len(bars)))
    axes = figure.subplots()
    frame(axes, Message.PLOT_LATENCY, grid="x")
    handles: list[Artist | Container] = []
    starts = [0.0] * len(bars)
    for at, stage in enumerate(stage_order(bars)):
        widths = [bar.stages[stage].p50_ms if stage in bar.stages else 0.0 for bar in bars]
        drawn = axes.barh(
            range(len(bars)),
            widths,
            left=starts,
            height=0.6,
            color=COLOURS[at % len(COLOURS)],
            hatch=_HATCHES[at % len(_HATCHES)],
            edgecolor=INK,
            linewidth=0.4,
            label=stage_label(stage),
        )
        handles.append(drawn)
        starts = [start + width for start, width in zip(starts, widths, strict=True)]
    for row, bar in enumerate(bars):
        axes.plot([bar.p50_ms], [row], color=INK, marker="|", markersize=16, markeredgewidth=2)
        axes.plot([bar.p95_ms], [row], color=INK, marker="D", markersize=6)
        write_beside(axes, row, f"{bar.p50_ms:.0f} / {bar.p95_ms:.0f} ms")
    handles.append(Line2D([], [], color=INK, marker="|", linewidth=0, markersize=10, label="p50"))
    handles.append(Line2D([], [], color=INK, marker="D", linewidth=0, label="p95"))
    if limit_ms < 2 * max(bar.p95_ms for bar in bars):
        label = Message.PLOT_LIMIT.format(value=limit_ms)
        axes.axvline(limit_ms, color=INK, linestyle="--", linewidth=1.2)
        handles.append(Line2D([], [], color=INK, linestyle="--", label=label))
    name_rows(axes, [bar.name for bar in bars])
    axes.set_xlim(left=0)
    _legend(figure, handles)
    return figure


def stage_order(bars: Sequence[LatencyBar]) -> list[str]:
    """Return every stage, the slowest first; stored stages have no order."""
    slowest: dict[str, float] = {}
    for bar in bars:
        for stage, shares in bar.stages.items():
            slowest[stage] = max(slowest.get(stage, 0.0), shares.p50_ms)
    return sorted(slowest, key=lambda stage: (-slowest[stage], stage))


def _legend(figure: "Figure", handles: "Sequence[Artist | Container]") -> None:
    figure.legend(
        handles=handles,
        loc="outside lower left",
        ncols=4,
        frameon=False,
        fontsize=8,
        labelcolor=INK,
    )
