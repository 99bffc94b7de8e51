"""Plots of answers: the curve of silence, and the reliability of the confidence."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rag_resources.core.answer_metrics import Reliability
from rag_resources.core.gate import wilson_interval
from rag_resources.core.messages import Message
from rag_resources.core.silence import SilenceCurve
from rag_resources.reporting.plots.canvas import COLOURS, INK, frame, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SIZE_INCHES = (7.6, 3.6)
_MARKERS = ("o", "D", "X", "s", "^", "v", "P", "*")
_LINES = ("-", "--", "-.", ":")


def silence_figure(curves: Mapping[str, SilenceCurve], *, allowed_misses: float) -> "Figure":
    """Draw false answers over misses of each configuration, and the allowed misses.

    Args:
        curves: By configuration, at least one.
        allowed_misses: The setting `ANSWER_ALLOWED_MISSES`.
    """
    figure = new_figure(_SIZE_INCHES)
    axes = figure.subplots()
    frame(axes, Message.PLOT_SILENCE)
    for at, (name, curve) in enumerate(curves.items()):
        axes.plot(
            [curve.misses(point) for point in curve.points],
            [curve.false_answers(point) for point in curve.points],
            color=COLOURS[at % len(COLOURS)],
            linestyle=_LINES[at % len(_LINES)],
            marker=_MARKERS[at % len(_MARKERS)],
            markevery=10,
            label=name,
        )
    axes.axvline(allowed_misses, color=INK, linestyle="--", linewidth=1.2)
    axes.set_ylim(0, 1.02)
    _finish(axes, Message.PLOT_MISSES, Message.PLOT_FALSE_ANSWERS)
    return figure


def reliability_figure(reliability: Mapping[str, tuple[Reliability, ...]]) -> "Figure":
    """Draw the reliability diagram: how often the first citation was right, over its probability.

    Args:
        reliability: By configuration, at least one; each bin with its 95 % interval.
    """
    figure = new_figure(_SIZE_INCHES)
    axes = figure.subplots()
    frame(axes, Message.PLOT_RELIABILITY)
    axes.plot([0, 1], [0, 1], color=INK, linestyle="--", linewidth=1.2)
    for at, (name, bins) in enumerate(reliability.items()):
        shares = [own.right / own.questions for own in bins]
        intervals = [wilson_interval(own.right, own.questions) for own in bins]
        axes.errorbar(
            [own.probability for own in bins],
            shares,
            yerr=[
                [share - own.low for share, own in zip(shares, intervals, strict=True)],
                [own.high - share for share, own in zip(shares, intervals, strict=True)],
            ],
            color=COLOURS[at % len(COLOURS)],
            linestyle=_LINES[at % len(_LINES)],
            marker=_MARKERS[at % len(_MARKERS)],
            capsize=2,
            linewidth=1,
            label=name,
        )
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1.02)
    _finish(axes, Message.PLOT_PROBABILITY, Message.PLOT_RIGHT)
    return figure


def _finish(axes: "Axes", x_label: str, y_label: str) -> None:
    axes.set_xlabel(x_label, color=INK, fontsize=9)
    axes.set_ylabel(y_label, color=INK, fontsize=9)
    axes.legend(frameon=False, fontsize=8, labelcolor=INK)
