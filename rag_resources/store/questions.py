"""Looks up what a question names: files, people, values of metadata, titles; and the glossary."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from rag_resources.core import mentions
from rag_resources.core.question_reading import Titled
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
class NamedPerson:
    """A person whom both a question and notes name.

    Attributes:
        text: The person as the question names them.
        name: The name in the notes.
        note_ids: The notes with that name, at most `MOST_NOTES + 1`.
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


@dataclass(frozen=True, slots=True)
class Abbreviation:
    """An abbreviation and what it stands for."""

    abbreviation: str
    expansion: str


def find_named_files(connection: Connection, phrases: Sequence[str]) -> list[NamedFile]:
    """Return the files that some phrases name, by name; files without notes are left out."""
    if not phrases:
        return []
    rows = queries().named_files(connection, phrases=list(phrases), most=MOST_NOTES)
    return [NamedFile(row.phrase, row.name, tuple(row.note_ids)) for row in rows]


def find_named_people(connection: Connection, names: Sequence[str]) -> list[NamedPerson]:
    """Return the given names that are in the graph, with the notes that have them."""
    if not names:
        return []
    keys = [mentions.fold(name) for name in names]
    rows = queries().named_people(connection, names=list(names), keys=keys, most=MOST_NOTES)
    return [NamedPerson(row.asked, row.name, tuple(row.note_ids)) for row in rows]


def find_named_values(connection: Connection, names: Sequence[str]) -> list[NamedValue]:
    """Return the values in documents' metadata that equal one of the names."""
    if not names:
        return []
    rows = queries().named_values(connection, names=list(names))
    return [NamedValue(row.name, row.key, row.value) for row in rows]


def find_titled(connection: Connection, titled: Titled) -> list[UUID]:
    """Return the notes of a month with a word in title or tags, at most `MOST_NOTES + 1`."""
    rows = queries().titled_in_month(
        connection,
        word=titled.word,
        month=titled.month,
        year=titled.year,
        most=MOST_NOTES + 1,
    )
    return [row.id for row in rows]


def expand_abbreviations(connection: Connection, words: Sequence[str]) -> list[Abbreviation]:
    """Return the given words that the glossary has, with their expansions."""
    rows = queries().expand_abbreviations(connection, words=list(words))
    return [Abbreviation(row.abbreviation, row.expansion) for row in rows]


def list_glossary(connection: Connection) -> list[Abbreviation]:
    """Return the glossary of the tenant, by abbreviation."""
    rows = queries().list_glossary(connection)
    return [Abbreviation(row.abbreviation, row.expansion) for row in rows]


def write_abbreviation(connection: Connection, entry: Abbreviation) -> None:
    """Write the expansion of an abbreviation, in place of an earlier one."""
    queries().write_abbreviation(
        connection, abbreviation=entry.abbreviation, expansion=entry.expansion
    )


def delete_abbreviation(connection: Connection, abbreviation: str) -> bool:
    """Delete an abbreviation; return whether it existed."""
    return bool(list(queries().delete_abbreviation(connection, abbreviation=abbreviation)))
