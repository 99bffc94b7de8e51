"""Cuts the pages of a document into sections, each of which becomes a note.

Readers in `rag_resources.documents` make the pages; cutting a note into chunks belongs in
`core.chunking`. Properties 45 and 46 are about this module.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from rag_resources.core.documents import Block, BlockKind, Page, Run, Section
from rag_resources.core.places import NoteSpan, cut_spans
from rag_resources.core.text import Span

SECTION_CHARS = 10_000
"""Length of the longest note made from a section: about eight chunks of 1,200 characters."""
MIN_QUALITY = 0.3
"""Pages of lower quality stay out of the sections, and so out of search."""
HEADING_CHARS = 200
DEEPEST_LEVEL = 9

_TABLE = (BlockKind.TABLE_HEADER, BlockKind.TABLE_ROW)
_LINES = (_TABLE, (BlockKind.LIST_ITEM,), (BlockKind.CODE,))
_HYPHENS = ("-", "\u2010", "\u00ad")
_VISIBLE = re.compile(r"\S")
_PARAGRAPH_BREAK = re.compile(r"\n[^\S\n]*\n\s*")
# Where a block that is too long is cut, best first: between lines and cells, sentences, words.
_CUTS = tuple(map(re.compile, (r"[\n\t]+", r"(?:(?<=[.!?…])|(?<=[.!?…][\"'”’»)\]]))\s+", r"\s+")))
_SENTENCE_END = re.compile(r"[.!?…:;][\"'”’»)\]]*$")


@dataclass(frozen=True, slots=True)
class _Passage:
    """The text of a block as a note will have it; offsets of spans count from its start.

    Attributes:
        joint: If it is the rest of the passage before it, which was too long: the text that joins
            them. Otherwise None.
    """

    kind: BlockKind
    text: str
    spans: tuple[NoteSpan, ...]
    level: int = 0
    joint: str | None = None


def is_searchable(page: Page, min_quality: float = MIN_QUALITY) -> bool:
    """Whether the quality of a page is high enough, or unknown, so that it is in sections."""
    return page.quality is None or page.quality >= min_quality


def sections_of(
    pages: Iterable[Page], *, max_chars: int = SECTION_CHARS, min_quality: float = MIN_QUALITY
) -> Iterator[Section]:
    """Yield the sections of a document, in order; only one section is in memory at a time.

    A heading opens a section and is its first line. A heading that is followed by another heading
    at once belongs to the section of the other. A sheet of a workbook opens a section, too, and
    its name is the first heading of the path. Blocks are joined by blank lines; rows of a table,
    items of a list and lines of code by line breaks; the cells of a row by tabs. A paragraph that
    continues on the next page is joined. Removed ranges are left out.

    Args:
        pages: In order. A page without blocks is cut into paragraphs at blank lines.
        max_chars: Longest text of a section, at least 100. A longer section is cut between blocks,
            or within a block that is longer than half of it; all parts have the same heading path.
            If a table is cut, the next part repeats its header.
        min_quality: Pages of lower quality are left out; see `is_searchable`.

    Properties: 45, 46.
    """
    draft = _Draft(max_chars)
    searchable = (page for page in pages if is_searchable(page, min_quality))
    for passage in _joined_over_pages(searchable):
        for piece in _cut_to_fit(passage, max_chars // 2):
            yield from draft.add(piece)
    yield from draft.finish()


@dataclass(slots=True)
class _Draft:
    """The section in the making.

    Attributes:
        path: The headings above, by level.
        table_header: The header rows of the table that the last passage belongs to.
    """

    max_chars: int
    index: int = 0
    sheet: str | None = None
    path: list[tuple[int, str]] = field(default_factory=list)
    passages: list[_Passage] = field(default_factory=list)
    table_header: list[_Passage] = field(default_factory=list)
    length: int = 0

    def add(self, passage: _Passage) -> Iterator[Section]:
        """Add a passage; yield the section before it if that is complete."""
        if passage.spans[0].sheet != self.sheet:
            yield from self.finish()
            self.sheet, self.path, self.table_header = passage.spans[0].sheet, [], []
        if passage.kind is BlockKind.HEADING:
            yield from self._open(passage)
        elif self.length + len(self._separator(passage)) + len(passage.text) > self.max_chars:
            yield from self.finish()
            if passage.kind is BlockKind.TABLE_ROW:
                self._repeat_header()
        self._track_table(passage)
        self._append(passage)

    def finish(self) -> Iterator[Section]:
        """Yield the section made so far, if there is one."""
        if not self.passages:
            return
        text = ""
        spans: list[NoteSpan] = []
        for before, passage in zip([None, *self.passages], self.passages, strict=False):
            text += _between(before, passage)
            spans += [
                replace(span, start=span.start + len(text), end=span.end + len(text))
                for span in passage.spans
            ]
            text += passage.text
        path = (*([self.sheet] if self.sheet else []), *(title for _, title in self.path))
        yield Section(self.index, path, text, tuple(spans))
        self.index += 1
        self.passages, self.length = [], 0

    def _open(self, heading: _Passage) -> Iterator[Section]:
        only_headings = all(each.kind is BlockKind.HEADING for each in self.passages)
        if not only_headings or self.length + len(heading.text) + 2 > self.max_chars:
            yield from self.finish()
        if heading.joint is not None:
            return
        level = min(max(heading.level, 1), DEEPEST_LEVEL)
        title = " ".join(heading.text.split())[:HEADING_CHARS]
        self.path = [*(above for above in self.path if above[0] < level), (level, title)]

    def _repeat_header(self) -> None:
        if sum(len(row.text) + 1 for row in self.table_header) <= self.max_chars // 4:
            for row in self.table_header:
                self._append(row)

    def _track_table(self, passage: _Passage) -> None:
        if passage.kind is BlockKind.TABLE_HEADER:
            follows = self.passages and self.passages[-1].kind is BlockKind.TABLE_HEADER
            self.table_header = [*(self.table_header if follows else []), passage]
        elif passage.kind is not BlockKind.TABLE_ROW:
            self.table_header = []

    def _separator(self, passage: _Passage) -> str:
        return _between(self.passages[-1] if self.passages else None, passage)

    def _append(self, passage: _Passage) -> None:
        self.length += len(self._separator(passage)) + len(passage.text)
        self.passages.append(passage)


def _between(before: _Passage | None, passage: _Passage) -> str:
    """The white space between two neighbours of a section."""
    if before is None:
        return ""
    if passage.joint is not None and before.kind is passage.kind:
        return passage.joint
    if before.kind is BlockKind.TABLE_ROW and passage.kind is BlockKind.TABLE_HEADER:
        return "\n\n"  # Another table.
    lines = any(before.kind in kinds and passage.kind in kinds for kinds in _LINES)
    return "\n" if lines else "\n\n"


# --- From blocks to passages ------------------------------------------------------------------


def _joined_over_pages(pages: Iterable[Page]) -> Iterator[_Passage]:
    """The passages of all pages; what continues on the next page is one passage."""
    held: _Passage | None = None
    hyphenated = False
    for page in pages:
        for passage in _passages(page):
            if held and _continues(held, passage, hyphenated=hyphenated):
                held = _joined(held, passage, "" if hyphenated else " ")
            else:
                if held:
                    yield held
                held = passage
            end = held.spans[-1].page_end
            # A hyphen that is in no run was removed, as one at the end of a line.
            hyphenated = page.text[end : end + 1] in _HYPHENS
    if held:
        yield held


def _continues(before: _Passage, after: _Passage, *, hyphenated: bool) -> bool:
    """Whether a paragraph at the top of a page continues the last one of the previous page."""
    last, first = before.spans[-1], after.spans[0]
    return (
        last.page + 1 == first.page
        and last.sheet is None
        and first.sheet is None
        and before.kind in (BlockKind.PARAGRAPH, BlockKind.LIST_ITEM)
        and after.kind is BlockKind.PARAGRAPH
        and (hyphenated or not _SENTENCE_END.search(before.text[-8:]))
        and (after.text[0].islower() or before.text[-1] == ",")
    )


def _joined(before: _Passage, after: _Passage, gap: str) -> _Passage:
    by = len(before.text) + len(gap)
    moved = (replace(each, start=each.start + by, end=each.end + by) for each in after.spans)
    return replace(before, text=before.text + gap + after.text, spans=(*before.spans, *moved))


def _passages(page: Page) -> Iterator[_Passage]:
    removed = _merged(page)
    for block in page.blocks or _paragraphs(page.text):
        text = ""
        spans: list[NoteSpan] = []
        for run in _kept(page, block, removed):
            if spans:
                text += _gap(page.text[spans[-1].page_end : run.start], block.kind)
            end = len(text) + run.end - run.start
            place = (page.number, run.start, run.box, page.sheet, run.cells)
            spans.append(NoteSpan(len(text), end, *place))
            text += page.text[run.start : run.end]
        if spans:
            yield _Passage(block.kind, text, tuple(spans), block.level)


def _paragraphs(text: str) -> Iterator[Block]:
    start = 0
    for match in _PARAGRAPH_BREAK.finditer(text):
        yield Block(start, match.start(), BlockKind.PARAGRAPH)
        start = match.end()
    yield Block(start, len(text), BlockKind.PARAGRAPH)


def _gap(between: str, kind: BlockKind) -> str:
    """Return the white space in a note for the text between two runs of a block."""
    white = re.sub(r"\S", "", between)
    if not white or between.strip() in _HYPHENS:
        return ""
    if kind is BlockKind.CODE:
        return white
    # Runs of a row that are further apart than two words are cells; blank ones can be between.
    return "\t" * max(1, white.count("\t")) if kind in _TABLE and white != " " else " "


def _merged(page: Page) -> list[Span]:
    """The removed ranges of a page, in order and without overlaps."""
    merged: list[Span] = []
    for removal in sorted(page.removed, key=lambda removal: removal.start):
        if merged and removal.start <= merged[-1].end:
            merged[-1] = Span(merged[-1].start, max(merged[-1].end, removal.end))
        else:
            merged.append(Span(removal.start, removal.end))
    return merged


def _kept(page: Page, block: Block, removed: Sequence[Span]) -> Iterator[Run]:
    """The runs of a block without removed ranges and without white space at their ends."""
    first = bisect_right(removed, block.start, key=lambda each: each.end)
    inside = removed[first : bisect_left(removed, block.end, key=lambda each: each.start)]
    for run in block.runs or (Run(block.start, block.end),):
        start = run.start
        for cut in (*inside, Span(run.end, run.end)):
            end = min(cut.start, run.end)
            kept = page.text[start:end]
            if kept.strip():
                start += len(kept) - len(kept.lstrip())
                yield replace(run, start=start, end=start + len(kept.strip()))
            start = max(start, min(cut.end, run.end))


# --- Passages that are too long ---------------------------------------------------------------


def _cut_to_fit(passage: _Passage, limit: int) -> Iterator[_Passage]:
    """The passage in pieces of at most `limit` characters."""
    text, start, joint = passage.text, 0, None
    while len(text) - start > limit:
        end = _cut_position(text, start, limit)
        yield _piece(passage, start, start + len(text[start:end].rstrip()), joint)
        start = next(match.start() for match in _VISIBLE.finditer(text, end))
        joint = " " if start > end else ""
    yield _piece(passage, start, len(text), joint) if start else passage


def _cut_position(text: str, start: int, limit: int) -> int:
    """Where a piece that begins at `start` ends: perhaps before white space."""
    for cut in _CUTS:
        found = [match.start() for match in cut.finditer(text, start + limit // 2, start + limit)]
        if found:
            return found[-1]
    return start + limit


def _piece(passage: _Passage, start: int, end: int, joint: str | None) -> _Passage:
    spans = tuple(
        replace(span, start=span.start - start, end=span.end - start)
        for span in cut_spans(passage.spans, start, end)
    )
    return replace(passage, text=passage.text[start:end], spans=spans, joint=joint)
