"""Places of golden questions: ranges of characters of a relevant note that answer the question.

Reading whole entries belongs in `core.golden`; the page or cell that a note comes from in
`core.places`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from rag_resources.core.quoting import shown
from rag_resources.core.text import is_blank
from rag_resources.languages.messages import _

_NOTE_END = 2**63 - 1
MAX_OFFSET = 2**30
"""Most characters of a text that PostgreSQL can store."""
# PostgreSQL can store neither NUL nor an unpaired surrogate.
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")

MIN_SIMILARITY = 0.8
"""Least similarity of an edited text to count as the same place: four of five characters equal."""


@dataclass(frozen=True, slots=True)
class GoldenPlace:
    """A range of a relevant note, as the author of the question saw it.

    Attributes:
        note_id: One of the entry's relevant notes.
        start: Offset into the note's content, in code points.
        end: After the last character; greater than `start`.
        text: The text at that range; used to find the place again after an edit of the note.
    """

    note_id: UUID
    start: int
    end: int
    text: str

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form used in files, in the store and in the history."""
        return {
            "note": str(self.note_id),
            "start": self.start,
            "end": self.end,
            "text": self.text,
        }


def place_from_json(row: Mapping[str, Any]) -> GoldenPlace:
    """Read what `GoldenPlace.to_json` wrote."""
    return GoldenPlace(UUID(row["note"]), row["start"], row["end"], row["text"])


@dataclass(frozen=True, slots=True)
class LocatedPlace:
    """A place and its current position in the note.

    Attributes:
        stated: The place as stored with the question.
        start: Current offset; meaningless if the place is lost.
        end: Current end.
        similarity: Similarity of the text there to the stored one, in (0, 1]; 1 is exact, None
            means lost.
        occurrences: How often the stored text occurs in the note, if it had to be searched.
    """

    stated: GoldenPlace
    start: int
    end: int
    similarity: float | None = 1.0
    occurrences: int = 1

    @property
    def is_lost(self) -> bool:
        """Whether nothing similar enough is left in the note."""
        return self.similarity is None

    @property
    def has_moved(self) -> bool:
        """Whether the current position differs from the stored one."""
        return not self.is_lost and (self.start, self.end) != (self.stated.start, self.stated.end)

    @property
    def is_as_stated(self) -> bool:
        """Whether the exact text is at its stored position."""
        return not (self.is_lost or self.has_moved or self.is_doubtful)

    @property
    def is_doubtful(self) -> bool:
        """Whether a person should check it: the text changed, or occurs several times."""
        return not self.is_lost and (self.similarity != 1 or self.occurrences > 1)


def locate(place: GoldenPlace, content: str) -> LocatedPlace:
    """Find a place in the current content of its note.

    The stored offsets are used if the text is still there. Otherwise the occurrence of the exact
    text nearest to the stored start is used; ties go to the earlier one. Otherwise the most similar
    range is used, if its normalised indel similarity is at least `MIN_SIMILARITY`.
    """
    if content[place.start : place.end] == place.text:
        return LocatedPlace(place, place.start, place.end)
    starts = occurrences_of(place.text, content)
    if starts:
        start = min(starts, key=lambda found: (abs(found - place.start), found))
        return LocatedPlace(place, start, start + len(place.text), occurrences=len(starts))
    return _most_similar(place, content)


def occurrences_of(text: str, content: str) -> list[int]:
    """Return the offsets of a non-empty text, overlapping occurrences included."""
    starts = []
    found = content.find(text)
    while found >= 0:
        starts.append(found)
        found = content.find(text, found + 1)
    return starts


def restate(located: LocatedPlace, content: str) -> GoldenPlace:
    """Return the place at its current position, which a person has confirmed; it is not lost."""
    text = content[located.start : located.end]
    return replace(located.stated, start=located.start, end=located.end, text=text)


def _most_similar(place: GoldenPlace, content: str) -> LocatedPlace:
    lost = LocatedPlace(place, place.start, place.end, similarity=None, occurrences=0)
    # With a shorter content the search would look for the content in the text instead.
    if len(content) < len(place.text):
        return lost
    from rapidfuzz import fuzz  # loads slowly

    found = fuzz.partial_ratio_alignment(place.text, content, score_cutoff=100 * MIN_SIMILARITY)
    if found is None or found.dest_start == found.dest_end:
        return lost
    return LocatedPlace(
        place, found.dest_start, found.dest_end, similarity=found.score / 100, occurrences=0
    )


@dataclass(frozen=True, slots=True)
class NoteRange:
    """A range of a note's characters: `start <= position < end`."""

    note_id: UUID
    start: int
    end: int

    def overlaps(self, other: "NoteRange") -> bool:
        """Whether the two ranges have a character in common."""
        return self.note_id == other.note_id and self.start < other.end and other.start < self.end


def golden_ranges(
    relevant_note_ids: Sequence[UUID], places: Sequence[LocatedPlace]
) -> tuple[NoteRange, ...]:
    """Return the ranges that answer a question: its places, and whole notes without one.

    A lost place is left out, since there is nothing to find; golden drift reports it. Of a
    question with lost places only, all relevant notes count as a whole.

    Args:
        relevant_note_ids: The question's relevant notes.
        places: All places of the question, at their current positions.
    """
    found = [
        NoteRange(place.stated.note_id, place.start, place.end)
        for place in places
        if not place.is_lost
    ]
    named = {place.stated.note_id for place in places} if found else set()
    whole = [NoteRange(note, 0, _NOTE_END) for note in relevant_note_ids if note not in named]
    return (*found, *whole)


# --- Reading ----------------------------------------------------------------------------------


def read_places(
    value: Any,
    relevant: Sequence[UUID],
    resolve_note: Callable[[str], UUID | None],
    content_of: Callable[[UUID], str],
) -> tuple[tuple[GoldenPlace, ...], list[str]]:
    """Read the places of an entry in a file.

    If a place has only a text, the text must occur exactly once in its note. A place with offsets
    and a text is kept as it is, even if an edit has moved the text since: `locate` finds it.

    Args:
        value: The field `places`; None if the entry has none.
        relevant: The entry's notes; if they could not be read, the places are not read either.
        resolve_note: Returns the id of the note with an id or external id; None if there is none.
        content_of: Returns the content of a relevant note.

    Returns:
        The valid places without repeats, and the problems of the others.
    """
    if value is None:
        return (), []
    if not isinstance(value, list):
        return (), ["places: " + _("a list was expected, not “{value}”").format(value=shown(value))]
    if not relevant:
        return (), []
    places: dict[GoldenPlace, None] = {}
    problems: list[str] = []
    for position, row in enumerate(value):
        try:
            places[_read_place(row, relevant, resolve_note, content_of)] = None
        except _InvalidPlaceError as error:
            problems.append(
                _("places[{position}]: {problem}").format(position=position, problem=error.problem)
            )
    return tuple(places), problems


def could_name_a_note(name: object) -> bool:
    """Whether a value of a file can be looked up as a note's id or external id."""
    return isinstance(name, str | int) and not _UNSTORABLE.search(str(name))


class _InvalidPlaceError(ValueError):
    """A place cannot be used; `problem` says why, in Spanish."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem


def _read_place(
    row: Any,
    relevant: Sequence[UUID],
    resolve_note: Callable[[str], UUID | None],
    content_of: Callable[[UUID], str],
) -> GoldenPlace:
    if not isinstance(row, Mapping):
        raise _InvalidPlaceError(
            _("is not an object with “note” and with “text”, or with “start” and “end”")
        )
    text, offsets = _text(row), _offsets(row)
    if text is None and offsets is None:
        raise _InvalidPlaceError(
            _("is not an object with “note” and with “text”, or with “start” and “end”")
        )
    name = row.get("note")
    note_id = resolve_note(str(name)) if could_name_a_note(name) else None
    if note_id is None or note_id not in relevant:
        raise _InvalidPlaceError(
            _("the note “{note}” is not one of the question's relevant notes").format(
                note=shown(name)
            )
        )
    content = content_of(note_id)
    if offsets is None:
        return _only_occurrence(note_id, text or "", content)
    if text is None:
        return _range(note_id, *offsets, content)
    return _stated(GoldenPlace(note_id, *offsets, text), content)


def _text(row: Mapping[str, Any]) -> str | None:
    text = row.get("text")
    if not isinstance(text, str | None):
        raise _InvalidPlaceError(
            _("is not an object with “note” and with “text”, or with “start” and “end”")
        )
    if text is not None and is_blank(text):
        raise _InvalidPlaceError(_("the text is empty"))
    return text


def _offsets(row: Mapping[str, Any]) -> tuple[int, int] | None:
    start, end = row.get("start"), row.get("end")
    if start is None and end is None:
        return None
    return _offset(start), _offset(end)


def _offset(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_OFFSET:
        return value
    raise _InvalidPlaceError(
        _("is not an object with “note” and with “text”, or with “start” and “end”")
    )


def _only_occurrence(note_id: UUID, text: str, content: str) -> GoldenPlace:
    starts = occurrences_of(text, content)
    if len(starts) == 1:
        return GoldenPlace(note_id, starts[0], starts[0] + len(text), text)
    if starts:
        raise _InvalidPlaceError(
            _("the text “{text}” is there {count} times; say which with “start”").format(
                text=shown(text), count=len(starts)
            )
        )
    raise _InvalidPlaceError(_("the text “{text}” is not in the note").format(text=shown(text)))


def _range(note_id: UUID, start: int, end: int, content: str) -> GoldenPlace:
    text = content[start:end]
    if not start < end <= len(content):
        raise _InvalidPlaceError(
            _("{start} to {end} is no range of the note, which has {length} characters").format(
                start=start, end=end, length=len(content)
            )
        )
    if is_blank(text):
        raise _InvalidPlaceError(_("the text is empty"))
    return GoldenPlace(note_id, start, end, text)


def _stated(place: GoldenPlace, content: str) -> GoldenPlace:
    if place.end - place.start != len(place.text):
        raise _InvalidPlaceError(
            _("{start} to {end} are not {length} characters, as many as the text has").format(
                start=place.start, end=place.end, length=len(place.text)
            )
        )
    if locate(place, content).is_lost:
        raise _InvalidPlaceError(
            _("the text “{text}” is not in the note").format(text=shown(place.text))
        )
    return place
