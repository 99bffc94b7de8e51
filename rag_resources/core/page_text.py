"""Builds the text of a page with its blocks, for readers of files that have no boxes.

Pages and blocks are described in `core.documents`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_resources.core.documents import Block, BlockKind, Page, Removal, Run


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a row: its text on one line, and its name such as `B2`."""

    text: str
    name: str | None = None


class PageText:
    """Takes the blocks of a page one after another, and returns the page at the end."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._length = 0
        self._blocks: list[Block] = []
        self._removed: list[Removal] = []
        self.has_tables = False
        self.has_images = False

    def add(self, kind: BlockKind, text: str, level: int = 0) -> None:
        """Add a block; a blank one is left out."""
        start, end = self._append(storable(text).strip(), "\n\n")
        if end > start:
            self._blocks.append(Block(start, end, kind, level))

    def add_row(self, kind: BlockKind, cells: Sequence[Cell]) -> None:
        """Add a row of a table: its cells, separated by tabs, without blank ones at its end."""
        written = [(" ".join(storable(cell.text).split()), cell.name) for cell in cells]
        start, end = self._append("\t".join(text for text, _ in written).rstrip(), "\n")
        if end == start:
            return
        runs, position = [], start
        for text, name in written:
            if text:
                runs.append(Run(position, position + len(text), cells=name))
            position += len(text) + 1
        start = runs[0].start
        self._blocks.append(Block(start, end, kind, runs=tuple(runs)))
        self.has_tables = True

    def add_removed(self, text: str, reason: str) -> None:
        """Add text that stays out of the sections."""
        start, end = self._append(storable(text).strip(), "\n\n")
        if end > start:
            self._removed.append(Removal(start, end, reason))

    @property
    def kept_chars(self) -> int:
        """Number of characters in blocks."""
        return sum(block.end - block.start for block in self._blocks)

    def page(
        self, number: int = 1, sheet: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> Page:
        """Return the page."""
        return Page(
            number,
            "".join(self._parts),
            sheet=sheet,
            blocks=tuple(self._blocks),
            removed=tuple(self._removed),
            has_images=self.has_images,
            has_tables=self.has_tables,
            metadata=metadata or {},
        )

    def _append(self, text: str, separator: str) -> tuple[int, int]:
        if not text:
            return self._length, self._length
        if self._length:
            self._parts.append(separator)
            self._length += len(separator)
        start = self._length
        self._parts.append(text)
        self._length += len(text)
        return start, self._length


def storable(text: str) -> str:
    r"""Return a text that PostgreSQL can store, with `\n` as its only line end."""
    text = text.replace("\0", "").replace("\r\n", "\n").replace("\r", "\n")
    return text.encode("utf-8", "replace").decode("utf-8")
