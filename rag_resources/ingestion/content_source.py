"""Decides which notes and golden questions a run reads: the user's own, the sample, or none.

The sample is a separate source. It is read only into a database that holds nothing else, or when a
person asks for it. A first reading of a source into a database that holds notes of others needs a
person's consent, too.
"""

from dataclasses import dataclass
from pathlib import Path

from rag_resources.core.errors import InvalidParameterError, MixedSourcesError
from rag_resources.database.pool import Connection, Database
from rag_resources.languages.messages import _
from rag_resources.settings import SAMPLE, SAMPLE_SOURCE, Settings
from rag_resources.store.notes import held_content, list_sources

SAMPLE_NOTES = SAMPLE / "notes"
SAMPLE_GOLDEN = SAMPLE / "golden.json"


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


def choose_source(
    connection: Connection, settings: Settings, *, sample: bool = False
) -> ContentSource:
    """Choose the source that a run reads.

    Args:
        connection: In a transaction.
        settings: Name the user's source, if any.
        sample: Whether a person asked for the sample.
    """
    if sample:
        return ContentSource(SAMPLE_NOTES, SAMPLE_SOURCE, SAMPLE_GOLDEN, asked_for=True)
    notes, golden = settings.notes_source, settings.golden_source
    if notes and is_sample_folder(notes):
        return ContentSource(notes, SAMPLE_SOURCE, golden)
    name = settings.notes_source_name
    if not settings.sample_by_default:
        return ContentSource(notes, name, golden)
    held = held_content(connection, tenant=settings.tenant, source=SAMPLE_SOURCE)
    if not held.others and (held.own or not (held.golden or held.notes)):
        return ContentSource(SAMPLE_NOTES, SAMPLE_SOURCE, SAMPLE_GOLDEN)
    notice = _(
        "NOTES_SOURCE is not set, and the database already has notes or questions ({sources}): no "
        "source is read, not even the sample. Set NOTES_SOURCE if you want yours to be read."
    ).format(sources=_described(connection, settings.tenant))
    return ContentSource(None, name, None, notice=notice)


def source_to_read(
    database: Database, settings: Settings, *, sample: bool = False, mixes: bool = False
) -> ContentSource:
    """Choose the source that a run reads, with a person's consent where sources would mix.

    Args:
        database: Open.
        settings: Name the user's source, if any.
        sample: Whether a person asked for the sample.
        mixes: Whether a person consented to several sources.

    Raises:
        MixedSourcesError: The source would join notes of others.
    """
    with database.transaction() as connection:
        source = choose_source(connection, settings, sample=sample)
        if source.notes and not (source.asked_for or mixes):
            require_unmixed(connection, settings.tenant, source.name)
    return source


def require_unmixed(connection: Connection, tenant: str, source: str) -> None:
    """Check that a source has notes already, or is the only one.

    Raises:
        MixedSourcesError: Its notes would join those of other sources.
    """
    held = held_content(connection, tenant=tenant, source=source)
    if held.others and not held.own:
        raise MixedSourcesError(
            _(
                "This database already has notes of another source: {sources}. Mix them with "
                "those of “{source}”? (y/N; --yes says yes)"
            ).format(sources=_described(connection, tenant), source=source)
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
            "--source-name: "
            + _("“{name}” is the name of the sample; choose another one").format(name=SAMPLE_SOURCE)
        )
    return source


def is_sample_folder(path: Path) -> bool:
    """Whether a path is the sample's folder of notes, or inside it."""
    return path.resolve().is_relative_to(SAMPLE_NOTES.resolve())


def _described(connection: Connection, tenant: str) -> str:
    """Name a tenant's sources, with their number of notes."""
    sources = list_sources(connection, tenant=tenant)
    return ", ".join(f"{source} ({notes})" for source, notes in sources.items())
