"""Every command that prints a result prints it as JSON, too."""

from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from rag_resources.cli.main import app

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
