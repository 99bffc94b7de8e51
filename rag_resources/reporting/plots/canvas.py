"""The look of every plot, and its formats: opaque PNG, or SVG that takes a page's colours.

The colours are those of Okabe and Ito, which the colour-blind can tell apart. Colour alone never
carries meaning: areas are hatched, and points have different shapes.
"""

import re
from collections.abc import Sequence
from html import escape
from io import BytesIO, StringIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, ORANGE, PURPLE, GREEN = "#0072b2", "#e69f00", "#cc79a7", "#009e73"
SKY, VERMILION = "#56b4e9", "#d55e00"
COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY)
GREY = "#bbbbbb"
INK = "#222222"
"""Colour of text, axes and grid; in an SVG, that of the text around it."""

_DOTS_PER_INCH = 100
_PALETTE = 64
_GRID_ALPHA = 0.14
_UNTOLD = ("Creator", "Date", "Format", "Type")
"""Metadata that Matplotlib would write into an SVG; it is left out."""


def new_figure(size_inches: tuple[float, float]) -> "Figure":
    """Return an empty figure without a background."""
    from matplotlib.figure import Figure

    return Figure(figsize=size_inches, dpi=_DOTS_PER_INCH, facecolor="none", layout="constrained")


def frame(axes: "Axes", title: str, *, grid: str = "y") -> None:
    """Give axes their title, ink and grid lines."""
    axes.set_title(title, loc="left", color=INK, fontsize=11)
    axes.set_facecolor("none")
    axes.tick_params(colors=INK, labelsize=8)
    axes.grid(axis="x" if grid == "x" else "y", color=INK, alpha=_GRID_ALPHA, linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("bottom", "left"):
        axes.spines[side].set_color(INK)


def say(axes: "Axes", text: str) -> None:
    """Write into empty axes why there is nothing to see."""
    axes.set_xticks([])
    axes.text(0.5, 0.5, text, ha="center", va="center", color=INK, transform=axes.transAxes)


def name_rows(axes: "Axes", labels: Sequence[str]) -> None:
    """Name the rows, the first at the top."""
    axes.set_yticks(range(len(labels)), labels, parse_math=False)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)


def write_beside(axes: "Axes", row: int, text: str) -> None:
    """Write a text at the right of a row."""
    axes.annotate(
        text,
        (1, row),
        xycoords=axes.get_yaxis_transform(),
        xytext=(6, 0),
        textcoords="offset points",
        va="center",
        fontsize=8,
        color=INK,
    )


def png(figure: "Figure") -> bytes:
    """Return a figure as PNG on white, in a palette: a third of the size of full colour."""
    from PIL import Image

    drawn, written = BytesIO(), BytesIO()
    figure.savefig(drawn, format="png", facecolor="white")
    picture = Image.open(drawn).convert("RGB").quantize(_PALETTE)
    picture.save(written, format="PNG", optimize=True)
    return written.getvalue()


def svg(figure: "Figure", *, name: str, title: str, description: str) -> str:
    """Return a figure as an SVG element to put into a page.

    Its text stays text, its ink is `currentColor`, its ids begin with its name, and it has no
    references to anything outside.

    Args:
        figure: As drawn.
        name: Unique on the page; letters and hyphens.
        title: What a screen reader calls it.
        description: What it reads instead of it.
    """
    from matplotlib import rc_context

    written = StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(written, format="svg", metadata=dict.fromkeys(_UNTOLD))
    root, drawing = written.getvalue().partition("<svg")[2].split(">", 1)
    view_box = re.findall(r'viewBox="[^"]*"', root)[0]
    drawing = re.sub(r"<style.*?</style>", "", drawing)
    # Only within tags, so that texts stay as they are. Matplotlib writes every ">" as "&gt;".
    drawing = re.sub(r"<[^>]+>", lambda tag: _own(tag[0], name), drawing)
    return (
        f'<svg {view_box} role="img" aria-labelledby="{name}-title {name}-desc">'
        f'<title id="{name}-title">{escape(title)}</title>'
        f'<desc id="{name}-desc">{escape(description)}</desc>{drawing}'
    )


def _own(tag: str, name: str) -> str:
    """Return a tag with ids of this figure's own, and ink of the page's."""
    own = re.sub(r'( id="|url\(#|href="#)', rf"\1{name}-", tag)
    return own.replace("xlink:", "").replace(INK, "currentColor")
