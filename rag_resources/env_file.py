"""Reads the `.env` file of settings."""

import logging
import os
from collections.abc import Collection
from pathlib import Path

from dotenv import dotenv_values
from dotenv.parser import parse_stream

_NAME = "RAG_ENV_FILE"
ENV_FILE = Path(os.environ.get(_NAME) or ".env")
"""The file; for the processes of `lasting_environment` one that is never there."""

# It would name a malformed line in English, whoever reads the file; `malformed_lines` finds them.
logging.getLogger("dotenv.main").setLevel(logging.ERROR)


def present_values(file: Path = ENV_FILE) -> dict[str, str | None]:
    """Return the variables of a file; none if there is no such file, or it is not text."""
    try:
        return dotenv_values(file)
    except UnicodeDecodeError:  # `settings` reports it.
        return {}


def lasting_environment(names: Collection[str]) -> dict[str, str]:
    """Return the environment of processes that go on with the present settings.

    They do not read the file, whatever is written to it later.

    Args:
        names: Of the settings, in capital letters; the file may hold variables of other programs.
    """
    given = {name.upper() for name in os.environ}
    in_file = {
        name.upper(): value
        for name, value in present_values().items()
        if value is not None and name.upper() not in given
    }
    ours = {name: value for name, value in in_file.items() if name.partition("__")[0] in names}
    return {**os.environ, **ours, _NAME: os.devnull}


def malformed_lines(file: Path = ENV_FILE) -> list[int]:
    """Return which lines of a file, from 1, set nothing and are no comment."""
    try:
        with file.open(encoding="utf-8") as lines:
            found = [
                own.original
                for own in parse_stream(lines)
                if own.error or (own.key and own.value is None)
            ]
    except (OSError, UnicodeDecodeError):
        return []
    return [own.line + _blank_lines(own.string) for own in found]


def _blank_lines(text: str) -> int:
    """Return how many blank lines a text begins with."""
    return text[: len(text) - len(text.lstrip())].count("\n")
