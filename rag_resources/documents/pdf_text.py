"""The text of a page with the ranges of its blocks and lines."""

from collections.abc import Iterator, Mapping, Sequence

from rag_resources.core.documents import Block, BlockKind, Removal, Run
from rag_resources.core.hyphenation import LineEnd, Vocabulary, line_end
from rag_resources.core.places import Box
from rag_resources.documents.pdf_blocks import PageBlock
from rag_resources.documents.pdf_cells import Cell
from rag_resources.documents.pdf_geometry import Rectangle
from rag_resources.documents.pdf_words import Word

MAX_UNSEEN_CHARS = 2_000
"""Invisible text up to this length stays in the page's text, marked as removed; more is counted."""

HYPHEN = "hyphen"


class PageText:
    """Writes the text of a page block by block, and notes the range of each block and line."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._parts: list[str] = []
        self._length = 0
        self.blocks: list[Block] = []
        self.removed: list[Removal] = []

    @property
    def text(self) -> str:
        """The text written so far."""
        return "".join(self._parts)

    def add(self, block: PageBlock) -> None:
        """Write a block after a blank line; rows of a table follow each other directly."""
        in_table = self.blocks and self.blocks[-1].kind in _TABLE and block.kind in _TABLE
        if self.blocks:
            self._write("\n" if in_table else "\n\n")
        start = self._length
        runs = tuple(self._cells(block) if block.cells else self._lines(block))
        self.blocks.append(Block(start, self._length, block.kind, block.level, runs))

    def add_unseen(self, unseen: Mapping[str, Sequence[Word]]) -> None:
        """Write invisible text as removed, if it is not too much."""
        texts = {reason: " ".join(word.text for word in words) for reason, words in unseen.items()}
        if sum(map(len, texts.values())) > MAX_UNSEEN_CHARS:
            return
        for reason, text in texts.items():
            if self._length:
                self._write("\n\n")
            start = self._length
            self._write(text)
            self.removed.append(Removal(start, self._length, reason))

    def _write(self, text: str) -> None:
        self._parts.append(text)
        self._length += len(text)

    def _lines(self, block: PageBlock) -> Iterator[Run]:
        """Write lines; hyphens of the typesetter at their ends are removed."""
        texts = [line.text for line in block.lines]
        for line, text, following in zip(block.lines, texts, [*texts[1:], None], strict=True):
            end = LineEnd.SPACE
            if following is not None and block.kind is not BlockKind.CODE:
                end = line_end(text, following, self._vocabulary)
            start = self._length
            self._write(text)
            last = self._length - (end is LineEnd.WITHOUT_HYPHEN)
            yield Run(start, last, _box(line.box))
            if following is not None and end is not LineEnd.AS_IT_IS:
                self._write("\n")
            if end is LineEnd.WITHOUT_HYPHEN:
                self.removed.append(Removal(last, self._length, HYPHEN))

    def _cells(self, block: PageBlock) -> Iterator[Run]:
        """Write a row as `a | b | c`; the bars between two cells belong to the run of the first."""
        opened = self._length
        run: tuple[int, Cell] | None = None
        for number, cell in enumerate(block.cells):
            if number:
                self._write(" |" if self._length > opened else "|")
            if not cell.words:
                continue
            if run:
                yield Run(run[0], self._length, _box(run[1].box))
            if self._length > opened:
                self._write(" ")
            run = (self._length if run else opened, cell)
            self._write(cell.text)
        if run:
            yield Run(run[0], self._length, _box(run[1].box))


_TABLE = (BlockKind.TABLE_HEADER, BlockKind.TABLE_ROW)


def _box(rectangle: Rectangle) -> Box:
    return Box(*(round(side, 1) for side in rectangle))
