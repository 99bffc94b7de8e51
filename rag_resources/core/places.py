"""Places: where in a document the characters of a note stand, on a page or in cells.

Documents, pages and sections are `core.documents`. Ranges of a note that answer a golden question
are `core.golden_places`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle of a page, in points (1/72 inch) from its upper left corner as it is shown."""

    left: float
    top: float
    right: float
    bottom: float


@dataclass(frozen=True, slots=True)
class NoteSpan:
    """A run of a note's characters that stands in a page, the same characters.

    White space that joins two runs belongs to none.

    Attributes:
        start: Offset into the note.
        end: After the last character; greater than `start`.
        page: Number of the page, or of the sheet of a workbook, from 1.
        page_start: Offset into the text of the page.
        box: Where on the page; None in a workbook.
        sheet: Name of the sheet; None on a page.
        cells: As `B2` or `B2:D2`; None on a page.
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
        """End of the run in the text of the page."""
        return self.page_start + self.end - self.start


@dataclass(frozen=True, slots=True)
class Place:
    """What a passage takes up of one page, or of one sheet.

    Attributes:
        boxes: Of its runs, in their order; the box of a run that begins or ends outside the
            passage is that of the whole run.
        cells: The same in a workbook.
    """

    page: int
    boxes: tuple[Box, ...] = ()
    sheet: str | None = None
    cells: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the camelCase form: a page with boxes, or a sheet with cells."""
        if self.sheet is not None:
            return {"sheet": self.sheet, "cells": list(self.cells)}
        boxes = [[box.left, box.top, box.right, box.bottom] for box in self.boxes]
        return {"page": self.page, "boxes": boxes}


@dataclass(frozen=True, slots=True)
class DocumentPlace:
    """Where a passage stands.

    Attributes:
        heading_path: The headings it stands under, outermost first.
        places: One a page (or sheet), in the order of the passage; at least one.
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
    """Return the runs of a range of a note, cut to it.

    Args:
        spans: Of the note, in order.
        start: Offset into the note, as a chunk's `start_char`.
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
    """Return the places of a range of a note, one for each page or sheet, in its order.

    The arguments are those of `cut_spans`.
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
    """Read runs from the stored text of their pages, white space folded. Property 45.

    Args:
        pages: Texts by number.
        spans: As `cut_spans` gives them; where the note goes on at once, so does the result.
    """
    text, last = "", None
    for span in spans:
        gap = " " if last is not None and span.start > last else ""
        text += gap + pages[span.page][span.page_start : span.page_end]
        last = span.end
    return " ".join(text.split())
