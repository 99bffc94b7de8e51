"""Decides which notes and golden questions a run reads: the user's own, the sample, or none.

The sample is a separate source. It is read only into a database that holds nothing else, or when a
person asks for it. Whether the settings match those the database was filled with is decided in
`content_settings`.
"""

from dataclasses import dataclass
from pathlib import Path

from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.messages import Message
from rag_resources.core.text import content_sha256
from rag_resources.core.types import NoteRecord
from rag_resources.database.pool import Connection
from rag_resources.ingestion.sources import iter_source
from rag_resources.settings import SAMPLE, SAMPLE_SOURCE, Settings
from rag_resources.store.content_settings import (
    HeldContent,
    held_content,
    list_sources,
    move_notes,
)

SAMPLE_NOTES = SAMPLE / "notes"
SAMPLE_GOLDEN = SAMPLE / "golden.json"
FORMER_SAMPLE_SOURCE = "notes"
"""The source of the sample's notes before they had one of their own."""


@dataclass(frozen=True, slots=True)
class ContentSource:
    """The notes and questions that a run reads.

    Attributes:
        notes: Folder or file of notes; None reads no notes.
        name: Value of `notes.source`.
        golden: File of golden questions; None reads no questions.
        asked_for: Whether this is the sample because a person asked for it.
        notice: What a person should know about the choice; empty if nothing.
    """

    notes: Path | None
    name: str
    golden: Path | None
    asked_for: bool = False
    notice: str = ""

    @property
    def is_sample(self) -> bool:
        """Whether this is the sample."""
        return self.name == SAMPLE_SOURCE


def choose_source(
    connection: Connection, settings: Settings, *, sample: bool = False
) -> ContentSource:
    """Choose the source that a run reads.

    Args:
        connection: In a transaction, because sample notes under their former source are moved.
        settings: Name the user's source, if any.
        sample: Whether a person asked for the sample.
    """
    own = ContentSource(settings.notes_source, settings.notes_source_name, settings.golden_source)
    if sample or (own.notes and is_sample_folder(own.notes)):
        hold_sample(connection, settings.tenant)
        if not sample:
            return ContentSource(own.notes, SAMPLE_SOURCE, own.golden)
        return ContentSource(SAMPLE_NOTES, SAMPLE_SOURCE, SAMPLE_GOLDEN, asked_for=True)
    if not settings.sample_by_default:
        return own
    held = hold_sample(connection, settings.tenant)
    if not held.others and (held.sample or not held.golden):
        return ContentSource(SAMPLE_NOTES, SAMPLE_SOURCE, SAMPLE_GOLDEN)
    sources = describe_sources(connection)
    return ContentSource(
        None, own.name, None, notice=Message.SOURCE_NOT_NAMED.format(sources=sources)
    )


def source_of_path(path: Path, *, name: str | None, default: str) -> str:
    """Return the source under which the notes of a path are stored.

    Args:
        path: Folder or file that a person named.
        name: The source's name, if the person gave one.
        default: The name otherwise.

    Raises:
        InvalidParameterError: The name is reserved for the sample, but the path is not the sample.
    """
    if name is None and is_sample_folder(path):
        return SAMPLE_SOURCE
    source = name or default
    if source == SAMPLE_SOURCE and not is_sample_folder(path):
        raise InvalidParameterError(
            "--source-name: " + Message.SOURCE_NAME_RESERVED.format(name=SAMPLE_SOURCE)
        )
    return source


def hold_sample(connection: Connection, tenant: str) -> HeldContent:
    """Return the kinds of content in a database, after moving sample notes to the sample's source.

    Sample notes used to be stored under `FORMER_SAMPLE_SOURCE`. A note there is moved if its
    external id and content are those of a sample note; its id, chunks and vectors stay.
    """
    held = _held(connection, tenant)
    if not held.unnamed:
        return held
    contents = [
        (record.external_id, content_sha256(record.content))
        for record in iter_source(SAMPLE_NOTES)
        if isinstance(record, NoteRecord)
    ]
    move_notes(
        connection,
        tenant=tenant,
        old_source=FORMER_SAMPLE_SOURCE,
        new_source=SAMPLE_SOURCE,
        contents=contents,
    )
    return _held(connection, tenant)


def describe_sources(connection: Connection) -> str:
    """Name the sources in the database, with their number of notes."""
    return ", ".join(f"{source} ({notes})" for source, notes in list_sources(connection).items())


def is_sample_folder(path: Path) -> bool:
    """Whether a path is the sample's folder of notes, or inside it."""
    return path.resolve().is_relative_to(SAMPLE_NOTES.resolve())


def _held(connection: Connection, tenant: str) -> HeldContent:
    return held_content(
        connection, tenant=tenant, sample=SAMPLE_SOURCE, unnamed=FORMER_SAMPLE_SOURCE
    )
