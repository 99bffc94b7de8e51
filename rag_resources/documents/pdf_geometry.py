"""Coordinates of a PDF page: from its own space to the page shown and the direction of its text.

A quarter turn counts anticlockwise; text of turn 1 is read from bottom to top.
"""

import ctypes
from dataclasses import dataclass
from typing import Any

import pypdfium2.raw as pdfium_c

_DEVICE = 1_000_000
"""Width and height of an imaginary device; its corners are those of the page shown."""

Rectangle = tuple[float, float, float, float]
"""Left, top, right, bottom; top is less than bottom."""


@dataclass(frozen=True, slots=True)
class Frame:
    """The rectangle of a page that is shown, and its rotation.

    `to_shown` maps from PDF space, where y points up, to points from the upper left corner.
    """

    left: float
    bottom: float
    right: float
    top: float
    quarter_turns: int

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of the page shown."""
        width, height = self.right - self.left, self.top - self.bottom
        return (height, width) if self.quarter_turns % 2 else (width, height)

    def point(self, x: float, y: float) -> tuple[float, float]:
        """Map a point of PDF space to the page shown."""
        if self.quarter_turns == 0:
            return x - self.left, self.top - y
        if self.quarter_turns == 1:
            return y - self.bottom, x - self.left
        if self.quarter_turns == 2:
            return self.right - x, y - self.bottom
        return self.top - y, self.right - x

    def rectangle(self, x0: float, y0: float, x1: float, y1: float) -> Rectangle:
        """Map a rectangle of PDF space, given by opposite corners, to the page shown."""
        ax, ay = self.point(x0, y0)
        bx, by = self.point(x1, y1)
        return min(ax, bx), min(ay, by), max(ax, bx), max(ay, by)


def frame_of(page: Any) -> Frame:
    """Return the part of a page that is shown.

    PDFium is asked for the corners: it follows crop boxes that are inherited from the page tree,
    and keeps them within the media box. pypdfium2's `get_cropbox` returns Letter for those.
    """
    (x0, y0), (x1, y1) = _corner(page, 0), _corner(page, _DEVICE)
    turns = max(0, pdfium_c.FPDFPage_GetRotation(page)) % 4
    return Frame(min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1), turns)


def _corner(page: Any, at: int) -> tuple[float, float]:
    """Return in PDF space a corner of the page shown: the upper left or the lower right one."""
    x, y = ctypes.c_double(), ctypes.c_double()
    pdfium_c.FPDF_DeviceToPage(
        page, 0, 0, _DEVICE, _DEVICE, 0, at, at, ctypes.byref(x), ctypes.byref(y)
    )
    return x.value, y.value


def turned(rectangle: Rectangle, turn: int, size: tuple[float, float]) -> Rectangle:
    """Turn a rectangle of the page shown so that text of this turn reads from left to right."""
    left, top, right, bottom = rectangle
    width, height = size
    if turn == 1:
        return height - bottom, left, height - top, right
    if turn == 2:
        return width - right, height - bottom, width - left, height - top
    if turn == 3:
        return top, width - right, bottom, width - left
    return rectangle


def turned_size(turn: int, size: tuple[float, float]) -> tuple[float, float]:
    """Return width and height of the page after `turned`."""
    return (size[1], size[0]) if turn % 2 else size


def turned_back(rectangle: Rectangle, turn: int, size: tuple[float, float]) -> Rectangle:
    """Undo `turned`.

    Args:
        rectangle: As returned by `turned`.
        turn: The same as for `turned`.
        size: Size of the page shown.
    """
    return turned(rectangle, -turn % 4, turned_size(turn, size))
