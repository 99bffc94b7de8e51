"""The style of the report page: contrast of WCAG 2.2 AA in light, in the dark and on paper."""

import re
from pathlib import Path

import pytest

TEMPLATES = Path(__file__).parents[2] / "rag_resources" / "reporting" / "templates"
CSS = (TEMPLATES / "report.css").read_text("utf-8")
PALETTES = [
    dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", block))
    for block in re.findall(r":root \{(.*?)\}", CSS, re.DOTALL)
]
TEXTS, GROUNDS = ("ink", "faint", "link"), ("paper", "band", "good", "open", "bad")
LEAST_CONTRAST = 4.5
"""Between text of ordinary size and its ground (success criterion 1.4.3)."""


def luminance(colour: str) -> float:
    """Relative luminance of `#rrggbb`, as WCAG defines it."""
    shares = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (
        share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_that_of_the_standard() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("palette", PALETTES, ids=["light", "dark", "paper"])
def test_every_text_can_be_read_on_every_ground(palette: dict[str, str]) -> None:
    weak = {
        (text, ground): round(contrast(palette[text], palette[ground]), 2)
        for text in TEXTS
        for ground in GROUNDS
        if contrast(palette[text], palette[ground]) < LEAST_CONTRAST
    }
    assert weak == {}


def test_paper_has_the_colours_of_light() -> None:
    light, _, paper = PALETTES
    assert paper == light


def test_whoever_uses_the_keyboard_sees_where_and_paper_shows_everything() -> None:
    """Focus is drawn; on paper nothing scrolls, nothing is folded, and no menu is left."""
    assert re.search(r":focus-visible \{ outline: 2px", CSS)
    assert "outline: none" not in CSS
    printed = CSS.split("@media print")[1]
    for rule in (
        "nav, .skip { display: none",
        "overflow: visible",
        "details::details-content",
    ):
        assert rule in printed
