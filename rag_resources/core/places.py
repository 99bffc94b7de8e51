"""Places: where the characters of a note are in a document, on a page or in cells.

Documents, pages and sections are in `core.documents`; ranges of a note that answer a golden
question in `core.golden_places`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Annotated, Any
from uuid import UUID

from pydantic import PlainSerializer

MOST_CELLS = 3
"""Most cells, or ranges of cells, that people are shown one by one."""


Edge = Annotated[float, PlainSerializer(lambda edge: round(edge, 2))]
"""A coordinate; stored to 1/100 point."""


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle on a page, in points (1/72 inch) from the upper left corner of the page shown."""

    left: Edge
    top: Edge
    right: Edge
    bottom: Edge


@dataclass(frozen=True, slots=True)
class NoteSpan:
    """A range of a note's characters that is copied, unchanged, from one page.

    White space that joins two spans belongs to neither.

    Attributes:
        start: Offset into the note.
        end: After the last character; greater than `start`.
        page: Number of the page, or of the sheet of a workbook, from 1.
        page_start: Offset into the text of the page.
        box: Position on the page; None in a workbook.
        sheet: Name of the sheet; None on a page.
        cells: Such as `B2` or `B2:D2`; None on a page.
    """

    start: int
    end: int
    page: int
    page_start: int
    box: Box | None = None
    sheet: str | None = None
    cells: str | None = None

    @property
    def page_end(self) -> int:
        """End of the span in the text of the page."""
        return self.page_start + self.end - self.start


@dataclass(frozen=True, slots=True)
class Place:
    """The part of one page, or of one sheet, that a passage covers.

    Attributes:
        boxes: The boxes of its spans, in order. A span that extends beyond the passage still has
            the box of the whole span.
        cells: The cells of its spans, in a workbook.
    """

    page: int
    boxes: tuple[Box, ...] = ()
    sheet: str | None = None
    cells: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether it is all of a document that has neither pages nor cells, as a web page has not.

        Such a document is read as one page, which nobody can turn to.
        """
        return self.sheet is None and self.page == 1 and not self.boxes

    @property
    def cell_range(self) -> str:
        """The cells, as `A2:C2, A3:C3`; of a long list the first and the last."""
        shown = self.cells
        if len(shown) > MOST_CELLS:
            return f"{shown[0]} … {shown[-1]}"
        return ", ".join(shown)

    def to_json(self) -> dict[str, Any]:
        """Return the camelCase form: a page with boxes, or a sheet with cells."""
        if self.sheet is not None:
            return {"sheet": self.sheet, "cells": list(self.cells)}
        boxes = [[box.left, box.top, box.right, box.bottom] for box in self.boxes]
        return {"page": self.page, "boxes": boxes}


@dataclass(frozen=True, slots=True)
class DocumentPlace:
    """Where a passage is in its document.

    Attributes:
        heading_path: The headings above it, outermost first.
        places: One per page (or sheet), in the order of the passage; at least one.
    """

    document_id: UUID
    heading_path: tuple[str, ...]
    places: tuple[Place, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the camelCase form."""
        return {
            "documentId": str(self.document_id),
            "headings": list(self.heading_path),
            "parts": [place.to_json() for place in self.places],
        }


def cut_spans(spans: Sequence[NoteSpan], start: int, end: int) -> tuple[NoteSpan, ...]:
    """Return the spans of a range of a note, clipped to the range.

    Args:
        spans: The spans of the note, in order.
        start: Offset into the note, such as a chunk's `start_char`.
        end: After the last character.
    """
    cut = []
    for span in spans:
        first, last = max(span.start, start), min(span.end, end)
        if first < last:
            moved = span.page_start + first - span.start
            cut.append(replace(span, start=first, end=last, page_start=moved))
    return tuple(cut)


def places_of(spans: Sequence[NoteSpan], start: int, end: int) -> tuple[Place, ...]:
    """Return the places of a range of a note, one per page or sheet, in the order of the range.

    For the arguments see `cut_spans`.
    """
    places = []
    for (page, sheet), group in groupby(
        cut_spans(spans, start, end), key=lambda span: (span.page, span.sheet)
    ):
        runs = list(group)
        places.append(
            Place(
                page,
                boxes=tuple(dict.fromkeys(run.box for run in runs if run.box)),
                sheet=sheet,
                cells=tuple(dict.fromkeys(run.cells for run in runs if run.cells)),
            )
        )
    return tuple(places)


def read_again(pages: Mapping[int, str], spans: Sequence[NoteSpan]) -> str:
    """Read spans from the stored text of their pages, with white space folded. Property 45.

    Args:
        pages: Texts of the pages, by number.
        spans: As returned by `cut_spans`; spans adjacent in the note are joined without a space.
    """
    text, last = "", None
    for span in spans:
        gap = " " if last is not None and span.start > last else ""
        text += gap + pages[span.page][span.page_start : span.page_end]
        last = span.end
    return " ".join(text.split())
