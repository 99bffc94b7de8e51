"""What commands print: results as JSON, too, and tables that fit the screen."""

import io
import re
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.main import get_command

from rag_resources.cli.main import app
from rag_resources.cli.output import print_table

WITHOUT = {"dagster", "run", "serve", "ui"}
"""They write a script for a shell, or become another program."""


def commands(group: Any, *path: str) -> Iterator[tuple[str, Any]]:
    for name, item in group.commands.items():
        if getattr(item, "commands", None):
            yield from commands(item, *path, name)
        else:
            yield " ".join((*path, name)), item


def test_every_command_has_json() -> None:
    root = get_command(app)
    missing = {
        name
        for name, item in commands(root)
        if not any("--json" in getattr(each, "opts", ()) for each in item.params)
    }
    assert missing == WITHOUT


class Terminal(io.StringIO):
    """A screen that remembers what was written."""

    def isatty(self) -> bool:
        """Say that it is one."""
        return True


words = st.lists(st.text("abñ9.", min_size=1, max_size=20), max_size=6).map(" ".join)


@given(
    st.integers(1, 7).flatmap(
        lambda n: st.lists(st.lists(words, min_size=n, max_size=n), min_size=2)
    ),
    st.integers(50, 120),
    st.booleans(),
)
def test_a_table_fits_the_screen_and_breaks_no_word(
    rows: list[list[str]], width: int, prose: bool
) -> None:
    """Also with `TERM=dumb`, which has 80 columns."""
    for terminal, limit in (("xterm-256color", width), ("dumb", 80)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "stdout", screen := Terminal())
            patch.setenv("COLUMNS", str(width))
            patch.setenv("TERM", terminal)
            patch.delenv("LINES", raising=False)  # With it, rich believes COLUMNS of any terminal.
            print_table(rows[0], rows[1:], title="★", prose=prose)
        shown = re.sub(r"\x1b\[[0-9;]*m", "", screen.getvalue())
        assert max(map(len, shown.splitlines())) <= limit
        assert {word for row in rows[1:] for cell in row for word in cell.split()} <= set(
            shown.split()
        )
        assert shown.startswith("★")
