"""Tables of formatted cells, and their Markdown form."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReportTable:
    """A table of formatted cells; `is_prose` if the cells are texts, not numbers."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    is_prose: bool = False

    def markdown(self) -> str:
        """Return the table in Markdown, with its title, if any, in bold."""
        title = f"**{self.title}**\n\n" if self.title else ""
        return title + markdown_table(self.columns, self.rows)


_PIPE = re.compile(r"(?<!\\)((?:\\\\)*)\|")
"""A pipe that no backslash escapes yet. Text of `plain` has some that are escaped already."""


def markdown_table(columns: str | Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table in Markdown.

    Args:
        columns: The names of the columns, or the header row from the catalogue.
        rows: The cells. They are escaped, so that no text breaks out of its cell.
    """
    names = columns.strip("|").split("|") if isinstance(columns, str) else columns
    return "\n".join(map(_line, (names, ["---"] * len(names), *rows)))


def _line(cells: Iterable[object]) -> str:
    folded = (_PIPE.sub(r"\1\|", " ".join(str(cell).split())) for cell in cells)
    return f"| {' | '.join(folded)} |"
