"""Checks a file of golden questions against the folder of notes, before anything is stored.

`golden.files.read_golden` checks a file against the stored notes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from rag_resources.core.errors import InvalidGoldenDatasetError
from rag_resources.core.golden import parse_golden, unknown_keys
from rag_resources.core.golden_drafts import without_drafts
from rag_resources.core.messages import Message
from rag_resources.core.types import NoteRecord
from rag_resources.golden.files import GoldenFile, load_json
from rag_resources.ingestion.sources import SourceOptions, iter_source
from rag_resources.store.notes import uuid_or_none


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """A file of questions that was checked without a database.

    Attributes:
        read: The content of the file.
        notes: Number of the notes that its questions were checked against; None without a source,
            so that notes were not checked.
    """

    read: GoldenFile
    notes: int | None


def check_golden(path: Path, source: Path | None, *, follows_links: bool = False) -> CheckedFile:
    """Check the form of a file, repeated questions, and notes and places against a source.

    A note named by its id is accepted, because ids are made only when notes are stored. Places in
    documents are left out, because documents are not read.

    Args:
        path: A JSON file of questions.
        source: The folder or file of notes; None or one that does not exist: notes are not checked.
        follows_links: As in `SourceOptions`.

    Raises:
        InvalidSourceError: The file, or the source, cannot be read.
        InvalidGoldenDatasetError: Some entries are invalid (all are named), or there are none.
    """
    given = load_json(path)
    raw, drafts = without_drafts(given)
    is_there = source is not None and source.exists()
    contents = _contents(source, follows_links) if source and is_there else None

    def resolve(name: str) -> UUID | None:
        if contents is None or name in contents:
            return uuid5(NAMESPACE_URL, name)
        return uuid_or_none(name)

    known = {uuid5(NAMESPACE_URL, name): text for name, text in (contents or {}).items()}
    rows = raw.get("entries") if isinstance(raw, Mapping) else raw
    entries = parse_golden(
        [_checkable(row, contents or {}) for row in rows] if isinstance(rows, list) else raw,
        origin=str(path),
        resolve_note=resolve,
        content_of=lambda found: known[found],
    )
    if not entries and not drafts:
        raise InvalidGoldenDatasetError(Message.GOLDEN_FILE_EMPTY.format(path=path), [])
    read = GoldenFile(entries, drafts, unknown=unknown_keys(given))
    return CheckedFile(read, None if contents is None else len(contents))


def _contents(source: Path, follows_links: bool) -> dict[str, str]:
    """Return the contents of the notes of a source, by external id."""
    options = SourceOptions(follows_links=follows_links)
    return {
        record.external_id: record.content
        for record in iter_source(source, options=options)
        if isinstance(record, NoteRecord)
    }


def _checkable(row: Any, contents: Mapping[str, str]) -> Any:
    """Return an entry without the places whose text cannot be looked up."""
    places = row.get("places") if isinstance(row, Mapping) else None
    if not isinstance(places, list):
        return row
    kept = [
        place
        for place in places
        if not isinstance(place, Mapping)
        or ("document" not in place and str(place.get("note")) in contents)
    ]
    return {**row, "places": kept}
