"""Writes the tables of `make bench` into docs/measurements.md.

    python -m benchmarks.measurements [FOLDER]

A marker `<!-- table FILE: HEADING | COLUMN; COLUMN -->` names a file of FOLDER (build/bench), the
beginning of the heading above the table (or of the table's own first line in a text file), and the
columns to show, by default all. What stands between it and `<!-- end -->` is replaced. A file that
is not there leaves its table as it is.
"""

import re
import sys
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "measurements.md"
MARKED = re.compile(r"(<!-- table (\S+): (.+?)(?: \| (.+?))? -->\n).*?(<!-- end -->)", re.DOTALL)


def table_under(text: str, heading: str, columns: list[str]) -> str:
    """Return the table that a heading begins, as Markdown.

    Args:
        text: Markdown with headings of the third level, or the output of a command.
        heading: How the heading, or the first line of the table, begins.
        columns: Of a Markdown table, those to show, in this order; all if empty.

    Returns:
        The rows of a Markdown table, or a command's lines until a blank one as a code block.

    Raises:
        LookupError: No line begins with the heading, or the table has no such column.
    """
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if line.startswith(f"### {heading}"):
            rows = [row for row in _until(lines[number + 1 :], "#") if row.startswith("|")]
            return "\n".join(_with_columns(rows, columns) if columns else rows)
        if line.strip().startswith(heading):
            return "\n".join(["```text", *_until(lines[number:], ""), "```"])
    raise LookupError(heading)


def _with_columns(rows: list[str], columns: list[str]) -> list[str]:
    """Return the rows of a Markdown table with these columns only."""
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    if missing := [name for name in columns if name not in cells[0]]:
        raise LookupError(missing)
    kept = [cells[0].index(name) for name in columns]
    return [f"| {' | '.join(row[index] for index in kept)} |" for row in cells]


def _until(lines: list[str], end: str) -> list[str]:
    """Return the lines before one that begins with `end`, or before a blank one."""
    found = []
    for line in lines:
        if line.startswith(end) if end else not line.strip():
            break
        found.append(line.rstrip())
    return found


def with_tables(page: str, folder: Path) -> str:
    """Return a page with the tables of a folder between its markers."""

    def table(match: re.Match[str]) -> str:
        begin, name, heading, columns, end = match.groups()
        path = folder / name
        if not path.exists():
            return match[0]
        chosen = columns.split("; ") if columns else []
        return f"{begin}\n{table_under(path.read_text('utf-8'), heading, chosen)}\n\n{end}"

    return MARKED.sub(table, page)


def main() -> None:
    """Write the page again."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "build/bench")
    PAGE.write_text(with_tables(PAGE.read_text("utf-8"), folder), "utf-8")


if __name__ == "__main__":
    main()
