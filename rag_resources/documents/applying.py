"""Replaces the pages of documents by new readings, and writes their sections as notes.

Reading is in `documents.extracting`. How pages become sections is in `core.sections`.
"""

import hashlib
import re
import unicodedata
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from rag_resources.core.documents import Page, Section
from rag_resources.core.sections import sections_of
from rag_resources.core.text import content_sha256, is_blank
from rag_resources.core.timestamps import EXPIRES_AT_FIELDS
from rag_resources.core.types import NoteRecord, TimeWindow
from rag_resources.core.wording import fold
from rag_resources.database.pool import Connection, Database
from rag_resources.database.queries import queries
from rag_resources.store.document_files import bury_document, find_deleted
from rag_resources.store.documents import (
    StoredPage,
    list_pages,
    lock_document,
    write_failure,
    write_pages,
    write_sections,
)
from rag_resources.store.extractions import (
    close_extraction,
    latest_extraction,
    list_extracted,
)
from rag_resources.store.notes import Upsert, note_id, upsert_notes
from rag_resources.store.tombstones import find_tombstones

TITLE_JOINT = " › "
_MARKS = re.compile(r"^#{1,6}\s+")
MAX_TITLE_CHARS = 300
ACCEPTED, DROPPED = "accepted", "dropped"
_SLUG_CHARS = 60
_BREAK = re.compile(r"[^a-z0-9]+")


@dataclass
class ApplyReport:
    """The outcome of applying the readings of a window.

    Attributes:
        merged: Titles of documents that had the text of another one, and are now its addresses.
        notes: Number of notes by the effect on them.
    """

    documents: int = 0
    merged: list[str] = field(default_factory=list)
    notes: dict[Upsert, int] = field(default_factory=lambda: dict.fromkeys(Upsert, 0))
    deleted_notes: int = 0

    def add(self, other: "ApplyReport") -> None:
        """Add another report."""
        self.documents += other.documents
        self.merged += other.merged
        self.notes = {kind: count + other.notes[kind] for kind, count in self.notes.items()}
        self.deleted_notes += other.deleted_notes


def apply_window(database: Database, window: TimeWindow, *, tenant: str) -> ApplyReport:
    """Let the readings of a window replace the pages of their documents.

    Each document takes one transaction: pages, sections and notes change together or not at all.
    """
    report = ApplyReport()
    with database.transaction() as connection:
        waiting = queries().documents_to_apply(
            connection, tenant=tenant, first=window.start, after_last=window.end
        )
        ids = [row.id for row in waiting]
    for document_id in ids:
        with database.transaction() as connection:
            apply_reading(connection, document_id, tenant, report)
    return report


def apply_reading(
    connection: Connection, document_id: UUID, tenant: str, report: ApplyReport
) -> None:
    """Let the reading that waits replace the pages of a document, in the caller's transaction."""
    document = lock_document(connection, document_id, tenant=tenant)
    extraction = latest_extraction(connection, document_id, "read") if document else None
    if document is None or extraction is None:
        return
    items = list_extracted(connection, extraction.extraction_id)
    pages = [item for item in items if isinstance(item, Page)]
    sha256 = text_sha256(pages)
    if sha256 and _goes_elsewhere(connection, document, sha256, report):
        return
    write_pages(
        connection,
        document_id,
        items,
        reader=extraction.reader,
        reader_hash=extraction.reader_hash,
    )
    if extraction.failure:
        write_failure(connection, document_id, extraction.failure)
    write_notes(connection, document, report)
    close_extraction(connection, extraction.extraction_id, "applied")
    queries().finish_document(
        connection,
        document_id=document_id,
        page_count=max((item.number for item in items), default=0),
        text_sha256=sha256,
        status="chunking",
    )
    report.documents += 1


def write_notes(connection: Connection, document: Any, report: ApplyReport) -> None:
    """Write the sections of a document's stored pages as notes, in the caller's transaction.

    A section whose note was deleted by a person is left out. A note whose section is gone is
    deleted.

    Args:
        connection: Holds the document's lock.
        document: Its row.
        report: Counts the notes.
    """
    pages = list_pages(connection, document.id)
    sections = list(sections_of(_searchable(pages)))
    stored = list(queries().list_section_notes(connection, document_id=document.id))
    address = queries().first_address(connection, document_id=document.id)
    names = name_sections(
        address,
        sections,
        [
            StoredSection(row.external_id, tuple(row.heading_path), bytes(row.content_sha256))
            for row in stored
        ],
    )
    own = pages[0].page.metadata if pages else {}
    records = [
        _record(document, own, address, section, name)
        for section, name in zip(sections, names, strict=True)
    ]
    key = {"tenant": document.tenant_id, "source": document.source}
    tombstones = find_tombstones(connection, records, **key)
    wanted = [
        (record, section)
        for record, section, tombstone in zip(records, sections, tombstones, strict=True)
        if tombstone is None
    ]
    kept = {note_id(**key, external_id=record.external_id): section for record, section in wanted}
    queries().unlink_sections(connection, document_id=document.id)
    for outcome in upsert_notes(connection, [record for record, _ in wanted], **key):
        report.notes[outcome] += 1
    gone = [row.id for row in stored if row.id not in kept]
    queries().delete_notes(connection, note_ids=gone)
    report.deleted_notes += len(gone)
    write_sections(connection, document.id, kept, {each.page.number: each.page for each in pages})


def text_sha256(pages: Sequence[Page]) -> bytes | None:
    """Return the hash of the text of a document, white space folded; None if it has no text."""
    text = " ".join(word for page in pages for word in page.text.split())
    return None if is_blank(text) else hashlib.sha256(text.encode()).digest()


def _goes_elsewhere(
    connection: Connection, document: Any, sha256: bytes, report: ApplyReport
) -> bool:
    """Whether another document has this text, or a person deleted it; then this one is gone."""
    key = {"tenant": document.tenant_id, "text_sha256": sha256}
    other = queries().find_document_of_text(connection, document_id=document.id, **key)
    if other is not None:
        queries().move_addresses(connection, document_id=document.id, to_document_id=other)
        queries().delete_document(connection, document_id=document.id)
        report.merged.append(document.title)
        return True
    deleted = find_deleted(connection, **key)
    if deleted is None:
        return False
    # Its file is remembered, too: the next arrival leaves it out unread and removes our copy.
    bury_document(connection, document.id, [], reason=deleted.reason, text_sha256=sha256)
    return True


def _searchable(pages: Sequence[StoredPage]) -> list[Page]:
    """Return the pages that become notes; a person's decision overrides the quality."""
    return [
        replace(stored.page, quality=None) if stored.review == ACCEPTED else stored.page
        for stored in pages
        if stored.review != DROPPED
    ]


def _record(
    document: Any, own: Mapping[str, Any], address: str, section: Section, name: str
) -> NoteRecord:
    """Return the note of a section; the source's metadata override the file's."""
    stripped = (_MARKS.sub("", own) for own in section.heading_path)
    headings = [own for own in stripped if fold(own) != fold(document.title)]
    return NoteRecord(
        external_id=name,
        title=TITLE_JOINT.join([document.title, *headings])[:MAX_TITLE_CHARS],
        content=section.text,
        created_at=document.arrived_at,
        metadata={
            # Only its owner may set an expiry, not the file itself.
            **{key: value for key, value in own.items() if key not in EXPIRES_AT_FIELDS},
            **document.metadata,
            "file": address,
            "section": section.heading_path[-1] if section.heading_path else "",
        },
        location=address,
    )


@dataclass(frozen=True, slots=True)
class StoredSection:
    """A section as it is stored: external id of its note, headings, hash of its content."""

    external_id: str
    heading_path: tuple[str, ...]
    content_sha256: bytes


def name_sections(
    address: str, sections: Sequence[Section], stored: Sequence[StoredSection]
) -> list[str]:
    """Return the external id of each section's note.

    A section with the same text as a stored one is the same note. Any other section under the same
    headings as a stored one is that note, edited. The rest are new: `address#heading-2` for the
    second section under that heading.

    Args:
        address: The document's address; part of new ids.
        sections: In the order of the document.
        stored: In the order of the document; each is used for one section at most.
    """
    by_text: dict[object, list[str]] = defaultdict(list)
    by_headings: dict[object, list[str]] = defaultdict(list)
    for each in stored:
        by_text[each.heading_path, each.content_sha256].append(each.external_id)
    names: list[str | None] = [None] * len(sections)
    for place, section in enumerate(sections):
        if same := by_text[section.heading_path, content_sha256(section.text)]:
            names[place] = same.pop(0)
    used = {name for name in names if name}
    for each in stored:
        if each.external_id not in used:
            by_headings[each.heading_path].append(each.external_id)
    taken = {each.external_id for each in stored}
    named = []
    for section, name in zip(sections, names, strict=True):
        edited = by_headings[section.heading_path]
        named.append(name or (edited.pop(0) if edited else _new(address, section, taken)))
    return named


def _new(address: str, section: Section, taken: set[str]) -> str:
    base = f"{address}#{_slug(section.heading_path)}"
    name, number = base, 1
    while name in taken:
        number += 1
        name = f"{base}-{number}"
    taken.add(name)
    return name


def _slug(headings: Sequence[str]) -> str:
    """Return the last heading as a slug of safe letters; `texto` if there is no heading."""
    plain = unicodedata.normalize("NFKD", headings[-1] if headings else "").casefold()
    letters = "".join(each for each in plain if not unicodedata.combining(each))
    return _BREAK.sub("-", letters)[:_SLUG_CHARS].strip("-") or "texto"
