"""Places of golden questions that name a page of a document instead of a note.

A note is a section, whose name a person would have to look up, while they see the page number.
Places themselves are in `core.golden_places`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from rag_resources.core.golden_places import could_name_a_note, occurrences_of
from rag_resources.core.quoting import shown
from rag_resources.core.text import is_blank
from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries
from rag_resources.languages.messages import _
from rag_resources.store.notes import uuid_or_none


@dataclass(frozen=True, slots=True)
class PageRun:
    """A range of a note that was copied, unchanged, from a page.

    Attributes:
        content: The content of the whole note.
        start: Offset into the note.
        end: After the last character.
        page_start: Offset of the range into the text of the page.
    """

    note_id: UUID
    content: str
    start: int
    end: int
    page_start: int


def find_page_runs(
    connection: Connection, document: str, page: int, *, tenant: str
) -> list[PageRun]:
    """Return the ranges of notes that a page became, in the order of the page.

    Args:
        connection: Any.
        document: Id, address or title of a document.
        page: Its number, from 1.
        tenant: The document's tenant.
    """
    rows = queries().find_page_runs(
        connection, name=document, id=uuid_or_none(document), page=page, tenant=tenant
    )
    return [
        PageRun(row.note_id, row.content, row.start_char, row.end_char, row.page_start)
        for row in rows
    ]


@dataclass(frozen=True, slots=True)
class _Found:
    """A text on a page.

    Attributes:
        start: Offset into the note.
        page_offset: Offset into the page.
    """

    note_id: UUID
    start: int
    page_offset: int


def name_notes_of_pages(
    connection: Connection, raw: Any, *, tenant: str
) -> tuple[Any, dict[int, list[str]]]:
    """Replace pages in the content of a golden file by the notes made from them.

    A place such as `{"document": "plan.pdf", "page": 3, "text": "mayo de 2026"}` becomes one in a
    note, which is added to the entry's relevant notes. If the page has the text several times,
    `start`, its offset into the page, says which is meant.

    Args:
        connection: Any.
        raw: As read from the file; other mistakes are left to `core.golden`.
        tenant: Whose documents are meant.

    Returns:
        The content, and why places were left out of it, by the entry's position from 1: they name a
        missing page or text.
    """
    rows = raw.get("entries") if isinstance(raw, Mapping) else raw
    if not isinstance(rows, list):
        return raw, {}
    problems: dict[int, list[str]] = {}
    entries = []
    for position, row in enumerate(rows, start=1):
        if not isinstance(row, Mapping) or not _names_a_page(row):
            entries.append(row)
            continue
        named, reasons = _with_notes(connection, row, tenant)
        entries.append(named)
        if reasons:
            problems[position] = reasons
    return ({**raw, "entries": entries} if isinstance(raw, Mapping) else entries), problems


def _names_a_page(row: Mapping[str, Any]) -> bool:
    places = row.get("places")
    return isinstance(places, list) and any(map(_is_of_page, places))


def _is_of_page(place: Any) -> bool:
    return isinstance(place, Mapping) and "document" in place


def _with_notes(
    connection: Connection, row: Mapping[str, Any], tenant: str
) -> tuple[dict[str, Any], list[str]]:
    field = "relevantNoteIds" if row.get("relevantNoteIds") else "relevantNotes"
    relevant = row.get(field) or []
    places: list[Any] = []
    problems: list[str] = []
    added: dict[str, None] = {}
    for position, place in enumerate(row["places"]):
        if not _is_of_page(place):
            places.append(place)
            continue
        found = _find(connection, place, tenant)
        if isinstance(found, str):
            problems.append(
                _("places[{position}]: {problem}").format(position=position, problem=found)
            )
            continue
        text = place["text"]
        note = str(found.note_id)
        places.append(
            {"note": note, "start": found.start, "end": found.start + len(text), "text": text}
        )
        added[note] = None
    if isinstance(relevant, list):
        relevant = [*relevant, *added]
    return {**row, field: relevant, "places": places}, problems


def _find(connection: Connection, place: Mapping[str, Any], tenant: str) -> _Found | str:
    """Return the position in its note of a text on a page, or why it is not known."""
    document, page, text = place.get("document"), place.get("page"), place.get("text")
    if (
        not could_name_a_note(document)
        or not isinstance(page, int)
        or isinstance(page, bool)
        or not isinstance(text, str)
        or is_blank(text)
    ):
        return _("is not an object with “document”, “page” (a number) and “text”")
    runs = find_page_runs(connection, str(document), page, tenant=tenant)
    if not runs:
        return _("no note comes from page {page} of “{document}”; see `rag document list`").format(
            document=shown(document), page=page
        )
    everywhere, start = _occurrences(text, runs), place.get("start")
    found = [each for each in everywhere if start is None or each.page_offset == start]
    if len(found) == 1:
        return found[0]
    if found:
        return _("the text “{text}” is there {count} times; say which with “start”").format(
            text=shown(text), count=len(found)
        )
    return _("the text “{text}” is not on page {page} of “{document}”").format(
        text=shown(text), page=page, document=shown(document)
    )


def _occurrences(text: str, runs: Sequence[PageRun]) -> list[_Found]:
    """Return the occurrences of a text on a page, in the notes made from that page."""
    found = []
    for note_id, content in {run.note_id: run.content for run in runs}.items():
        for start in occurrences_of(text, content):
            offset = next(
                (
                    run.page_start + start - run.start
                    for run in runs
                    if run.note_id == note_id and run.start <= start < run.end
                ),
                None,
            )
            if offset is not None:
                found.append(_Found(note_id, start, offset))
    return found
