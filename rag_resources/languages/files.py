"""The files of a language, read from the package once."""

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

LANGUAGES = ("es", "fr", "en")
"""The languages; the first one is complete, and supplies what another one lacks."""


@cache
def read(language: str, path: str) -> dict[str, Any]:
    """Return the content of a TOML file of a language; it must not be changed."""
    return tomllib.loads(text(language, path))


def text(language: str, path: str) -> str:
    """Return the text of a file of a language."""
    return str(_resource(language, path).read_text("utf-8"))


@cache
def names(language: str, folder: str) -> tuple[str, ...]:
    """Return the sorted names of the TOML files in a folder of a language."""
    entries = _resource(language, folder).iterdir()
    return tuple(sorted(entry.name for entry in entries if entry.name.endswith(".toml")))


def _resource(language: str, path: str) -> Any:
    return files("rag_resources.languages").joinpath(language, *path.split("/"))
