"""Documents as readers return them: pages, and the sections that become notes.

The place of a passage belongs in `core.places`; the rows in `store.documents`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any, BinaryIO, Protocol

from pydantic import AfterValidator, BeforeValidator, Field

from rag_resources.core.errors import InvalidParameterError
from rag_resources.core.places import Box, NoteSpan
from rag_resources.core.text import is_blank, storable
from rag_resources.languages.messages import _


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata without values that are no text or number."""
    return {
        storable(key): storable(value) if isinstance(value, str) else value
        for key, value in values.items()
        if isinstance(value, str | int | float)
    }


# What a child process sends is checked against these; see `core.page_json`.
StorableText = Annotated[
    str, BeforeValidator(lambda own: storable(own) if isinstance(own, str) else own)
]
PageNumber = Annotated[int, Field(ge=1, le=10_000_000)]
Counts = Mapping[StorableText, int]
Metadata = Annotated[Mapping[str, Any], AfterValidator(_plain)]


class Route(StrEnum):
    """How the text of a page was obtained."""

    TEXT = "text"
    OCR = "ocr"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Removal:
    """A range of a page's text that cleaning removed from the sections.

    Attributes:
        reason: A code, such as `running_head` or `page_number`.
    """

    start: int
    end: int
    reason: StorableText


class BlockKind(StrEnum):
    """The kind of a block of a page."""

    HEADING = "heading"
    PARAGRAPH = "paragraph"
    LIST_ITEM = "list_item"
    TABLE_HEADER = "table_header"
    TABLE_ROW = "table_row"
    CODE = "code"


@dataclass(frozen=True, slots=True)
class Run:
    """A range of a page's text with its position: a line of a page, or a cell of a sheet.

    Attributes:
        start: Offset into the text of the page.
        end: After the last character.
        box: Position on the page; None in a workbook and in files without pages.
        cells: Such as `B2` or `B2:D2`; None on a page.
    """

    start: int
    end: int
    box: Box | None = None
    cells: StorableText | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """A heading, paragraph, list item, row of a table or piece of code on a page.

    Neighbouring table headers and rows are one table.

    Attributes:
        start: Offset into the text of the page.
        end: After the last character.
        level: Level of a heading or list item, 1 is the outermost; 0 otherwise.
        runs: In order; between two runs of a block there is only white space, or a removed range.
    """

    start: int
    end: int
    kind: BlockKind
    level: int = 0
    runs: tuple[Run, ...] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """A page, or a sheet of a workbook, as a reader returns it.

    Attributes:
        number: From 1.
        text: The whole text, including removed ranges; empty if `route` is `none`.
        sheet: Name of the sheet; None for a page.
        blocks: In reading order, without overlaps; text outside them is removed or white space.
        quality: In [0, 1]; None if it was not assessed.
        notices: Codes of what is to be known about the page, such as `PAGE_NEEDS_OCR`.
        left_out: Number of characters that are invisible on the page, by reason (`hidden`,
            `off_page`, `clipped`). If they are few, they are also in `text`, as removed ranges.
        metadata: The file's own metadata, such as `title` and `date` (as written there); only on
            its first page.
    """

    number: PageNumber
    text: StorableText
    route: Route = Route.TEXT
    sheet: StorableText | None = None
    blocks: tuple[Block, ...] = ()
    removed: tuple[Removal, ...] = ()
    quality: Annotated[float, Field(ge=0, le=1)] | None = None
    has_images: bool = False
    has_tables: bool = False
    has_multiple_columns: bool = False
    notices: tuple[StorableText, ...] = ()
    left_out: Counts = field(default_factory=dict)
    metadata: Metadata = field(default_factory=dict)

    @property
    def word_count(self) -> int:
        """Number of words, separated by white space."""
        return len(self.text.split())


@dataclass(frozen=True, slots=True)
class PageFailure:
    """A page that could not be read; the other pages are still read.

    Attributes:
        reason: What to tell the user.
    """

    number: PageNumber
    reason: str


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a document that becomes a note.

    Attributes:
        index: From 0, in the order of the document.
        heading_path: Its headings, outermost first, its own last.
        text: The note's content.
        spans: Where its characters are on the pages, in order; between two spans there is only
            white space.
    """

    index: int
    heading_path: tuple[str, ...]
    text: str
    spans: tuple[NoteSpan, ...]


class DocumentReader(Protocol):
    """Reads the pages of a kind of file.

    Attributes:
        name: The name for display.
        reader_hash: Hash of its code and settings; pages read with another hash are stale.
    """

    name: str
    reader_hash: str

    def read(self, file: BinaryIO) -> Iterator[Page | PageFailure]:
        """Yield every page in order, read or failed.

        Raises:
            InvalidSourceError: The file cannot be read at all.
        """
        ...


def check_section(section: Section, pages: Mapping[int, Page]) -> None:
    """Check that the spans of a section locate all of its text. Properties 45, 46.

    Raises:
        InvalidParameterError: Spans overlap or are out of order, lie outside the section or the
            page, have other characters than the page, or leave out characters other than white
            space.
    """
    last = 0
    for span in section.spans:
        page = pages.get(span.page)
        if (
            page is None
            or not last <= span.start < span.end <= len(section.text)
            or not is_blank(section.text[last : span.start])
            or page.text[span.page_start : span.page_end] != section.text[span.start : span.end]
        ):
            raise _misplaced(section, span.start, span.end)
        last = span.end
    if not is_blank(section.text[last:]):
        raise _misplaced(section, last, len(section.text))


def _misplaced(section: Section, start: int, end: int) -> InvalidParameterError:
    return InvalidParameterError(
        _(
            "The section {section} does not say where its characters from {start} to {end} are: "
            "they are not those of its page."
        ).format(section=section.index, start=start, end=end)
    )
