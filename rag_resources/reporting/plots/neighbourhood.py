"""A picture of what surrounds an entity in the causal graph."""

import math
import textwrap
from typing import TYPE_CHECKING

from rag_resources.reporting.plots.canvas import BLUE, GREY, VERMILION, new_figure, png

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rag_resources.graph.people import Neighbourhood

_DRAWN = 12
_LINE_CHARS = 20
_LONGEST_CHARS = 56
_DARK = "#1a1a1a"
"""Colour of text on the white of a box, whatever colours the page has."""


def draw_neighbourhood(found: "Neighbourhood") -> bytes:
    """Return a PNG of what surrounds an entity."""
    return png(neighbourhood_figure(found))


def neighbourhood_figure(found: "Neighbourhood") -> "Figure":
    """Draw an entity in the middle, the names that occur with it, and causes with their effects.

    A dashed line joins names of the same chunks; an arrow leads from a cause to its effect. For a
    name, the drawn events are those whose words contain it.
    """
    centre = found.entity.name
    arrows = [(item.cause, item.effect, item.relation) for item in found.statements[: _DRAWN // 2]]
    events = [name for cause, effect, _ in arrows for name in (cause, effect)]
    around = list(dict.fromkeys([*events, *(name for name, _ in found.company)]))
    around = [name for name in around if name != centre][:_DRAWN]
    places = {centre: (0.0, 0.0)} | {
        name: (math.cos(angle), math.sin(angle))
        for name, angle in zip(
            around, (2 * math.pi * n / len(around) for n in range(len(around))), strict=True
        )
    }
    figure = new_figure((8.5, 4 + 0.3 * len(around)))
    axes = figure.subplots()
    axes.set_axis_off()
    axes.set_xlim(-1.35, 1.35)
    axes.set_ylim(-1.25, 1.25)
    for name, _ in found.company:
        if name in places:
            x, y = places[name]
            axes.plot([0, x], [0, y], color=GREY, linestyle="--", linewidth=0.8, zorder=1)
    for cause, effect, relation in arrows:
        if cause in places and effect in places:
            axes.annotate(
                "",
                places[effect],
                places[cause],
                arrowprops={"arrowstyle": "-|>", "color": VERMILION, "shrinkA": 18, "shrinkB": 18},
                zorder=2,
            )
            (x, y), (u, v) = places[cause], places[effect]
            axes.text((x + u) / 2, (y + v) / 2, relation, fontsize=8, color=VERMILION, ha="center")
    for name, (x, y) in places.items():
        axes.text(
            x,
            y,
            textwrap.fill(textwrap.shorten(name, _LONGEST_CHARS, placeholder="…"), _LINE_CHARS),
            ha="center",
            va="center",
            fontsize=13 if name == centre else 9,
            color=BLUE if name == centre else _DARK,
            parse_math=False,
            bbox={"boxstyle": "round", "facecolor": "white", "edgecolor": GREY},
            zorder=3,
        )
    return figure
