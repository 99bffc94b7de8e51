"""Calls of `rag` in this process, with settings of their own."""

import io
import json
import re
import shlex
import sys
from contextvars import copy_context
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, TextIO

import pytest

from rag_resources.cli import main
from rag_resources.settings import Settings


@dataclass(frozen=True)
class Outcome:
    """What a call did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Its stdout, all of it, as JSON."""
        return json.loads(self.out)


def isolate(monkeypatch: pytest.MonkeyPatch, folder: Path, **variables: str) -> None:
    """Work in a folder, with a home in it and no settings but these."""
    monkeypatch.chdir(folder)
    for name in Settings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in {"RAG_HOME": str(folder / "home"), "COLUMNS": "200", **variables}.items():
        monkeypatch.setenv(name, value)


def call_rag(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *arguments: str | Path,
    stdin: str | TextIO = "",
) -> Outcome:
    """Call `rag` with arguments and what it reads; its language and verbosity end with it."""
    capsys.readouterr()
    monkeypatch.setattr(sys, "stdin", io.StringIO(stdin) if isinstance(stdin, str) else stdin)
    with pytest.raises(SystemExit) as exited:
        copy_context().run(main, [str(argument) for argument in arguments])
    captured = capsys.readouterr()
    assert isinstance(exited.value.code, int)
    return Outcome(exited.value.code, captured.out, captured.err)


OF_DOCUMENTS = Path(__file__).parents[1] / "docs" / "documents.md"
"""Its commands need documents: `test_cli_documents` runs them, `test_processes` all others."""


def documented_commands(page: Path) -> list[tuple[list[str], str]]:
    """The `rag` commands of a page, each with the first line of output it shows, if any."""
    found = []
    for block in re.findall(r"```console\n(.*?)```", page.read_text("utf-8"), re.DOTALL):
        lines = [*block.splitlines(), ""]
        for line, following in pairwise(lines):
            if line.startswith("$ rag "):
                shown = "" if following.startswith(("$", "╭")) else following
                found.append((shlex.split(line.removeprefix("$ rag ")), shown))
    return found
