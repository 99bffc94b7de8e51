"""Reads the report of evaluations as a browser would, with the parser of the standard library."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "br", "link", "img", "input", "hr", "wbr"}


@dataclass
class PageTable:
    """A table: its caption and its cells, row by row, each with its small print after it."""

    caption: str = ""
    rows: list[list[list[str]]] = field(default_factory=list)

    @property
    def header(self) -> list[str]:
        """The names of the columns."""
        return [cell[0] for cell in self.rows[0]]

    @property
    def body(self) -> list[list[list[str]]]:
        """The rows below."""
        return self.rows[1:]


class Page(HTMLParser):
    """A parsed page.

    Attributes:
        tables: By the beginning of their captions; see `table`.
        ids: Of all elements, repeats included.
        attributes: Of all elements, as (tag, name, value).
        sections: The text of each section, by id.
        unclosed: Elements that were not closed in order.
    """

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tables: list[PageTable] = []
        self.ids: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.sections: dict[str, str] = {}
        self.unclosed: list[str] = []
        self._open: list[str] = []
        self._section = ""
        self.feed(html)
        self.close()
        self.unclosed.extend(self._open)

    def table(self, beginning: str) -> PageTable:
        """Return the one table whose caption begins so."""
        (found,) = [table for table in self.tables if table.caption.startswith(beginning)]
        return found

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            self.attributes.append((tag, name, value or ""))
            if name == "id":
                self.ids.append(value or "")
        if tag == "section":
            self._section = dict(attrs).get("id") or ""
        if tag == "table":
            self.tables.append(PageTable())
        if tag == "tr":
            self.tables[-1].rows.append([])
        if tag in {"th", "td"}:
            self.tables[-1].rows[-1].append([""])
        if tag == "small" and {"th", "td"} & set(self._open):
            self.tables[-1].rows[-1][-1].append("")
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag == "section":
            self._section = ""
        if self._open and self._open[-1] == tag:
            self._open.pop()
        else:
            self.unclosed.append(tag)

    def handle_data(self, data: str) -> None:
        text = " ".join(data.split())
        if "caption" in self._open:
            self.tables[-1].caption += text
        if {"th", "td"} & set(self._open):
            self.tables[-1].rows[-1][-1][-1] += text
        if text and "style" not in self._open:
            self.sections[self._section] = f"{self.sections.get(self._section, '')} {text}".strip()
