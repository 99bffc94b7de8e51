"""The axis of days of the history."""

import warnings
from datetime import UTC, datetime, timedelta

import pytest
from matplotlib.figure import Figure

from rag_resources.reporting.plots.history import label_days

FIRST = datetime(2026, 11, 28, 0, 3, tzinfo=UTC)


@pytest.mark.parametrize("minutes", [0, 5, 14, 40, 90, 200, 230, 280, 310, 700, 1_500, 100_000])
def test_an_axis_has_some_labels_whatever_it_spans(minutes: int) -> None:
    """A first hour of some minutes fills it; matplotlib warns of no span."""
    last = FIRST + timedelta(minutes=minutes)
    figure = Figure()
    axes = figure.add_subplot()
    axes.plot([FIRST, last], [0, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        label_days(axes, [FIRST, last])
        figure.canvas.draw()
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert 3 <= len(labels) <= 9
    assert len(set(labels)) == len(labels)
    left, right = axes.get_xlim()
    assert (right - left) * 24 * 60 >= max(20, minutes) - 1e-6
    assert (right - left) * 24 * 60 <= max(20, 1.2 * minutes) + 1e-6
