"""Golden entries: their type, validation and JSON form.

The changes of an import belong in `core.golden_changes`; storing entries in `store.golden`.
Properties 30 to 33.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from rag_resources.core.configuration import canonical_hash
from rag_resources.core.errors import InvalidGoldenDatasetError
from rag_resources.core.golden_drafts import LEFT_OUT
from rag_resources.core.golden_places import (
    GoldenPlace,
    could_name_a_note,
    read_places,
)
from rag_resources.core.query import MAX_QUERY_CHARS
from rag_resources.core.quoting import printable, shown
from rag_resources.core.text import fold_question, is_blank, normalize_query
from rag_resources.languages.messages import _, about, joined

CATEGORIES = ("factual", "causal", "temporal", "comparative", "multi-part")
DIFFICULTIES = range(1, 6)
# The normalised question is an index key, which must fit in a third of a page (2,704 bytes).
_MAX_KEY_BYTES = 2_600
# PostgreSQL can store neither NUL nor an unpaired surrogate.
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class GoldenEntry:
    """A question with the notes that answer it.

    Attributes:
        golden_id: None until stored.
        relevant_note_ids: At least one, without repeats, in the order given.
        places: Ranges of those notes that answer the question; empty if the author named only
            notes.
    """

    query: str
    relevant_note_ids: tuple[UUID, ...]
    expected_answer: str
    category: str
    difficulty: int
    tags: tuple[str, ...] = ()
    golden_id: UUID | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    places: tuple[GoldenPlace, ...] = ()

    @property
    def normalized_query(self) -> str:
        """The normalised question, which must be unique in the dataset."""
        return normalize_query(self.query)

    @property
    def folded_query(self) -> str:
        """The question without capitals, accents and punctuation; a second one repeats it."""
        return fold_question(self.query)

    def to_json(self) -> dict[str, Any]:
        """Return the exported form; `places` is left out if empty."""
        row = {
            "id": str(self.golden_id) if self.golden_id else None,
            "query": self.query,
            "relevantNoteIds": [str(note_id) for note_id in self.relevant_note_ids],
            "expectedAnswer": self.expected_answer,
            "category": self.category,
            "difficulty": self.difficulty,
            "tags": list(self.tags),
            "createdAt": self.created_at.isoformat() if self.created_at else None,
            "updatedAt": self.updated_at.isoformat() if self.updated_at else None,
        }
        return row | {"places": [p.to_json() for p in self.places]} if self.places else row


@dataclass
class _Reading:
    """The problems found while reading one entry."""

    problems: list[str] = field(default_factory=list)

    def add(self, message: str) -> None:
        self.problems.append(message)


def golden_hash(entries: Sequence[GoldenEntry]) -> str:
    """Hash the parts of the entries that an evaluation depends on.

    These are questions, relevant notes, places, categories and difficulties, in any order. Entries
    without places have the same hash as before places existed. Editing a note does not change the
    hash, because places keep their stored text and offsets.
    """
    return canonical_hash(sorted(_hashed(entry) for entry in entries))


def _hashed(entry: GoldenEntry) -> list[Any]:
    places = sorted([str(p.note_id), p.start, p.end, p.text] for p in entry.places)
    return [
        entry.normalized_query,
        sorted(str(note_id) for note_id in entry.relevant_note_ids),
        entry.category,
        entry.difficulty,
        *([places] if places else []),
    ]


_KEYS = (
    "id",
    "query",
    "relevantNotes",
    "relevantNoteIds",
    "expectedAnswer",
    "category",
    "difficulty",
    "tags",
    "places",
    "hint",
    "createdAt",
    "updatedAt",
)
"""The keys of an entry in a file."""


def parse_golden(
    raw: Any,
    *,
    origin: str,
    resolve_note: Callable[[str], UUID | None],
    content_of: Callable[[UUID], str],
    known_problems: Mapping[int, Sequence[str]] | None = None,
) -> list[GoldenEntry]:
    """Read a golden dataset, completely or not at all.

    Args:
        raw: A list of entries, or a mapping with one under `entries`. An entry names its notes by
            id (`relevantNoteIds`) or by external id (`relevantNotes`). `LEFT_OUT` stands for none.
        origin: The file, for messages.
        resolve_note: Returns the id of the note with an id or external id; None if there is none.
        content_of: Returns the content of a note found by `resolve_note`; called only for places.
        known_problems: Why places were left out before, by the entry's position from 1. An entry
            that then names no note has no other problem.

    Raises:
        InvalidGoldenDatasetError: It is invalid; every bad entry is named.
    """
    rows = raw.get("entries") if isinstance(raw, Mapping) else raw
    headline = _("{origin} is not valid; nothing was changed:").format(origin=origin)
    if not isinstance(rows, list):
        raise InvalidGoldenDatasetError(
            headline, [_("a list “entries” of questions was expected")], origin=origin
        )
    entries: list[GoldenEntry] = []
    problems: list[str] = []
    first_seen: dict[str | UUID, int] = {}
    for position, row in enumerate(rows, start=1):
        if row is LEFT_OUT:
            continue
        reading = _Reading()
        entry = _parse_entry(row, reading, resolve_note, content_of)
        if entry and entry.query:
            _refuse_repeats(entry, position, first_seen, reading)
            entries.append(entry)
        query = row.get("query", "") if isinstance(row, Mapping) else ""
        query = query if isinstance(query, str) else shown(query)
        known = (known_problems or {}).get(position, [])
        found = [*known, *([] if known and not _names_notes(row) else reading.problems)]
        problems.extend(locate_problem(position, query, problem) for problem in found)
    if problems:
        raise InvalidGoldenDatasetError(headline, problems, origin=origin)
    return entries


def unknown_keys(raw: Any) -> list[str]:
    """Name each key of a golden dataset that is not read; it may be misspelt.

    Args:
        raw: As for `parse_golden`.
    """
    rows = raw.get("entries") if isinstance(raw, Mapping) else raw
    found = {
        str(key)
        for row in (rows if isinstance(rows, list) else [])
        for key in (row if isinstance(row, Mapping) else ())
    }
    reason = _("unknown key; there are: {known}").format(known=", ".join(_KEYS))
    return [joined(": ", (shown(key), reason)) for key in sorted(found - set(_KEYS))]


def parse_entry(
    row: Any,
    *,
    resolve_note: Callable[[str], UUID | None],
    content_of: Callable[[UUID], str],
) -> GoldenEntry:
    """Read one entry, in the form of a file. For the other arguments see `parse_golden`.

    Raises:
        InvalidGoldenDatasetError: It is invalid; every bad field is named.
    """
    reading = _Reading()
    entry = _parse_entry(row, reading, resolve_note, content_of)
    if entry is None or reading.problems:
        raise InvalidGoldenDatasetError(
            _("The question is not valid; nothing was changed:"), reading.problems
        )
    return entry


def _names_notes(row: Any) -> bool:
    return bool(row.get("relevantNoteIds") or row.get("relevantNotes"))


def locate_problem(position: int, query: str, reason: str) -> str:
    """Return a message that names the entry of a file with its problem."""
    message = (
        _("entry {position} (“{query}”): {reason}")
        if query.strip()
        else _("entry {position}: {reason}")
    )
    return message.format(position=position, query=printable(query[:60]), reason=reason)


def _refuse_repeats(
    entry: GoldenEntry, position: int, first_seen: dict[str | UUID, int], reading: _Reading
) -> None:
    first = first_seen.setdefault(entry.folded_query, position)
    if first != position:
        reading.add(
            _(
                "the question is already there: {known} (capitals, accents and "
                "punctuation do not count)"
            ).format(known=first)
        )
    elif entry.golden_id:
        first = first_seen.setdefault(entry.golden_id, position)
        if first != position:
            reading.add(_("id: is the same as that of entry {first}").format(first=first))


def _parse_entry(
    row: Any,
    reading: _Reading,
    resolve_note: Callable[[str], UUID | None],
    content_of: Callable[[UUID], str],
) -> GoldenEntry | None:
    if not isinstance(row, Mapping):
        reading.add(_("is not a JSON object"))
        return None
    query = _query(row, reading)
    relevant = _relevant(row, reading, resolve_note)
    places, problems = read_places(row.get("places"), relevant, resolve_note, content_of)
    reading.problems.extend(problems)
    return GoldenEntry(
        query=query,
        relevant_note_ids=relevant,
        expected_answer=_text(row, "expectedAnswer", reading),
        category=_category(row, reading),
        difficulty=_difficulty(row, reading),
        tags=_tags(row, reading),
        golden_id=_uuid(row, "id", reading),
        created_at=_timestamp(row, "createdAt", reading),
        updated_at=_timestamp(row, "updatedAt", reading),
        places=places,
    )


def _query(row: Mapping[str, Any], reading: _Reading) -> str:
    query = _text(row, "query", reading)
    if len(query) > MAX_QUERY_CHARS:
        reading.add(
            about(
                "query",
                _("has more than {max_length} characters or values").format(
                    max_length=MAX_QUERY_CHARS
                ),
            )
        )
    elif len(normalize_query(query).encode()) > _MAX_KEY_BYTES:
        reading.add(
            about("query", _("takes more than {maximum} bytes").format(maximum=_MAX_KEY_BYTES))
        )
    return query


def _text(row: Mapping[str, Any], name: str, reading: _Reading) -> str:
    value = row.get(name)
    if not isinstance(value, str) or is_blank(value):
        reading.add(about(name, _("this field is missing")))
        return ""
    if _UNSTORABLE.search(value):
        reading.add(
            about(name, _("has a character that cannot be stored (NUL or half a character)"))
        )
        return ""
    return value


def _relevant(
    row: Mapping[str, Any],
    reading: _Reading,
    resolve_note: Callable[[str], UUID | None],
) -> tuple[UUID, ...]:
    # The one with names, or else the one that is there: the name that its author knows.
    fields = ("relevantNoteIds", "relevantNotes")
    present = [name for name in fields if name in row]
    field_name = next((name for name in present if row[name]), (*present, "relevantNotes")[0])
    names = row.get(field_name)
    if not names:
        reading.add(about(field_name, _("must not be empty")))
        return ()
    if not isinstance(names, list):
        problem = _("a list was expected, not “{value}”").format(value=shown(names))
        reading.add(f"{field_name}: {problem}")
        return ()
    resolved: dict[UUID, None] = {}
    for name in names:
        if could_name_a_note(name) and (note_id := resolve_note(str(name))):
            resolved[note_id] = None
            continue
        reading.add(_("the relevant note “{note}” does not exist").format(note=shown(name)))
    return tuple(resolved)


def _category(row: Mapping[str, Any], reading: _Reading) -> str:
    value = row.get("category")
    if value is None:
        reading.add(about("category", _("this field is missing")))
        return ""
    if value not in CATEGORIES:
        known = ", ".join(CATEGORIES)
        problem = _("“{value}” is not one of the options: {expected}").format(
            value=shown(value), expected=known
        )
        reading.add(about("category", problem))
        return ""
    return str(value)


def _difficulty(row: Mapping[str, Any], reading: _Reading) -> int:
    value = row.get("difficulty")
    if value is None:
        reading.add(about("difficulty", _("this field is missing")))
        return 0
    if not isinstance(value, int) or isinstance(value, bool) or value not in DIFFICULTIES:
        quoted = f'"{shown(value)}"' if isinstance(value, str) else shown(value)
        reading.add(
            about("difficulty", _("{value} is not a whole number from 1 to 5").format(value=quoted))
        )
        return 0
    return value


def _tags(row: Mapping[str, Any], reading: _Reading) -> tuple[str, ...]:
    value = row.get("tags", [])
    if not isinstance(value, list) or not all(
        isinstance(tag, str) and not _UNSTORABLE.search(tag) for tag in value
    ):
        reading.add(about("tags", _("invalid value (“{value}”)").format(value=shown(value))))
        return ()
    return tuple(value)


def _uuid(row: Mapping[str, Any], name: str, reading: _Reading) -> UUID | None:
    value = row.get(name)
    if value is None:
        return None
    try:
        return UUID(value)
    except (ValueError, TypeError, AttributeError):  # The last two if it is not a string.
        reading.add(about(name, _("invalid value (“{value}”)").format(value=shown(value))))
        return None


def _timestamp(row: Mapping[str, Any], name: str, reading: _Reading) -> datetime | None:
    value = row.get(name)
    if value is None:
        return None
    try:
        parsed = datetime.fromisoformat(value)
        parsed.astimezone(UTC)  # As the database returns it.
    except (ValueError, TypeError, OverflowError):
        parsed = None
    if parsed is None or parsed.tzinfo is None:
        reading.add(about(name, _("invalid value (“{value}”)").format(value=shown(value))))
        return None
    return parsed
