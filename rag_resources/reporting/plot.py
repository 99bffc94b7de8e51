"""Draws Hit_Rate@10 over time as an SVG that takes the page's colours.

Each configuration has its colour, its dashes and its name beside the line, so that colour alone
never carries meaning. The colours are those of Okabe and Ito.
"""

from datetime import UTC, datetime

from markupsafe import Markup

from rag_resources.languages.messages import _
from rag_resources.reporting.report import EvaluationReport

WIDTH, HEIGHT = 760, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 40, 210, 12, 28
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
_DASHES = ("none", "6 3", "2 3")
_LINE_HEIGHT = 14

_SVG = Markup(
    '<svg viewBox="0 0 {width} {height}" role="img" aria-labelledby="history-title history-desc">'
    '<title id="history-title">{title}</title><desc id="history-desc">{description}</desc>'
    '<g font-size="11" fill="currentColor" stroke="none">{parts}</g></svg>'
)
_TEXT = Markup('<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>')
_RULE = Markup(
    '<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="currentColor"'
    ' stroke-opacity="{opacity}" stroke-dasharray="{dashes}"/>'
)
_LINE = Markup(
    '<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.6"'
    ' stroke-dasharray="{dashes}"/>'
)
_POINT = Markup('<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>')


def history_svg(report: EvaluationReport) -> Markup:
    """Draw the history of the leading configurations, with promotions as vertical lines.

    Disturbed evaluations are left out, unless there are no others.

    Args:
        report: With at least one evaluation in its history.
    """
    history = [item for item in report.history if not item.is_disturbed] or report.history
    first, last = history[0].created_at, history[-1].created_at
    seconds = max((last - first).total_seconds(), 1.0)
    low = min(min(item.hit_rate_at_10 for item in history), report.gate.hit_rate_at_10)
    floor = max(0, int(low * 10 - 1e-9))

    def across(moment: datetime) -> float:
        share = (moment - first).total_seconds() / seconds if last > first else 0.5
        return _LEFT + share * (WIDTH - _LEFT - _RIGHT)

    def down(rate: float) -> float:
        return _TOP + (1 - rate) / (1 - floor / 10) * (HEIGHT - _TOP - _BOTTOM)

    def rule(rate: float, opacity: float, dashes: str) -> Markup:
        return _RULE.format(
            x1=_LEFT,
            x2=WIDTH - _RIGHT,
            y1=down(rate),
            y2=down(rate),
            opacity=opacity,
            dashes=dashes,
        )

    parts = []
    for tenth in range(floor, 11):
        parts.append(rule(tenth / 10, 0.15, "none"))
        label = _TEXT.format(x=_LEFT - 6, y=down(tenth / 10) + 4, anchor="end", text=tenth / 10)
        parts.append(label)
    parts.append(rule(report.gate.hit_rate_at_10, 0.8, "6 4"))
    for promotion in report.promotions:
        if first <= promotion.promoted_at <= last:
            x = across(promotion.promoted_at)
            parts.append(
                _RULE.format(x1=x, x2=x, y1=_TOP, y2=HEIGHT - _BOTTOM, opacity=0.6, dashes="1 3")
            )
    anchors = {first: "middle"} if first == last else {first: "start", last: "end"}
    for moment, anchor in anchors.items():
        said = f"{moment.astimezone(UTC):%Y-%m-%d %H:%M}"
        parts.append(_TEXT.format(x=across(moment), y=HEIGHT - 8, anchor=anchor, text=said))
    ends: dict[str, tuple[float, str]] = {}
    names = dict.fromkeys(item.name for item in report.leading)
    for at, name in enumerate(names):
        own = [item for item in history if item.configuration == name]
        if not own:
            continue
        colour, dashes = _COLOURS[at % len(_COLOURS)], _DASHES[at // len(_COLOURS) % len(_DASHES)]
        places = [(across(item.created_at), down(item.hit_rate_at_10)) for item in own]
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(_LINE.format(points=points, colour=colour, dashes=dashes))
        parts += [_POINT.format(x=x, y=y, colour=colour) for x, y in places]
        ends[name] = places[-1][1], colour
    parts += _named(ends)
    description = _(
        "Lines of Hit_Rate@10 of {names} between {first} and {last}. The values are in the table "
        "of evaluations."
    ).format(names=", ".join(ends), first=f"{first:%Y-%m-%d %H:%M}", last=f"{last:%Y-%m-%d %H:%M}")
    return _SVG.format(
        width=WIDTH,
        height=HEIGHT,
        title=_("History"),
        description=description,
        parts=Markup("").join(parts),
    )


def _named(ends: dict[str, tuple[float, str]]) -> list[Markup]:
    """Write each line's name at the right, near its last value, without overlaps."""
    parts, lowest = [], float("-inf")
    room = HEIGHT - _BOTTOM
    ordered = sorted(ends, key=lambda name: ends[name][0])
    for at, name in enumerate(ordered):
        y, colour = ends[name]
        # What follows must still fit below.
        y = min(max(y, lowest + _LINE_HEIGHT), room - (len(ordered) - 1 - at) * _LINE_HEIGHT)
        lowest = y
        parts.append(_POINT.format(x=WIDTH - _RIGHT + 14, y=y, colour=colour))
        parts.append(_TEXT.format(x=WIDTH - _RIGHT + 24, y=y + 4, anchor="start", text=name))
    return parts
