"""Reads plain text and Markdown documents.

Notes in these formats, one per file, are read in `ingestion`.
"""

import re
from collections.abc import Iterator
from typing import BinaryIO

from rag_resources.core.blocks import read
from rag_resources.core.documents import Block, BlockKind, Page, PageFailure, Removal
from rag_resources.core.encodings import decoded
from rag_resources.core.page_text import storable
from rag_resources.documents.readers import identity_of

_BLANK_LINES = re.compile(r"\n(?:[^\S\n]*\n)+")
_FRONT_MATTER = re.compile(r"---[^\S\n]*\n(?:.*\n)*?---[^\S\n]*(?:\n|\Z)")
_SAYS = re.compile(r"^(title|date|author):[^\S\n]*['\"]?(.*?)['\"]?[^\S\n]*$", re.MULTILINE)
_KINDS = {
    "heading": BlockKind.HEADING,
    "row": BlockKind.TABLE_ROW,
    "code": BlockKind.CODE,
    "item": BlockKind.LIST_ITEM,
}


class TextReader:
    """Reads plain text: a page from one form feed to the next, paragraphs between blank lines."""

    name = "text"
    reader_hash = identity_of(name, 1, "charset-normalizer")

    def read(self, file: BinaryIO) -> Iterator[Page | PageFailure]:
        """Yield the pages.

        Raises:
            InvalidSourceError: It is not text.
        """
        text = storable(decoded(file.read(), "TXT"))
        for number, page in enumerate(text.split("\f"), start=1):
            yield Page(number, page, blocks=tuple(_paragraphs(page)))


class MarkdownReader:
    """Reads Markdown as one page: headings, lists, tables, code. The text keeps its marks.

    Front matter is listed as removed.
    """

    name = "markdown"
    reader_hash = identity_of(name, 2, "charset-normalizer", "pyromark")

    def read(self, file: BinaryIO) -> Iterator[Page | PageFailure]:
        """Yield the only page.

        Raises:
            InvalidSourceError: It is not text.
        """
        text = storable(decoded(file.read(), "Markdown"))
        front = _FRONT_MATTER.match(text)
        blocks = list(_blocks(text, front.end() if front else 0))
        yield Page(
            1,
            text,
            blocks=tuple(blocks),
            removed=(Removal(0, len(front[0].rstrip()), "front_matter"),) if front else (),
            has_tables=any(block.kind is BlockKind.TABLE_ROW for block in blocks),
            metadata=dict(_SAYS.findall(front[0])) if front else {},
        )


def _paragraphs(text: str) -> Iterator[Block]:
    start = 0
    for found in (*_BLANK_LINES.finditer(text), None):
        stop = found.start() if found else len(text)
        if text[start:stop].strip():
            yield _block(text, start, stop, BlockKind.PARAGRAPH)
        start = found.end() if found else stop


def _blocks(text: str, start: int) -> Iterator[Block]:
    for block in read(text[start:]).blocks:
        kind = BlockKind.TABLE_HEADER if block.is_header else _KINDS.get(block.kind)
        span = start + block.span.start, start + block.span.end
        if text[slice(*span)].strip():
            yield _block(text, *span, kind or BlockKind.PARAGRAPH, block.level)


def _block(text: str, start: int, end: int, kind: BlockKind, level: int = 0) -> Block:
    content = text[start:end]
    start += len(content) - len(content.lstrip())
    return Block(start, start + len(content.strip()), kind, level)
