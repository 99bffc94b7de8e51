"""Places of golden questions: ranges of characters of a relevant note that answer the question.

Reading whole entries is `core.golden`; judging passages by places is `core.passage_metrics`. Where
a note itself comes from, a page or a cell, is `core.places`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from rapidfuzz import fuzz

from rag_resources.core.messages import Message
from rag_resources.core.quoting import shown
from rag_resources.core.text import is_blank

MAX_OFFSET = 2**30
"""PostgreSQL stores no text with more characters."""
# PostgreSQL stores neither NUL nor a surrogate without its other half.
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")

MIN_SIMILARITY = 0.8
"""Least similarity for an edited text to count as the same place: four of five characters stay."""


@dataclass(frozen=True, slots=True)
class GoldenPlace:
    """A range of a relevant note, as the author of the question saw it.

    Attributes:
        note_id: One of the entry's relevant notes.
        start: Offset into the note's content, in code points.
        end: After the last character; greater than `start`.
        text: What stood there. It finds the place again when the note was edited.
    """

    note_id: UUID
    start: int
    end: int
    text: str

    def to_json(self) -> dict[str, Any]:
        """Return the form of files, of the store and of the history."""
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
    """A place in the note as it is now.

    Attributes:
        stated: As the question names it.
        start: Present offset; of no use if the place is lost.
        end: Present end.
        similarity: Of the text there to the stated one, in (0, 1]; 1 is exact, None is lost.
        occurrences: How often the stated text stands in the note, if it had to be searched.
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
        """Whether the place is elsewhere than stated."""
        return not self.is_lost and (self.start, self.end) != (self.stated.start, self.stated.end)

    @property
    def is_as_stated(self) -> bool:
        """Whether the text stands where the question says."""
        return not (self.is_lost or self.has_moved or self.is_doubtful)

    @property
    def is_doubtful(self) -> bool:
        """Whether a person should look: the text changed, or stands in the note several times."""
        return not self.is_lost and (self.similarity != 1 or self.occurrences > 1)


def locate(place: GoldenPlace, content: str) -> LocatedPlace:
    """Find a place in the present content of its note.

    The stated offsets count while the text stands there. Otherwise the exact text counts, the
    occurrence nearest to the stated start (the earlier of two as near); otherwise the most similar
    range of at least `MIN_SIMILARITY`, by normalised indel similarity.
    """
    if content[place.start : place.end] == place.text:
        return LocatedPlace(place, place.start, place.end)
    starts = occurrences_of(place.text, content)
    if starts:
        start = min(starts, key=lambda found: (abs(found - place.start), found))
        return LocatedPlace(place, start, start + len(place.text), occurrences=len(starts))
    return _most_similar(place, content)


def occurrences_of(text: str, content: str) -> list[int]:
    """Return where a text that is not empty stands, overlapping occurrences included."""
    starts = []
    found = content.find(text)
    while found >= 0:
        starts.append(found)
        found = content.find(text, found + 1)
    return starts


def restate(located: LocatedPlace, content: str) -> GoldenPlace:
    """Return a place that is not lost as it stands in the note now: a person confirmed it."""
    text = content[located.start : located.end]
    return replace(located.stated, start=located.start, end=located.end, text=text)


def _most_similar(place: GoldenPlace, content: str) -> LocatedPlace:
    lost = LocatedPlace(place, place.start, place.end, similarity=None, occurrences=0)
    # A shorter content would be searched for in the text instead.
    if len(content) < len(place.text):
        return lost
    found = fuzz.partial_ratio_alignment(place.text, content, score_cutoff=100 * MIN_SIMILARITY)
    if found is None or found.dest_start == found.dest_end:
        return lost
    return LocatedPlace(
        place, found.dest_start, found.dest_end, similarity=found.score / 100, occurrences=0
    )


# --- Reading ----------------------------------------------------------------------------------


def read_places(
    value: Any,
    relevant: Sequence[UUID],
    resolve_note: Callable[[str], UUID | None],
    content_of: Callable[[UUID], str],
) -> tuple[tuple[GoldenPlace, ...], list[str]]:
    """Read the places of an entry as a file gives them.

    A place with a text alone must name the only such text in its note. One with offsets and a text
    is kept as stated, also if an edit moved the text since: `locate` finds it.

    Args:
        value: The field `places`; None if the entry has none.
        relevant: The entry's notes; if they could not be read, neither are its places.
        resolve_note: The id of the note with a given id or external id; None if there is none.
        content_of: The content of a relevant note.

    Returns:
        The places without repeats, and what is wrong with others.
    """
    if value is None or not relevant:
        return (), []
    if not isinstance(value, list):
        return (), [f"places: {Message.PROBLEM_LIST.format(value=shown(value))}"]
    places: dict[GoldenPlace, None] = {}
    problems: list[str] = []
    for position, row in enumerate(value):
        try:
            places[_read_place(row, relevant, resolve_note, content_of)] = None
        except _InvalidPlaceError as error:
            problems.append(Message.GOLDEN_PLACE.format(position=position, problem=error.problem))
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
        raise _InvalidPlaceError(Message.GOLDEN_PLACE_SHAPE)
    text, offsets = _text(row), _offsets(row)
    if text is None and offsets is None:
        raise _InvalidPlaceError(Message.GOLDEN_PLACE_SHAPE)
    name = row.get("note")
    note_id = resolve_note(str(name)) if could_name_a_note(name) else None
    if note_id is None or note_id not in relevant:
        raise _InvalidPlaceError(Message.GOLDEN_PLACE_NOTE.format(note=shown(name)))
    content = content_of(note_id)
    if offsets is None:
        return _only_occurrence(note_id, text or "", content)
    if text is None:
        return _range(note_id, *offsets, content)
    return _stated(GoldenPlace(note_id, *offsets, text), content)


def _text(row: Mapping[str, Any]) -> str | None:
    text = row.get("text")
    if not isinstance(text, str | None):
        raise _InvalidPlaceError(Message.GOLDEN_PLACE_SHAPE)
    if text is not None and is_blank(text):
        raise _InvalidPlaceError(Message.GOLDEN_PLACE_BLANK)
    return text


def _offsets(row: Mapping[str, Any]) -> tuple[int, int] | None:
    start, end = row.get("start"), row.get("end")
    if start is None and end is None:
        return None
    return _offset(start), _offset(end)


def _offset(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_OFFSET:
        return value
    raise _InvalidPlaceError(Message.GOLDEN_PLACE_SHAPE)


def _only_occurrence(note_id: UUID, text: str, content: str) -> GoldenPlace:
    starts = occurrences_of(text, content)
    if len(starts) == 1:
        return GoldenPlace(note_id, starts[0], starts[0] + len(text), text)
    if starts:
        raise _InvalidPlaceError(
            Message.GOLDEN_PLACE_REPEATED.format(text=shown(text), count=len(starts))
        )
    raise _InvalidPlaceError(Message.GOLDEN_PLACE_ABSENT.format(text=shown(text)))


def _range(note_id: UUID, start: int, end: int, content: str) -> GoldenPlace:
    text = content[start:end]
    if not start < end <= len(content):
        raise _InvalidPlaceError(
            Message.GOLDEN_PLACE_RANGE.format(start=start, end=end, length=len(content))
        )
    if is_blank(text):
        raise _InvalidPlaceError(Message.GOLDEN_PLACE_BLANK)
    return GoldenPlace(note_id, start, end, text)


def _stated(place: GoldenPlace, content: str) -> GoldenPlace:
    if place.end - place.start != len(place.text):
        raise _InvalidPlaceError(
            Message.GOLDEN_PLACE_LENGTH.format(
                start=place.start, end=place.end, length=len(place.text)
            )
        )
    if locate(place, content).is_lost:
        raise _InvalidPlaceError(Message.GOLDEN_PLACE_ABSENT.format(text=shown(place.text)))
    return place
