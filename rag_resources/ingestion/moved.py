"""Finds notes whose file was moved or renamed: they are stored under both names.

A note is identified by its source and identifier, which is its path in a folder of files.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rag_resources.ingestion.markdown import read_markdown
from rag_resources.ingestion.sources import READERS

_SUFFIXES = frozenset(suffix for suffix, reader in READERS.items() if reader is read_markdown)
"""Of files that are one note, named by its path without the suffix."""


@dataclass(frozen=True, slots=True)
class MovedNote:
    """A stored note without a file, and the note of a file with the same content.

    Attributes:
        before: External id of the first.
        now: External id of the second.
    """

    before: str
    now: str


def find_moved(twins: Sequence[Sequence[str]], folder: Path) -> list[MovedNote]:
    """Return the notes whose file is gone while another file has their content.

    Args:
        twins: External ids of notes with one content, group by group.
        folder: The source of the notes.
    """
    moved = []
    for names in twins:
        there = [name for name in names if _has_file(folder, name)]
        moved += [MovedNote(name, there[0]) for name in names if there and name not in there]
    return moved


def _has_file(folder: Path, name: str) -> bool:
    wanted = folder / name
    with suppress(OSError):
        return any(
            path.stem == wanted.name and path.suffix.lower() in _SUFFIXES
            for path in wanted.parent.iterdir()
        )
    return False
