"""Finds the changed files of a folder, for the sensors of notes and of documents."""

from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

SETTLED_NS = 100_000_000
"""Age at which a change is read, because file system clocks advance in steps."""


def identity(source: Path) -> str:
    """Return an identity that changes if another folder takes the place of the source."""
    return f"{source.stat().st_ino if source.is_dir() else 0} {source}"


def change_times(source: Path, seen: int, suffixes: Collection[str]) -> Iterator[tuple[Path, int]]:
    """Yield the files of a source with the time each was changed, or moved there since `seen`.

    Args:
        source: A folder, or a file.
        seen: A time in nanoseconds.
        suffixes: Suffixes of the files to yield, in lower case; others are ignored.
    """
    moved: dict[Path, int] = {}
    paths = sorted(source.rglob("*")) if source.is_dir() else [source]
    for path in paths:
        if any(part.startswith(".") for part in path.relative_to(source).parts):
            continue
        # A file may be deleted while the folder is read.
        with suppress(FileNotFoundError):
            changed, came = path.stat().st_ctime_ns, moved.get(path.parent, 0)
            if path.is_dir():
                # Moving a folder changes it and its parent; a new note changes only its folder.
                both = (changed, path.parent.stat().st_ctime_ns)
                moved[path] = max(came, max(both) if min(both) > seen else 0)
            elif path.is_file() and path.suffix.lower() in suffixes:
                yield path, max(changed, came)
