"""Reads plain text and Markdown documents.

Notes in these formats, one per file, are read in `ingestion`.
"""

import re
from collections.abc import Iterator
from typing import BinaryIO

from rag_resources.core.documents import Block, BlockKind, Page, PageFailure, Removal
from rag_resources.core.encodings import decoded
from rag_resources.core.page_text import storable
from rag_resources.documents.reader_versions import identity_of

_BLANK_LINES = re.compile(r"\n(?:[^\S\n]*\n)+")
_FRONT_MATTER = re.compile(r"---[^\S\n]*\n(?:.*\n)*?---[^\S\n]*(?:\n|\Z)")
_SAYS = re.compile(r"^(title|date|author):[^\S\n]*['\"]?(.*?)['\"]?[^\S\n]*$", re.MULTILINE)
_SPACE = r"[^\S\n]*"
_MARK = r"(?:[-*+•·]|\d{1,3}[.)])[^\S\n]+\S"
_GOES_ON = rf"(?:\n(?!{_SPACE}(?:\n|\Z|```|~~~|\||{_MARK})|\#{{1,6}}\s)[^\n]+)*"
_BLOCK = re.compile(
    rf"""^(?:
      (?P<code>{_SPACE}(?P<fence>```|~~~)[\s\S]*?(?:\n{_SPACE}(?P=fence)[^\n]*$|\Z))
    | (?P<heading>(?P<marks>\#{{1,6}})[^\S\n]+\S[^\n]*$)
    | (?P<table_row>{_SPACE}\|[^\n]*$)
    | (?P<list_item>(?P<indent>{_SPACE}){_MARK}[^\n]*{_GOES_ON})
    | (?P<underlined>{_SPACE}\S[^\n]*\n(?P<rule>=+|-+){_SPACE}$)
    | (?P<paragraph>{_SPACE}\S[^\n]*{_GOES_ON})
    )""",
    re.VERBOSE | re.MULTILINE,
)
_TABLE_RULE = re.compile(r"[\s:|-]*-[\s:|-]*$")
_INDENT = 2
_KINDS = ("code", "heading", "table_row", "list_item", "underlined", "paragraph")


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
    reader_hash = identity_of(name, 1, "charset-normalizer")

    def read(self, file: BinaryIO) -> Iterator[Page | PageFailure]:
        """Yield the only page.

        Raises:
            InvalidSourceError: It is not text.
        """
        text = storable(decoded(file.read(), "Markdown"))
        front = _FRONT_MATTER.match(text)
        blocks = _with_headers(text, list(_blocks(text, front.end() if front else 0)))
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
    for found in _BLOCK.finditer(text, start):
        level = 0
        kind = next(name for name in _KINDS if found[name])
        if kind == "underlined":
            kind, level = "heading", 1 if "=" in found["rule"] else 2
        elif kind == "heading":
            level = len(found["marks"])
        elif kind == "list_item":
            level = 1 + len(found["indent"].expandtabs(_INDENT)) // _INDENT
        yield _block(text, found.start(), found.end(), BlockKind(kind), level)


def _with_headers(text: str, blocks: list[Block]) -> list[Block]:
    """Rows above a table's rule, and the rule, are its header."""
    made = list(blocks)
    for index, block in enumerate(blocks):
        is_rule = _TABLE_RULE.match(text, block.start, block.end)
        if block.kind is BlockKind.TABLE_ROW and is_rule and index:
            before = blocks[index - 1]
            if before.kind is BlockKind.TABLE_ROW and before.end + 1 == block.start:
                for at in (index - 1, index):
                    made[at] = Block(blocks[at].start, blocks[at].end, BlockKind.TABLE_HEADER)
    return made


def _block(text: str, start: int, end: int, kind: BlockKind, level: int = 0) -> Block:
    content = text[start:end]
    start += len(content) - len(content.lstrip())
    return Block(start, start + len(content.strip()), kind, level)
