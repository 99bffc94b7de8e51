"""The progress of a migration as a picture: its months, and the quality after every batch."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rag_resources.core.messages import Message
from rag_resources.core.migration_status import MonthProgress
from rag_resources.reporting.plots.canvas import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PURPLE,
    frame,
    new_figure,
    png,
    say,
)
from rag_resources.store.migration import StoredBatch
from rag_resources.store.migration_status import MigrationStatus

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIZE_INCHES = (9.0, 6.4)
_MAX_LABELS = 12
_MODEL_STYLES = ((BLUE, "o"), (GREEN, "s"), (ORANGE, "^"), (PURPLE, "D"))


def migration_plot(status: MigrationStatus, *, floor: float) -> bytes:
    """Draw the progress of every month, and the quality after every batch.

    Args:
        status: As read.
        floor: Lowest Hit_Rate@10 allowed; 0 is no floor and is not drawn.

    Returns:
        An opaque PNG of some 20 kB.
    """
    figure = new_figure(_SIZE_INCHES)
    above, below = figure.subplots(2, 1)
    _draw_months(above, status.months)
    baseline = status.baseline.hit_rate_at_10 if status.baseline else None
    _draw_batches(below, status.batches, baseline=baseline, floor=floor)
    return png(figure)


def _draw_months(axes: "Axes", months: Sequence[MonthProgress]) -> None:
    """Stack the notes of each month: migrated, with errors, remaining."""
    from matplotlib.ticker import MaxNLocator

    frame(axes, Message.PLOT_PROGRESS)
    if not months:
        say(axes, Message.PLOT_NO_NOTES)
        return
    sound = [month.sound for month in months]
    failed = [month.failed for month in months]
    waiting = [month.notes - month.sound - month.failed for month in months]
    positions = range(len(months))
    bottom = [0] * len(months)
    for heights, label, colour, hatch in (
        (sound, Message.PLOT_MIGRATED, BLUE, ""),
        (failed, Message.PLOT_FAILED, ORANGE, "xx"),
        (waiting, Message.PLOT_REMAINING, GREY, "//"),
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
    frame(axes, Message.PLOT_QUALITY)
    if baseline is not None:
        label = Message.PLOT_BASELINE.format(value=baseline)
        axes.axhline(baseline, color=INK, linestyle="--", linewidth=1.2, label=label)
    if floor:
        label = Message.PLOT_FLOOR.format(value=floor)
        axes.axhline(floor, color=INK, linestyle=":", linewidth=1.6, label=label)
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
            color=INK,
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
        say(axes, Message.PLOT_NO_BATCHES)
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


def _label(axes: "Axes", labels: Sequence[str]) -> None:
    """Label some positions, the last one always, so that the labels never overlap."""
    step = -(-len(labels) // _MAX_LABELS)
    shown = range((len(labels) - 1) % step, len(labels), step)
    axes.set_xticks(list(shown), [labels[at] for at in shown], rotation=30, ha="right")
    axes.set_xlim(-0.6, len(labels) - 0.4)
