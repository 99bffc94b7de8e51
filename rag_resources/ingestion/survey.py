"""Surveys a folder of notes before anything is stored: what would be read, and what not.

It opens no database. `cli.init` makes the first settings and draft questions from the survey.
"""

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC
from pathlib import Path, PurePath

from rag_resources.core.golden_drafts import NoteOpening
from rag_resources.core.likely import likely_language
from rag_resources.core.types import NoteRecord, RejectedRecord
from rag_resources.documents.folder import ignored_by
from rag_resources.ingestion.ingest import NAMED_REJECTIONS, Undated, undated_of
from rag_resources.ingestion.markdown import opens_front_matter
from rag_resources.ingestion.sources import (
    READERS_AND_ARCHIVES,
    is_left_out,
    is_template,
    iter_source,
)

OPENING_CHARS = 1_000
"""Characters of each note that are kept: for its language and its draft."""


@dataclass
class Survey:
    """The contents of a folder or file.

    Attributes:
        read: Number of files by suffix that notes are read from.
        other: Number of the other files, by suffix (in lower case; empty: none).
        notes: Number of notes that would be stored.
        rejected: The first `NAMED_REJECTIONS` records that would be rejected, with the reasons.
        rejected_count: Number of all of them.
        undated: The notes without a date.
        dates: Notes by where their date is from (`DateSource`).
        left_out: Notes by what of their text is left out.
        fields: How many notes have each further field, which becomes metadata.
        months: Notes by `YYYY-MM` (UTC).
        languages: Notes by language, where it can be told.
        unclosed: The first `NAMED_REJECTIONS` notes with front matter that is not closed.
        openings: The opening of each note, for draft questions.
    """

    read: Counter[str] = field(default_factory=Counter)
    other: Counter[str] = field(default_factory=Counter)
    notes: int = 0
    rejected: list[RejectedRecord] = field(default_factory=list)
    rejected_count: int = 0
    undated: list[Undated] = field(default_factory=list)
    dates: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    fields: Counter[str] = field(default_factory=Counter)
    months: Counter[str] = field(default_factory=Counter)
    languages: Counter[str] = field(default_factory=Counter)
    unclosed: list[str] = field(default_factory=list)
    openings: list[NoteOpening] = field(default_factory=list)


def survey(path: Path) -> Survey:
    """Read a folder or file of notes as an ingestion would, and store nothing.

    Raises:
        InvalidSourceError: It does not exist, cannot be read, or is a file of an unknown format.
    """
    records = iter_source(path)
    found = Survey()
    for name in _file_names(path, found):
        suffix = PurePath(name).suffix.lower()
        (found.read if suffix in READERS_AND_ARCHIVES else found.other)[suffix] += 1
    for record in records:
        if isinstance(record, RejectedRecord):
            found.rejected_count += 1
            if len(found.rejected) < NAMED_REJECTIONS:
                found.rejected.append(record)
        else:
            _add(found, record)
    return found


def _add(found: Survey, record: NoteRecord) -> None:
    found.notes += 1
    created_at = record.created_at.astimezone(UTC)
    found.months[f"{created_at:%Y-%m}"] += 1
    found.dates[record.date_source] += 1
    found.left_out.update(kind.removesuffix("Chars") for kind in record.metadata.get("leftOut", ()))
    if undated := undated_of(record):
        found.undated.append(undated)
    found.fields.update(name for name in record.metadata if name not in _OWN_FIELDS)
    opening = record.content[:OPENING_CHARS]
    if opens_front_matter(opening) and len(found.unclosed) < NAMED_REJECTIONS:
        found.unclosed.append(record.external_id)
    if language := likely_language(opening):
        found.languages[language] += 1
    found.openings.append(NoteOpening(record.external_id, record.title, opening, created_at))


_TRASH = ".trash"
_OWN_FIELDS = {"expiresAt", "leftOut"}
"""Metadata that the product itself adds."""


def _file_names(path: Path, found: Survey) -> Iterator[str]:
    """Yield the names of the files at a path, without hidden ones; count what is left out."""
    if not path.is_dir():
        yield path.name
        return
    is_ignored = ignored_by(path)
    for folder, folders, names in os.walk(path):
        inner = Path(folder).relative_to(path)
        for name in (own for own in folders if own == _TRASH or is_template(own)):
            reason = "trash" if name == _TRASH else "template"
            inside = os.walk(Path(folder, name))
            found.left_out[reason] += sum(len(files) for _, _, files in inside)
        folders[:] = [
            name for name in folders if not (is_left_out(name) or is_ignored(f"{inner / name}/"))
        ]
        yield from (
            name for name in names if not (is_left_out(name) or is_ignored(str(inner / name)))
        )
