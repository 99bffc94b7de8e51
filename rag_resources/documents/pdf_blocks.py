"""Blocks of a page: headings, paragraphs, list items, code and rows of tables, from its columns.

The page's text is written in `documents.pdf_text`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from rag_resources.core.documents import BlockKind
from rag_resources.documents.pdf_cells import Cell, Table
from rag_resources.documents.pdf_geometry import Rectangle
from rag_resources.documents.pdf_layout import Column
from rag_resources.documents.pdf_text_lines import (
    BULLETS,
    TextLine,
    heading_level,
    is_heading,
    text_line,
)
from rag_resources.documents.pdf_words import Word

_BULLET = re.compile(rf"^[{re.escape(BULLETS)}]$")
_ENUMERATOR = re.compile(
    r"^(?:\(?\d{1,3}[.)]|\(?[a-zA-Z][.)]|\(?[ivxIVX]{1,5}[.)]|\d{1,2}(?:\.\d{1,2})+\.?|\d{1,2}[.)]?[-–º°ª])$"
)
_SENTENCE_END = re.compile(r"[.:;!?…]['\"»”)\]]*$")

_MAX_LIST_LEVEL = 6


@dataclass(slots=True)
class PageBlock:
    """A block with its lines, or a row of a table with its cells."""

    kind: BlockKind
    lines: list[TextLine] = field(default_factory=list)
    cells: list[Cell] = field(default_factory=list)
    level: int = 0
    text_left: float = 0.0

    @property
    def text(self) -> str:
        """The lines, with spaces."""
        return " ".join(line.text for line in self.lines)

    @property
    def words(self) -> list[Word]:
        """The words of its lines or cells."""
        lines = [word for line in self.lines for word in line.words]
        return lines + [word for cell in self.cells for word in cell.words]


def blocks_of(
    columns: Sequence[Column], size: float, areas: Sequence[Rectangle] = ()
) -> list[PageBlock]:
    """Return the blocks of a page in reading order.

    Args:
        columns: As laid out.
        size: Size of the page's text.
        areas: The areas drawn on the page; small squares and discs mark the items of lists.
    """
    marks = [area for area in areas if _is_mark(area, size)]
    blocks: list[PageBlock] = []
    for column in columns:
        found = _blocks_of_column(column, size, marks)
        if blocks and found and _goes_on(blocks[-1], found[0]):
            blocks[-1].lines += found.pop(0).lines
        blocks += found
    return blocks


def _goes_on(block: PageBlock, following: PageBlock) -> bool:
    """Whether a paragraph continues at the top of the next column."""
    if block.kind is BlockKind.LIST_ITEM and following.kind is not BlockKind.PARAGRAPH:
        return False
    if following.kind is not BlockKind.PARAGRAPH or block.kind not in (
        BlockKind.PARAGRAPH,
        BlockKind.LIST_ITEM,
    ):
        return False
    last, first = block.lines[-1], following.lines[0]
    return (
        abs(last.size - first.size) < 0.5
        and not _SENTENCE_END.search(last.text)
        and first.text[0].islower()
    )


def _is_mark(area: Rectangle, size: float) -> bool:
    """Whether an area has the size of a bullet."""
    width, height = area[2] - area[0], area[3] - area[1]
    return 0.1 * size < min(width, height) and max(width, height) < 0.7 * size


def _blocks_of_column(column: Column, size: float, marks: Sequence[Rectangle]) -> list[PageBlock]:
    lines = [text_line(item, marks) for item in column.items if not isinstance(item, Table)]
    pitch = _pitch(lines)
    right = _right_edge(lines)
    blocks: list[PageBlock] = []
    number = 0
    last: TextLine | None = None
    for item in column.items:
        if isinstance(item, Table):
            blocks += _rows(item)
            last = None
            continue
        line = lines[number]
        number += 1
        following = lines[number] if number < len(lines) else None
        if last and not _starts_block(blocks[-1], last, line, following, pitch, right):
            blocks[-1].lines.append(line)
        else:
            blocks.append(_block(line, size))
        last = line
    for block in blocks:
        _classify(block, size)
    _set_list_levels(blocks)
    return blocks


def _pitch(lines: Sequence[TextLine]) -> float:
    """Return the usual distance from line to line, as a multiple of the size."""
    pitches = [
        (b.bottom - a.bottom) / b.size
        for a, b in pairwise(lines)
        if abs(a.size - b.size) < 0.5 and 0.8 * b.size < b.bottom - a.bottom < 2.2 * b.size
    ]
    if not pitches:
        return 1.2
    # Within paragraphs lines are closer than between them.
    return sorted(pitches)[len(pitches) // 3]


def _right_edge(lines: Sequence[TextLine]) -> float:
    """Return where full lines end; single longer ones do not count."""
    ends = sorted(line.right for line in lines)
    return ends[int(0.9 * (len(ends) - 1))] if ends else 0.0


def _starts_block(
    block: PageBlock,
    last: TextLine,
    line: TextLine,
    following: TextLine | None,
    pitch: float,
    right: float,
) -> bool:
    """Whether a line begins a block of its own."""
    size = max(last.size, line.size)
    distance = line.bottom - last.bottom
    if block.kind is BlockKind.CODE and line.mono:
        return distance > 2.5 * size
    if line.mono != last.mono and (line.mono or len(block.lines) > 1 or last.mono):
        return distance > (pitch + 0.25) * size or _is_marker(line) or last.mono
    if distance > (pitch + 0.25) * size + 0.5 or distance < -size:
        return True
    if abs(last.size - line.size) > 0.1 * size or _is_marker(line):
        return True
    if line.bold != last.bold and (last.bold or len(line.words) > 2):
        return True
    if block.kind is BlockKind.LIST_ITEM and _leaves_list(block, line):
        return _room_left(last, line, right) > 0 or bool(_SENTENCE_END.search(last.text))
    return _is_indented(block, last, line, following) or _broke_early(last, line, right)


def _is_marker(line: TextLine) -> bool:
    """Whether a line begins with a bullet or the number of a list."""
    first = line.words[0]
    if line.marked:
        return True
    if len(line.words) < 2:
        return False
    if _BULLET.match(first.text):
        return True
    gap = line.words[1].left - first.right
    return bool(_ENUMERATOR.match(first.text)) and (
        gap > 0.5 * line.size or not first.text[0].isalpha() or first.text.endswith(")")
    )


def _is_indented(
    block: PageBlock, last: TextLine, line: TextLine, following: TextLine | None
) -> bool:
    """Whether a line is the indented first line of a paragraph."""
    if block.kind is BlockKind.LIST_ITEM:
        return False
    start = block.lines[0].left if len(block.lines) > 1 else last.left
    indent = line.left - min(last.left, start)
    if not 0.7 * line.size < indent < 6 * line.size:
        return False
    returns = following is None or following.left < line.left - 0.5 * line.size
    return returns and abs(last.left - min(last.left, start)) < 0.5 * line.size


def _leaves_list(block: PageBlock, line: TextLine) -> bool:
    """Whether a line begins to the left of the text of a list item."""
    return line.left < block.text_left - 1.2 * line.size and line.left <= block.lines[0].left


def _room_left(last: TextLine, line: TextLine, right: float) -> float:
    """Return the room at the end of a line if the first word of the next one stood there."""
    first = line.words[0]
    return right - last.right - (first.right - first.left) - 0.3 * line.size


def _broke_early(last: TextLine, line: TextLine, right: float) -> bool:
    """Whether the line above ended although the first word of this one had room on it."""
    if line.text[0].islower() or last.text.endswith(("-", "\xad", ",")):
        return False
    room = _room_left(last, line, right)
    if _SENTENCE_END.search(last.text):
        return room > 0.5 * line.size
    return room > max(6 * line.size, 0.3 * (right - last.left))


def _block(line: TextLine, size: float) -> PageBlock:
    if line.mono and line.size < 1.3 * size:
        return PageBlock(BlockKind.CODE, [line])
    if _is_marker(line):
        text_left = line.left if line.marked else line.words[1].left
        return PageBlock(BlockKind.LIST_ITEM, [line], text_left=text_left)
    return PageBlock(BlockKind.PARAGRAPH, [line])


def _classify(block: PageBlock, size: float) -> None:
    """Recognise headings among paragraphs and list items."""
    if block.kind not in (BlockKind.PARAGRAPH, BlockKind.LIST_ITEM):
        return
    if is_heading(block.lines, size):
        block.kind = BlockKind.HEADING
        block.level = heading_level(block.lines, size)


def _set_list_levels(blocks: Sequence[PageBlock]) -> None:
    """Give list items a level by how far they are indented among their neighbours."""
    lefts: list[float] = []
    for block in blocks:
        if block.kind is BlockKind.HEADING:
            lefts = []
        if block.kind is not BlockKind.LIST_ITEM:
            continue
        line = block.lines[0]
        lefts = [left for left in lefts if left < line.left - 0.5 * line.size]
        lefts.append(line.left)
        block.level = min(len(lefts), _MAX_LIST_LEVEL)


def _rows(table: Table) -> list[PageBlock]:
    return [
        PageBlock(
            BlockKind.TABLE_HEADER if number < table.header_rows else BlockKind.TABLE_ROW,
            cells=row,
        )
        for number, row in enumerate(table.rows)
    ]
