"""The drawings of a PDF page besides words: lines, areas, images, and the clips of its text.

Tables are found between the lines by `documents.pdf_tables`.
"""

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pypdfium2.raw as pdfium_c

from rag_resources.documents.pdf_geometry import Frame, Rectangle, turned

MAX_OBJECTS = 30_000
"""Most objects of a page that are examined; a map can have a million."""

MAX_LINES = 4_000
"""A page with more lines than this is a drawing, in which no tables are searched."""

_THIN = 3.0
"""Points: a filled area thinner than this is a line."""

_SHORT = 4.0
"""Points: shorter lines are parts of letters and marks."""

_SMALLEST_DOT, _LARGEST_DOT = 1.2, 7.0
"""Points."""

_LARGE_IMAGE = 0.005
"""Share of the page; smaller images are bullets and ornaments."""

_MAX_DEPTH = 8
_MAX_SEGMENTS = 400
_RECTANGLE = 5
"""Segments of one rectangle; a filled path with more can hold all lines of a table."""

Matrix = tuple[float, float, float, float, float, float]
_IDENTITY: Matrix = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Rule:
    """A horizontal or vertical line on the page shown.

    Attributes:
        at: Its y if horizontal, its x if vertical.
        start: Its left or upper end.
    """

    at: float
    start: float
    end: float


@dataclass(slots=True)
class Drawings:
    """Lines, areas and images of a page, and the clips of its text objects."""

    horizontal: list[Rule] = field(default_factory=list)
    vertical: list[Rule] = field(default_factory=list)
    areas: list[Rectangle] = field(default_factory=list)
    images: list[Rectangle] = field(default_factory=list)
    clips: list[tuple[Rectangle, Rectangle]] = field(default_factory=list)

    def has_picture(self, size: tuple[float, float]) -> bool:
        """Whether an image is large enough to show something."""
        page = size[0] * size[1] or 1.0
        return any(_area(image) / page > _LARGE_IMAGE for image in self.images)


def read_drawings(page: Any, frame: Frame) -> Drawings:
    """Return what a page draws beside words, in the coordinates of the page shown."""
    drawings = Drawings()
    for number, (drawn, kind, matrix) in enumerate(_objects(page)):
        if number > MAX_OBJECTS:
            break
        bounds = _bounds(drawn, matrix, frame)
        if bounds is None:
            continue
        if kind == pdfium_c.FPDF_PAGEOBJ_PATH:
            _add_path(drawings, drawn, bounds, matrix, frame)
        elif kind in (pdfium_c.FPDF_PAGEOBJ_IMAGE, pdfium_c.FPDF_PAGEOBJ_SHADING):
            drawings.images.append(bounds)
        elif kind == pdfium_c.FPDF_PAGEOBJ_TEXT and matrix == _IDENTITY:
            clip = _clip(drawn, frame)
            if clip is not None and not _holds(clip, bounds):
                drawings.clips.append((bounds, clip))
    if len(drawings.horizontal) + len(drawings.vertical) > MAX_LINES:
        drawings.horizontal, drawings.vertical = [], []
    return drawings


def turned_drawings(drawings: Drawings, turn: int, size: tuple[float, float]) -> Drawings:
    """Turn the lines of a page as `pdf_geometry.turned` turns its words."""
    boxes = [(rule.start, rule.at, rule.end, rule.at) for rule in drawings.horizontal]
    boxes += [(rule.at, rule.start, rule.at, rule.end) for rule in drawings.vertical]
    result = Drawings()
    for box in boxes:
        _add_line(result, turned(box, turn, size))
    result.areas = [turned(area, turn, size) for area in drawings.areas]
    return result


def _area(rectangle: Rectangle) -> float:
    left, top, right, bottom = rectangle
    return max(0.0, right - left) * max(0.0, bottom - top)


def _holds(outer: Rectangle, inner: Rectangle) -> bool:
    return (
        outer[0] <= inner[0] + 1
        and outer[1] <= inner[1] + 1
        and outer[2] >= inner[2] - 1
        and outer[3] >= inner[3] - 1
    )


def _objects(page: Any) -> Iterator[tuple[Any, int, Matrix]]:
    """Return every object of a page with its kind, and the matrix of the forms that hold it."""
    for index in range(pdfium_c.FPDFPage_CountObjects(page)):
        yield from _unfolded(pdfium_c.FPDFPage_GetObject(page, index), _IDENTITY, 0)


def _unfolded(drawn: Any, matrix: Matrix, depth: int) -> Iterator[tuple[Any, int, Matrix]]:
    kind = pdfium_c.FPDFPageObj_GetType(drawn)
    if kind != pdfium_c.FPDF_PAGEOBJ_FORM:
        yield drawn, kind, matrix
        return
    if depth >= _MAX_DEPTH:
        return
    inner = _product(_matrix(drawn), matrix)
    for index in range(max(0, pdfium_c.FPDFFormObj_CountObjects(drawn))):
        yield from _unfolded(pdfium_c.FPDFFormObj_GetObject(drawn, index), inner, depth + 1)


def _matrix(drawn: Any) -> Matrix:
    found = pdfium_c.FS_MATRIX()
    if not pdfium_c.FPDFPageObj_GetMatrix(drawn, ctypes.byref(found)):
        return _IDENTITY
    return found.a, found.b, found.c, found.d, found.e, found.f


def _product(first: Matrix, second: Matrix) -> Matrix:
    """Return the matrix that applies `first`, then `second`."""
    a, b, c, d, e, f = first
    g, h, i, j, k, m = second
    return (
        *(a * g + b * i, a * h + b * j, c * g + d * i),
        *(c * h + d * j, e * g + f * i + k, e * h + f * j + m),
    )


def _applied(matrix: Matrix, x: float, y: float) -> tuple[float, float]:
    a, b, c, d, e, f = matrix
    return a * x + c * y + e, b * x + d * y + f


def _bounds(drawn: Any, matrix: Matrix, frame: Frame) -> Rectangle | None:
    """Return the rectangle around an object on the page shown; None if it is not on it."""
    sides = [ctypes.c_float() for _ in range(4)]
    if not pdfium_c.FPDFPageObj_GetBounds(drawn, *map(ctypes.byref, sides)):
        return None
    x0, y0, x1, y1 = (side.value for side in sides)
    if matrix != _IDENTITY:
        corners = [_applied(matrix, x, y) for x in (x0, x1) for y in (y0, y1)]
        x0, x1 = min(x for x, _ in corners), max(x for x, _ in corners)
        y0, y1 = min(y for _, y in corners), max(y for _, y in corners)
    left, top, right, bottom = frame.rectangle(x0, y0, x1, y1)
    width, height = frame.size
    left, right = max(left, 0.0), min(right, width)
    top, bottom = max(top, 0.0), min(bottom, height)
    return (left, top, right, bottom) if left <= right and top <= bottom else None


def _add_path(
    drawings: Drawings, path: Any, bounds: Rectangle, matrix: Matrix, frame: Frame
) -> None:
    fill, stroke = ctypes.c_int(), ctypes.c_int()
    pdfium_c.FPDFPath_GetDrawMode(path, ctypes.byref(fill), ctypes.byref(stroke))
    left, top, right, bottom = bounds
    if not (fill.value or stroke.value):
        return
    if _is_dot(right - left, bottom - top):
        drawings.areas.append(bounds)
        return
    if bottom - top <= _THIN or right - left <= _THIN:
        _add_line(drawings, bounds)
        return
    segments = pdfium_c.FPDFPath_CountSegments(path)
    if fill.value and segments <= _MAX_SEGMENTS and not _is_white(path):
        drawings.areas.append(bounds)
    if (stroke.value or segments > _RECTANGLE) and segments <= _MAX_SEGMENTS:
        for x0, y0, x1, y1 in _edges(path, segments, _product(_matrix(path), matrix)):
            edge = frame.rectangle(x0, y0, x1, y1)
            if edge[2] - edge[0] <= 1 or edge[3] - edge[1] <= 1:
                _add_line(drawings, edge)


def _is_dot(width: float, height: float) -> bool:
    """Whether a path has the form of a disc, ring or square as large as the bullet of a list."""
    low, high = sorted((width, height))
    return low >= _SMALLEST_DOT and high <= min(_LARGEST_DOT, 1.3 * low)


def _add_line(drawings: Drawings, bounds: Rectangle) -> None:
    left, top, right, bottom = bounds
    if right - left >= bottom - top:
        if right - left >= _SHORT:
            drawings.horizontal.append(Rule((top + bottom) / 2, left, right))
    elif bottom - top >= _SHORT:
        drawings.vertical.append(Rule((left + right) / 2, top, bottom))


def _is_white(path: Any) -> bool:
    red, green, blue, alpha = (ctypes.c_uint() for _ in range(4))
    found = pdfium_c.FPDFPageObj_GetFillColor(path, *map(ctypes.byref, (red, green, blue, alpha)))
    if not found:
        return False
    return alpha.value == 0 or min(red.value, green.value, blue.value) >= 250


def _edges(path: Any, count: int, matrix: Matrix) -> Iterator[tuple[float, float, float, float]]:
    """Return the straight edges of a path, in PDF space."""
    x, y = ctypes.c_float(), ctypes.c_float()
    start: tuple[float, float] | None = None
    last: tuple[float, float] | None = None
    for index in range(count):
        segment = pdfium_c.FPDFPath_GetPathSegment(path, index)
        pdfium_c.FPDFPathSegment_GetPoint(segment, ctypes.byref(x), ctypes.byref(y))
        point = _applied(matrix, x.value, y.value)
        kind = pdfium_c.FPDFPathSegment_GetType(segment)
        if kind == pdfium_c.FPDF_SEGMENT_MOVETO:
            start = point
        elif kind == pdfium_c.FPDF_SEGMENT_LINETO and last:
            yield (*last, *point)
        if pdfium_c.FPDFPathSegment_GetClose(segment) and start:
            yield (*point, *start)
        last = point


def _clip(drawn: Any, frame: Frame) -> Rectangle | None:
    """Return the rectangle within which an object shows; None if it is not clipped."""
    clip = pdfium_c.FPDFPageObj_GetClipPath(drawn)
    if not clip:
        return None
    left, top, right, bottom = 0.0, 0.0, *frame.size
    x, y = ctypes.c_float(), ctypes.c_float()
    paths = pdfium_c.FPDFClipPath_CountPaths(clip)
    for path in range(max(0, paths)):
        points = []
        for index in range(max(0, pdfium_c.FPDFClipPath_CountPathSegments(clip, path))):
            segment = pdfium_c.FPDFClipPath_GetPathSegment(clip, path, index)
            pdfium_c.FPDFPathSegment_GetPoint(segment, ctypes.byref(x), ctypes.byref(y))
            points.append(frame.point(x.value, y.value))
        if points:
            left, right = (
                max(left, min(p[0] for p in points)),
                min(right, max(p[0] for p in points)),
            )
            top, bottom = (
                max(top, min(p[1] for p in points)),
                min(bottom, max(p[1] for p in points)),
            )
    return (left, top, right, bottom) if paths > 0 else None
