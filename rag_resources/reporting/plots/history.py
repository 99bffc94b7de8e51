"""Plots evaluations over time, with the promotions and batches of that time.

A configuration is recognised by its colour, its marker and its name beside the line.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING

from rag_resources.core.evaluation import StoredEvaluation
from rag_resources.core.messages import Message
from rag_resources.reporting.plots.canvas import (
    COLOURS,
    GREY,
    INK,
    frame,
    name_rows,
    new_figure,
)
from rag_resources.store.migration import StoredBatch
from rag_resources.store.promotions import Promotion

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SIZE_INCHES = (7.6, 6.4)
_MARKERS = "os^DvPX<*>ph"
_MARGIN = 10 / (24 * 60)
"""Ten minutes, in days."""
# One format for each step of the ticks, from years to seconds; matplotlib's own are in English.
_DATE_FORMATS = ("%Y", "%Y-%m", "%m-%d", "%H:%M", "%H:%M", "%S.%f")
_DATE_OFFSETS = ("", "%Y", "%Y-%m", "%Y-%m-%d", "%Y-%m-%d", "%Y-%m-%d %H:%M")


@dataclass(frozen=True, slots=True)
class Events:
    """What happened while quality was measured, oldest first."""

    promotions: Sequence[Promotion] = ()
    batches: Sequence[StoredBatch] = ()


def history_figure(
    history: Sequence[StoredEvaluation], names: Sequence[str], events: Events, *, threshold: float
) -> "Figure":
    """Draw Hit_Rate@10 and MRR of some configurations over time, with events above.

    Args:
        history: Oldest first, at least one.
        names: The configurations to draw; those without history are left out.
        events: Marked above; a promotion has the marker of its configuration.
        threshold: The gate's Hit_Rate@10.
    """
    figure = new_figure(_SIZE_INCHES)
    strip, hits, ranks = figure.subplots(3, 1, sharex=True, height_ratios=(1.1, 3, 3))
    latest = {item.configuration: item for item in history}
    styles = {
        name: (COLOURS[at % len(COLOURS)], _MARKERS[at % len(_MARKERS)])
        for at, name in enumerate(names)
        if name in latest
    }
    _draw_events(strip, history, events, styles)
    frame(hits, Message.PLOT_HIT_RATE_HISTORY)
    frame(ranks, Message.PLOT_MRR_HISTORY)
    hits.axhline(threshold, color=INK, linestyle="--", linewidth=1.2)
    for name, (colour, marker) in styles.items():
        points = [item for item in history if item.configuration == name]
        for axes, values in (
            (hits, [item.hit_rate_at_10 for item in points]),
            (ranks, [item.mrr for item in points]),
        ):
            moments = [_day(item.created_at) for item in points]
            axes.plot(moments, values, color=colour, marker=marker, markersize=6, linewidth=1.4)
    for promotion in events.promotions:
        for axes in (hits, ranks):
            style = "-." if promotion.reason else ":"
            axes.axvline(_day(promotion.promoted_at), color=INK, linestyle=style, linewidth=1)
    _name_lines(hits, styles, {name: latest[name].hit_rate_at_10 for name in styles})
    _name_lines(ranks, styles, {name: latest[name].mrr for name in styles})
    promoted = [item.promoted_at for item in events.promotions]
    label_days(ranks, [*(item.created_at for item in history), *promoted])
    return figure


def _draw_events(
    axes: "Axes",
    history: Sequence[StoredEvaluation],
    events: Events,
    styles: Mapping[str, tuple[str, str]],
) -> None:
    """Draw a row for each kind of event."""
    frame(axes, Message.PLOT_EVENTS)
    rows = (
        Message.PLOT_PROMOTIONS,
        Message.PLOT_ROLLBACKS,
        Message.PLOT_BATCHES,
        Message.PLOT_NEW_QUESTIONS,
    )
    for promotion in events.promotions:
        colour, marker = styles.get(promotion.configuration, (GREY, "o"))
        row = 1 if promotion.reason else 0
        axes.plot([_day(promotion.promoted_at)], [row], color=colour, marker=marker, markersize=7)
    for batch in events.batches:
        _mark(axes, batch.finished_at, 2, "X" if batch.gate == "closed" else "|")
    for before, after in pairwise(history):
        if before.golden_hash != after.golden_hash:
            _mark(axes, after.created_at, 3, "*")
    name_rows(axes, rows)
    axes.tick_params(axis="x", bottom=False)


def _mark(axes: "Axes", moment: datetime, row: int, marker: str) -> None:
    axes.plot([_day(moment)], [row], color=INK, marker=marker, markersize=7, markeredgewidth=1.6)


def _name_lines(
    axes: "Axes", styles: Mapping[str, tuple[str, str]], values: Mapping[str, float]
) -> None:
    """Write each line's name at the right, near its last value, without overlaps."""
    ordered = sorted(values, key=lambda name: values[name])
    low, high = axes.get_ylim()
    gap = (high - low) * 0.085
    places = [values[name] for name in ordered]
    for at in range(1, len(places)):
        places[at] = max(places[at], places[at - 1] + gap)
    # What was pushed out at the top comes back down, and pushes what is below it.
    over = max(0.0, places[-1] - high)
    places[-1] -= over
    for at in range(len(places) - 2, -1, -1):
        places[at] = min(places[at], places[at + 1] - gap)
    across = axes.get_yaxis_transform()
    for name, place in zip(ordered, places, strict=True):
        colour, marker = styles[name]
        axes.plot([1.02], [place], color=colour, marker=marker, transform=across, clip_on=False)
        axes.text(
            1.04,
            place,
            name,
            va="center",
            fontsize=8,
            color=INK,
            transform=across,
            parse_math=False,
        )


def _day(moment: datetime) -> float:
    """Return a time as matplotlib's number of days."""
    from matplotlib.dates import date2num

    return float(date2num(moment))  # type: ignore[no-untyped-call]


def label_days(axes: "Axes", moments: Sequence[datetime]) -> None:
    """Label an axis of days; it is 20 minutes long at least."""
    from matplotlib.dates import MINUTELY, AutoDateLocator, ConciseDateFormatter

    first, last = _day(min(moments)), _day(max(moments))
    if last - first < 2 * _MARGIN:
        axes.set_xlim((first + last) / 2 - _MARGIN, (first + last) / 2 + _MARGIN)
    locator = AutoDateLocator(maxticks=8)  # type: ignore[no-untyped-call]
    # Between three and five hours matplotlib has no step that is long enough, and warns.
    locator.intervald[MINUTELY] = [1, 5, 10, 15, 30, 60]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(
        ConciseDateFormatter(  # type: ignore[no-untyped-call]
            locator, formats=list(_DATE_FORMATS), offset_formats=list(_DATE_OFFSETS)
        )
    )
