"""Reads the `.env` file of settings."""

import logging
from pathlib import Path

from dotenv import dotenv_values
from dotenv.parser import parse_stream

ENV_FILE = Path(".env")

# It would name a malformed line in English, whoever reads the file; `malformed_lines` finds them.
logging.getLogger("dotenv.main").setLevel(logging.ERROR)


def present_values(file: Path = ENV_FILE) -> dict[str, str | None]:
    """Return the variables of a file; none if there is no such file, or it is not text."""
    try:
        return dotenv_values(file)
    except UnicodeDecodeError:  # `settings` reports it.
        return {}


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
