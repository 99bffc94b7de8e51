"""Verifies the passages of documents: reads them again in the file itself. Property 45."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, BinaryIO
from uuid import UUID

from rag_resources.core.documents import Page, Route
from rag_resources.core.errors import ExtractionError, InvalidParameterError
from rag_resources.core.extraction_config import ExtractionConfig
from rag_resources.core.places import Box, NoteSpan, cut_spans, read_again
from rag_resources.core.types import TimeWindow
from rag_resources.database.pool import Database
from rag_resources.documents.extraction import extract, picture_of, read_boxes
from rag_resources.documents.media_types import PDF
from rag_resources.documents.pdf_places import is_same_text
from rag_resources.files import Files
from rag_resources.languages.messages import Text, _
from rag_resources.store.document_list import list_document_ids
from rag_resources.store.documents import fetch_document, fetch_spans, list_pages
from rag_resources.store.extractions import list_passages

LOWEST_VERIFIED = 0.998
NAMED_PASSAGES = 100


@dataclass(frozen=True, slots=True)
class UnverifiedPassage:
    """A passage whose place in the file does not have its text.

    Attributes:
        found: The text that is there; empty if there is none.
    """

    document: str
    chunk_id: UUID
    content: str
    found: str


@dataclass
class Verified:
    """How many passages were read again in their file, and which have another text there.

    Attributes:
        unverified: The first ones.
    """

    passages: int = 0
    verified: int = 0
    unverified: list[UnverifiedPassage] = field(default_factory=list)

    @property
    def share(self) -> float:
        """Share of the passages that were found again; 1 if there are none."""
        return self.verified / self.passages if self.passages else 1.0

    @property
    def in_words(self) -> Text:
        """How many were found at their place."""
        return _("{verified} of {passages} passages are at their place in the file.").format(
            verified=self.verified, passages=self.passages
        )

    @property
    def is_enough(self) -> bool:
        """Whether enough passages were found at their place."""
        return self.share >= LOWEST_VERIFIED

    def add(self, other: "Verified") -> None:
        """Add another result."""
        self.passages += other.passages
        self.verified += other.verified
        self.unverified += other.unverified[: NAMED_PASSAGES - len(self.unverified)]


def verify_window(
    database: Database,
    files: Files,
    window: TimeWindow,
    config: ExtractionConfig,
    *,
    tenant: str,
) -> Verified:
    """Verify the documents that arrived in a window."""
    with database.transaction() as connection:
        ids = list_document_ids(connection, window, tenant=tenant)
    total = Verified()
    for document_id in ids:
        total.add(verify_document(database, files, document_id, config))
    return total


def verify_document(
    database: Database, files: Files, document_id: UUID, config: ExtractionConfig
) -> Verified:
    """Read the place of each passage in the file again, and compare the text there.

    On a PDF page every box of the passage is read separately, and must have the stored text of its
    line. In other files the pages are read anew, and must have the passage at its characters. A
    passage whose page can no longer be read is not verified.
    """
    with database.snapshot() as connection:
        document = fetch_document(connection, document_id)
        passages = list_passages(connection, document_id)
        spans = fetch_spans(connection, [(p.note_id, p.start_char, p.end_char) for p in passages])
        pages = [each.page for each in list_pages(connection, document_id)]
    if document is None or not passages:
        return Verified()
    has_boxes = {page.number for page in pages if page.route is Route.TEXT}
    has_boxes = has_boxes if document.media_type == PDF else set()
    texts = {page.number: page.text for page in pages if page.number in has_boxes}
    lines = [span for own in spans for span in own if span.page in has_boxes]
    with _opened(files, document.file_url) as file:
        boxes = _boxes(file, texts, lines, config) if lines else {}
        if any(span.page not in has_boxes for own in spans for span in own):
            texts = _texts(file, document.media_type, config) | texts
    result = Verified(passages=len(passages))
    for passage, own in zip(passages, spans, strict=True):
        found = _text_at(passage, own, texts)
        wrong = [text for span in own if (text := boxes.get(_line(span))) is not None]
        if found == " ".join(passage.content.split()) and own and not wrong:
            result.verified += 1
        elif len(result.unverified) < NAMED_PASSAGES:
            result.unverified.append(
                UnverifiedPassage(
                    document.title, passage.id, passage.content, (wrong and wrong[0]) or found
                )
            )
    return result


_Line = tuple[int, Box]


def _line(span: NoteSpan) -> _Line:
    return span.page, span.box or Box(0, 0, 0, 0)


def _boxes(
    file: BinaryIO, stored: Mapping[int, str], spans: Sequence[NoteSpan], config: ExtractionConfig
) -> dict[_Line, str | None]:
    """Read each box once; return its text if it differs from the stored one, else None."""
    ranges: dict[_Line, tuple[int, int]] = {}
    for span in spans:
        first, last = ranges.get(_line(span), (span.page_start, span.page_end))
        ranges[_line(span)] = min(first, span.page_start), max(last, span.page_end)
    lines = sorted(ranges, key=lambda line: (line[0], line[1].top, line[1].left))
    try:
        read = read_boxes(file, lines, config)
    except ExtractionError:
        read = []
    found: dict[_Line, str | None] = dict.fromkeys(lines, "")
    for line, text in zip(lines, read, strict=False):
        first, last = ranges[line]
        same = text is not None and is_same_text(stored.get(line[0], "")[first:last], text)
        found[line] = None if same else text or ""
    return found


def _text_at(passage: Any, spans: Sequence[NoteSpan], texts: Mapping[int, str]) -> str:
    cut = cut_spans(spans, passage.start_char, passage.end_char)
    if any(span.page not in texts for span in cut):
        return ""
    return read_again(texts, cut)


def _texts(file: BinaryIO, media_type: str, config: ExtractionConfig) -> dict[int, str]:
    """Return the text of every page that can be read now."""
    texts: dict[int, str] = {}
    with suppress(ExtractionError):
        for item in extract(file, media_type, config):
            if isinstance(item, Page):
                texts[item.number] = item.text
    return texts


def picture_of_page(
    database: Database,
    files: Files,
    document_id: UUID,
    page: int,
    config: ExtractionConfig,
    *,
    boxes: Sequence[Box] | None = None,
) -> bytes:
    """Return a page of a PDF document as PNG, with boxes; None marks all of its lines.

    Raises:
        InvalidParameterError: The document is no PDF, or its copy is gone.
        ExtractionError: The page cannot be read.
    """
    with database.snapshot() as connection:
        document = fetch_document(connection, document_id)
        pages = {each.page.number: each.page for each in list_pages(connection, document_id)}
    if document is None or document.media_type != PDF:
        raise InvalidParameterError(_("There are pictures of the pages of PDF files only."))
    if boxes is None:
        read = pages.get(page)
        runs = [run for block in read.blocks for run in block.runs] if read else []
        boxes = [run.box for run in runs if run.box]
    with _opened(files, document.file_url) as file:
        return picture_of(file, page, boxes, config)


@contextmanager
def _opened(files: Files, file_url: str) -> Iterator[BinaryIO]:
    """Open our copy of a file; an empty one if it is gone."""
    with tempfile.TemporaryFile() as file:
        with suppress(InvalidParameterError):
            file.write(files.read(file_url))
        file.flush()
        yield file
