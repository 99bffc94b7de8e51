"""Looks up what a question names: files and values of metadata."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from rag_resources.database.pool import Connection
from rag_resources.database.queries import queries

MOST_NOTES = 1_000
"""Most notes that a filter can name."""


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A file that a question names.

    Attributes:
        text: The file as the question names it.
        name: Its name.
        note_ids: Its notes, at most `MOST_NOTES + 1`.
    """

    text: str
    name: str
    note_ids: tuple[UUID, ...]


@dataclass(frozen=True, slots=True)
class NamedValue:
    """A value of a document's metadata that a question names."""

    text: str
    key: str
    value: str


def find_named_files(connection: Connection, phrases: Sequence[str]) -> list[NamedFile]:
    """Return the files that some phrases name, by name; files without notes are left out."""
    if not phrases:
        return []
    rows = queries().named_files(connection, phrases=list(phrases), most=MOST_NOTES)
    return [NamedFile(row.phrase, row.name, tuple(row.note_ids)) for row in rows]


def find_named_values(connection: Connection, names: Sequence[str]) -> list[NamedValue]:
    """Return the values in documents' metadata that equal one of the names."""
    if not names:
        return []
    rows = queries().named_values(connection, names=list(names))
    return [NamedValue(row.name, row.key, row.value) for row in rows]
