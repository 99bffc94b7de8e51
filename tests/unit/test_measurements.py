"""Tests of the command that writes the tables of docs/measurements.md."""

from pathlib import Path

from benchmarks.measurements import MARKED, PAGE, with_tables

MAKEFILE = (Path(__file__).parents[2] / "Makefile").read_text("utf-8")


def test_every_table_of_the_page_is_made_by_the_benchmarks() -> None:
    marked = MARKED.findall(PAGE.read_text("utf-8"))
    assert len(marked) > 4
    assert [name for _, name, *_ in marked if f" {name}" not in MAKEFILE] == []


def test_a_table_is_replaced_by_that_of_the_folder(tmp_path: Path) -> None:
    """From a heading in Markdown, and from its first line in the output of a command."""
    (tmp_path / "a.md").write_text(
        "### Other\n\n| x |\n\n### Size of 9\n\n| b | c |\n| - | - |\n\nA remark.\n"
    )
    (tmp_path / "b.txt").write_text("Before\n\n  Name   MRR\n  one    .5\n\nAfter\n")
    page = (
        "<!-- table a.md: Size of | c -->\nold\n<!-- end -->\n"
        "<!-- table b.txt: Name -->\n<!-- end -->\n"
        "<!-- table missing.md: Name -->\nkept\n<!-- end -->\n"
    )
    assert with_tables(page, tmp_path) == (
        "<!-- table a.md: Size of | c -->\n\n| c |\n| - |\n\n<!-- end -->\n"
        "<!-- table b.txt: Name -->\n\n```text\n  Name   MRR\n  one    .5\n```\n\n<!-- end -->\n"
        "<!-- table missing.md: Name -->\nkept\n<!-- end -->\n"
    )
