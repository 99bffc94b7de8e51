"""Reads web pages: the main content as blocks; navigation and hidden text listed as removed.

`selectolax` parses, and this module decides what is content: libraries that extract the main
content, such as trafilatura, do not return what they left out. Word documents are read by this
module too (`documents.docx`).
"""

import re
from collections.abc import Iterator, Mapping
from typing import BinaryIO

from selectolax.lexbor import LexborHTMLParser, LexborNode

from rag_resources.core.documents import BlockKind, Page, PageFailure
from rag_resources.core.encodings import decoded
from rag_resources.core.page_text import Cell, PageText
from rag_resources.core.sheets import looks_like_header
from rag_resources.documents.archives import too_deep
from rag_resources.documents.readers import identity_of

MAX_LEVELS = 2_000
"""The parser's time grows with the square of the depth: 0.1 s here, ten minutes at 200,000."""
NAVIGATION = "navigation"
HIDDEN = "hidden"

_HEADINGS = {f"h{level}": level for level in range(1, 7)}


def _tags(names: str) -> frozenset[str]:
    return frozenset(names.split())


_SKIPPED = _tags(
    "script style template noscript head svg iframe object canvas select textarea datalist audio"
    " video map"
)
_INLINE = _tags(
    "a abbr acronym b bdi bdo big cite code data del dfn em font i img input ins kbd label mark"
    " math q rp rt ruby s samp small span strike strong sub sup time tt u var wbr button output"
    " picture source"
)
# Tags that need no end tag do not nest.
_CLOSE_THEMSELVES = _tags(
    "area base br col embed hr img input link meta source track wbr p li dt dd tr td th thead tbody"
    " tfoot option optgroup colgroup rt rp html head body"
)
_ASIDE = {"nav", "aside", "footer", "header", "menu", "dialog"}
_ASIDE_ROLES = {"navigation", "banner", "contentinfo", "search", "complementary", "menu", "dialog"}
_ASIDE_NAMES = re.compile(
    r"(?:^|[\s_-])(?:nav|navbar|menu|sidebar|breadcrumbs?|migas|cookies?|footer|pie|share|social)"
    r"(?:$|[\s_-])",
    re.IGNORECASE,
)
_HIDDEN_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_CONTENT = ("main", "article", "[role=main]")
_LEAST_SHARE = 0.25
_LINK_SHARE = 0.8
_LEAST_LINKS = 4
_MOST_REACH = 100
_LISTS = {"ul", "ol", "menu", "dir"}
_WHITE_SPACE = re.compile(r"[^\S\xa0]+")
_TAG = re.compile(rb"<(/?)([a-zA-Z][a-zA-Z0-9]*)[^>]*?(/?)>")


class HtmlReader:
    """Reads a web page as one page."""

    name = "html"
    reader_hash = identity_of(name, 4, "selectolax", "charset-normalizer")

    def read(self, file: BinaryIO) -> Iterator[Page | PageFailure]:
        """Yield the only page.

        Raises:
            InvalidSourceError: Its elements are nested too deeply.
        """
        content = file.read()
        refuse_deep(content)
        tree = parsed(content)
        yield content_of(tree, main_only=True).page(metadata=metadata_of(tree))


def parsed(content: bytes) -> LexborHTMLParser:
    """Parse a web page in the encoding that it declares, or in the likeliest one."""
    declared = re.search(rb"<meta[^>]+charset=[\"']?([\w-]+)", content[:4096], re.IGNORECASE)
    if declared:
        try:
            return LexborHTMLParser(content.decode(declared[1].decode("ascii")))
        except (LookupError, UnicodeDecodeError):
            pass  # The declared encoding is wrong.
    return LexborHTMLParser(decoded(content, "HTML"))


def refuse_deep(content: bytes) -> None:
    """Refuse a page whose elements are nested too deeply to be parsed in time.

    Raises:
        InvalidSourceError: They are.
    """
    depth = 0
    for closes, tag, empty in _TAG.findall(content):
        if empty or tag.lower().decode() in _CLOSE_THEMSELVES:
            continue
        depth = max(0, depth - 1) if closes else depth + 1
        if depth > MAX_LEVELS:
            raise too_deep(MAX_LEVELS)


def content_of(tree: LexborHTMLParser, *, main_only: bool) -> PageText:
    """Return the blocks of a web page.

    Args:
        tree: The parsed page.
        main_only: Whether navigation is removed: elements outside of `main` or `article`, elements
            with a tag, role or class of navigation, and lists of links. If less than a quarter of
            the text would be left, nothing is treated as navigation.
    """
    body = tree.body
    if body is None:
        return PageText()
    everything = _Walk(nested_tables=not main_only).walk(body)
    if not main_only:
        return everything
    main = _Walk(_Navigation(body)).walk(body)
    return main if main.kept_chars >= _LEAST_SHARE * everything.kept_chars else everything


def metadata_of(tree: LexborHTMLParser) -> Mapping[str, str]:
    """Return the title, author, date and language that a page declares."""
    found: dict[str, str] = {}
    title = tree.css_first("title")
    if title is not None and title.text(strip=True):
        found["title"] = " ".join(title.text().split())
    for key, names in _META.items():
        for name in names:
            node = tree.css_first(f'meta[name="{name}"], meta[property="{name}"]')
            content = (node.attributes.get("content") or "").strip() if node else ""
            if content:
                found.setdefault(key, content)
    html = tree.css_first("html")
    language = (html.attributes.get("lang") or "").strip() if html else ""
    return {**found, **({"language": language} if language else {})}


_META = {
    "date": ("article:published_time", "date", "dcterms.date", "DC.date", "dc.date.issued"),
    "author": ("author", "article:author", "DC.creator"),
    "title": ("og:title",),
}


class _Navigation:
    """Decides which elements of a page are not its main content."""

    def __init__(self, body: LexborNode) -> None:
        found = next(filter(None, (body.css(selector) for selector in _CONTENT)), [])
        self.roots = {node.mem_id for node in found}
        self._above: set[int] = set()
        for node in found:
            parent = node.parent
            while parent is not None and parent.mem_id not in self._above:
                self._above.add(parent.mem_id)
                parent = parent.parent

    def has(self, node: LexborNode, *, inside: bool) -> bool:
        """Whether an element is navigation; `inside` says that it is in the main content."""
        tag, attributes = node.tag or "", node.attributes
        if node.mem_id in self._above or node.mem_id in self.roots or tag == "body":
            return False
        if tag == "nav" or (attributes.get("role") or "") in _ASIDE_ROLES:
            return True
        if inside or (tag == "header" and node.css_first("h1") is not None):
            return False
        names = f"{attributes.get('class') or ''} {attributes.get('id') or ''}"
        return (
            bool(self.roots)
            or tag in _ASIDE
            or bool(_ASIDE_NAMES.search(names))
            or (tag in _LISTS and _is_list_of_links(node))
        )


def _is_list_of_links(node: LexborNode) -> bool:
    links = node.css("a")
    linked = sum(len(link.text(strip=True)) for link in links)
    return len(links) >= _LEAST_LINKS and linked >= _LINK_SHARE * len(node.text(strip=True))


class _Walk:
    """Walks through an element and collects its blocks, without recursion.

    Args:
        navigation: Decides what is removed as navigation.
        with_hidden: Whether hidden text is collected too.
        nested_tables: Whether a table that has another one in a cell can hold data.

    Attributes:
        page: The collected blocks.
    """

    def __init__(
        self,
        navigation: _Navigation | None = None,
        *,
        with_hidden: bool = False,
        nested_tables: bool = False,
    ) -> None:
        self.page = PageText()
        self._nested_tables = nested_tables
        self._navigation = navigation
        self._with_hidden = with_hidden
        self._inside = 0
        self._line: list[str] = []
        self._removed: list[tuple[str, str]] = []
        self._heading = 0
        self._lists: list[int | None] = []  # the number of the last item; None without numbers
        self._marker = ""

    def walk(self, root: LexborNode) -> PageText:
        """Collect the blocks of an element."""
        stack = [(root, False)]
        while stack:
            node, leaving = stack.pop()
            if leaving:
                self._leave(node)
            elif node.is_text_node:
                self._line.append(_WHITE_SPACE.sub(" ", node.text_content or ""))
            elif node.is_element_node and self._enter(node, is_root=node is root):
                stack.append((node, True))
                child = node.last_child
                while child is not None:
                    stack.append((child, False))
                    child = child.prev
        self._flush()
        return self.page

    def _enter(self, node: LexborNode, *, is_root: bool) -> bool:
        """Open an element; return whether its content is to be walked through."""
        tag = node.tag or ""
        if tag in _SKIPPED:
            return False
        reason = None if is_root else self._reason(node)
        if reason:
            if tag not in _INLINE:
                self._flush()
            self._removed.append((_plain(node), reason))
            return False
        if self._navigation and node.mem_id in self._navigation.roots:
            self._inside += 1
        if tag == "br":
            self._line.append("\n")
        elif tag == "img":
            self.page.has_images = True
        elif tag == "input" and node.attributes.get("type") == "checkbox":
            self._line.append("☒ " if "checked" in node.attributes else "☐ ")
        if tag in _INLINE:
            return True
        return self._enter_block(node, tag, is_root=is_root)

    def _enter_block(self, node: LexborNode, tag: str, *, is_root: bool) -> bool:
        if tag != "br":
            self._flush()
        if tag == "pre":
            self.page.add(BlockKind.CODE, node.text())
            return False
        if tag == "table" and not is_root and _is_data(node, nested=self._nested_tables):
            self._add_table(node)
            return False
        if tag in _LISTS:
            start = node.attributes.get("start") or "1"
            first = int(start) if start.isdecimal() else 1
            self._lists.append(first - 1 if tag == "ol" else None)
        elif tag == "li":
            self._open_item()
        self._heading = _HEADINGS.get(tag, self._heading)
        return True

    def _leave(self, node: LexborNode) -> None:
        tag = node.tag or ""
        if self._navigation and node.mem_id in self._navigation.roots:
            self._inside -= 1
        if tag in _INLINE or tag == "br":
            return
        self._flush()
        if tag in _HEADINGS:
            self._heading = 0
        elif tag in _LISTS and self._lists:
            self._lists.pop()
        elif tag == "li":
            self._marker = ""

    def _open_item(self) -> None:
        self._marker = "- "
        if self._lists and self._lists[-1] is not None:
            self._lists[-1] += 1
            self._marker = f"{self._lists[-1]}. "

    def _flush(self) -> None:
        lines = "".join(self._line).split("\n")
        text = "\n".join(line for line in map(str.strip, lines) if line)
        self._line = []
        if text:
            self._add(text)
        for removed, reason in self._removed:
            self.page.add_removed(removed, reason)
        self._removed = []

    def _add(self, text: str) -> None:
        if self._heading:
            self.page.add(BlockKind.HEADING, text, self._heading)
        elif self._marker:
            self.page.add(BlockKind.LIST_ITEM, self._marker + text, max(1, len(self._lists)))
            self._marker = ""
        else:
            self.page.add(BlockKind.PARAGRAPH, text)

    def _reason(self, node: LexborNode) -> str | None:
        attributes = node.attributes
        hidden = "hidden" in attributes or _HIDDEN_STYLE.search(attributes.get("style") or "")
        if (hidden or attributes.get("aria-hidden") == "true") and not self._with_hidden:
            return HIDDEN
        navigation = self._navigation
        is_navigation = navigation and navigation.has(node, inside=self._inside > 0)
        return NAVIGATION if is_navigation else None

    def _add_table(self, table: LexborNode) -> None:
        caption = table.css_first("caption")
        if caption is not None:
            self.page.add(BlockKind.PARAGRAPH, _plain(caption))
        rows = _rows(table)
        marked = any(header for _, header in rows)
        for index, (texts, header) in enumerate(rows):
            guessed = not marked and index == 0 and len(rows) > 1 and looks_like_header(texts)
            kind = BlockKind.TABLE_HEADER if header or guessed else BlockKind.TABLE_ROW
            self.page.add_row(kind, [Cell(text) for text in texts])


def _is_data(table: LexborNode, *, nested: bool) -> bool:
    """Whether a table holds data; other tables only serve the layout."""
    if table.css_first("h1, h2, h3, h4, h5, h6") is not None:
        return False
    widths = [len(_cell_nodes(row)) for row in _own_rows(table)]
    if len(table.css("table")) > 1:  # The table itself is among them.
        return nested and len(widths) > 1 and min(widths) > 1
    return any(width > 1 for width in widths)


def _own_rows(table: LexborNode) -> list[LexborNode]:
    """The rows of a table without those of tables in its cells."""
    return [row for row in table.css("tr") if _table_of(row) == table.mem_id]


def _table_of(row: LexborNode) -> int | None:
    parent = row.parent
    while parent is not None and parent.tag != "table":
        parent = parent.parent
    return None if parent is None else parent.mem_id


def _cell_nodes(row: LexborNode) -> list[LexborNode]:
    return [each for each in row.iter() if each.tag in ("td", "th")]


def _rows(table: LexborNode) -> list[tuple[list[str], bool]]:
    """The texts of the cells of each row by columns, and whether it is a header.

    A cell that spans several rows is repeated in each, as in a workbook; a cell that spans several
    columns is followed by blank ones.
    """
    rows: list[tuple[list[str], bool]] = []
    down: dict[int, tuple[int, str]] = {}
    group = None
    for row in _own_rows(table):
        texts: list[str] = []
        if row.parent is not None and row.parent.mem_id != group:
            down.clear()
            group = row.parent.mem_id

        def take_from_above(texts: list[str] = texts) -> None:
            while len(texts) in down:
                left, text = down.pop(len(texts))
                if left > 1:
                    down[len(texts)] = left - 1, text
                texts.append(text)

        cells = _cell_nodes(row)
        for cell in cells:
            take_from_above()
            text, height = _plain(cell), _reach(cell, "rowspan")
            if height > 1:
                down[len(texts)] = height - 1, text
            texts += [text, *[""] * (_reach(cell, "colspan") - 1)]
        take_from_above()
        in_head = row.parent is not None and row.parent.tag == "thead"
        is_header = in_head or (bool(cells) and all(cell.tag == "th" for cell in cells))
        rows.append((texts, is_header))
    return rows


def _reach(cell: LexborNode, name: str) -> int:
    """Return how many rows or columns a cell spans; `rowspan="0"` is the rest of its group."""
    value = cell.attributes.get(name) or ""
    if name == "rowspan" and value.strip() == "0":
        return _MOST_REACH
    return min(int(value), _MOST_REACH) if value.isdecimal() and int(value) else 1


def _plain(node: LexborNode) -> str:
    """The text of an element, hidden or not."""
    return _Walk(with_hidden=True).walk(node).page().text
