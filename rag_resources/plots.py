"""Plots as PNG, for people: opaque, so that they read on dark and on light pages.

The colours are those of Okabe and Ito, told apart by the colour-blind, and no meaning hangs on
colour alone: areas are hatched, points have shapes of their own. Matplotlib is imported when
something is drawn, for that takes half a second.
"""

from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import TYPE_CHECKING

from rag_resources.core.messages import Message
from rag_resources.core.migration_status import MonthProgress
from rag_resources.store.migration import StoredBatch
from rag_resources.store.migration_status import MigrationStatus

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SIZE_INCHES = (9.0, 6.4)
_DOTS_PER_INCH = 100
_MAX_LABELS = 12
_PALETTE = 64

_BLUE, _ORANGE, _PURPLE, _GREEN, _GREY = "#0072b2", "#e69f00", "#cc79a7", "#009e73", "#bbbbbb"
_INK = "#222222"
_MODEL_STYLES = ((_BLUE, "o"), (_GREEN, "s"), (_ORANGE, "^"), (_PURPLE, "D"))


def migration_plot(status: MigrationStatus, *, floor: float) -> bytes:
    """Draw the progress of every month, and the quality after every batch.

    Args:
        status: As read.
        floor: Lowest Hit_Rate@10 allowed; 0 is no floor and is not drawn.

    Returns:
        An opaque PNG of some 20 kB.
    """
    figure = _figure()
    above, below = figure.subplots(2, 1)
    _draw_months(above, status.months)
    baseline = status.baseline.hit_rate_at_10 if status.baseline else None
    _draw_batches(below, status.batches, baseline=baseline, floor=floor)
    return _png(figure)


def _draw_months(axes: "Axes", months: Sequence[MonthProgress]) -> None:
    """Stack the notes of each month: migrated, with errors, remaining."""
    from matplotlib.ticker import MaxNLocator

    _frame(axes, Message.PLOT_PROGRESS)
    if not months:
        _say(axes, Message.PLOT_NO_NOTES)
        return
    sound = [month.sound for month in months]
    failed = [month.failed for month in months]
    waiting = [month.notes - month.sound - month.failed for month in months]
    positions = range(len(months))
    bottom = [0] * len(months)
    for heights, label, colour, hatch in (
        (sound, Message.PLOT_MIGRATED, _BLUE, ""),
        (failed, Message.PLOT_FAILED, _ORANGE, "xx"),
        (waiting, Message.PLOT_REMAINING, _GREY, "//"),
    ):
        axes.bar(
            positions,
            heights,
            bottom=bottom,
            label=label,
            color=colour,
            hatch=hatch,
            edgecolor="white",
            linewidth=0,
        )
        bottom = [lower + height for lower, height in zip(bottom, heights, strict=True)]
    _label(axes, [month.month for month in months])
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)


def _draw_batches(
    axes: "Axes", batches: Sequence[StoredBatch], *, baseline: float | None, floor: float
) -> None:
    """Draw a line of Hit_Rate@10 for each model, over the batches in the order they finished."""
    _frame(axes, Message.PLOT_QUALITY)
    if baseline is not None:
        label = Message.PLOT_BASELINE.format(value=baseline)
        axes.axhline(baseline, color=_INK, linestyle="--", linewidth=1.2, label=label)
    if floor:
        label = Message.PLOT_FLOOR.format(value=floor)
        axes.axhline(floor, color=_INK, linestyle=":", linewidth=1.6, label=label)
    for (model, points), (colour, marker) in zip(
        _by_model(batches).items(), _styles(batches), strict=True
    ):
        axes.plot(
            [position for position, _ in points],
            [batch.hit_rate_at_10 for _, batch in points],
            color=colour,
            marker=marker,
            markersize=6,
            label=model,
        )
    closed = [(at, batch) for at, batch in enumerate(batches) if batch.gate == "closed"]
    if closed:
        axes.plot(
            [at for at, _ in closed],
            [batch.hit_rate_at_10 for _, batch in closed],
            color=_INK,
            marker="X",
            markersize=13,
            markerfacecolor="none",
            markeredgewidth=1.6,
            linestyle="none",
            label=Message.PLOT_CLOSED,
        )
    axes.set_ylim(0, 1.03)
    if batches:
        _label(axes, [f"{batch.finished_at:%d-%m %H:%M}" for batch in batches])
    else:
        _say(axes, Message.PLOT_NO_BATCHES)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)


def _by_model(batches: Sequence[StoredBatch]) -> Mapping[str, list[tuple[int, StoredBatch]]]:
    found: dict[str, list[tuple[int, StoredBatch]]] = {}
    for position, batch in enumerate(batches):
        found.setdefault(batch.model, []).append((position, batch))
    return found


def _styles(batches: Sequence[StoredBatch]) -> list[tuple[str, str]]:
    models = len({batch.model for batch in batches})
    return [_MODEL_STYLES[number % len(_MODEL_STYLES)] for number in range(models)]


def _figure() -> "Figure":
    from matplotlib.figure import Figure

    return Figure(figsize=_SIZE_INCHES, dpi=_DOTS_PER_INCH, facecolor="white", layout="constrained")


def _frame(axes: "Axes", title: str) -> None:
    axes.set_title(title, loc="left", color=_INK, fontsize=11)
    axes.set_facecolor("white")
    axes.tick_params(colors=_INK, labelsize=8)
    axes.grid(axis="y", color="#e5e5e5", linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _label(axes: "Axes", labels: Sequence[str]) -> None:
    """Label some positions, the last one always, so that the labels never overlap."""
    step = -(-len(labels) // _MAX_LABELS)
    shown = range((len(labels) - 1) % step, len(labels), step)
    axes.set_xticks(list(shown), [labels[at] for at in shown], rotation=30, ha="right")
    axes.set_xlim(-0.6, len(labels) - 0.4)


def _say(axes: "Axes", text: str) -> None:
    axes.set_xticks([])
    axes.text(0.5, 0.5, text, ha="center", va="center", color=_INK, transform=axes.transAxes)


def _png(figure: "Figure") -> bytes:
    """Return the picture in a palette: a third of the size of one in full colour."""
    from PIL import Image

    drawn, written = BytesIO(), BytesIO()
    figure.savefig(drawn, format="png")
    picture = Image.open(drawn).convert("RGB").quantize(_PALETTE)
    picture.save(written, format="PNG", optimize=True)
    return written.getvalue()
